"""Sends a message to a webhook: one request, within a bounded time, and no word of the address in any error."""

import http.client
import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Timer
from typing import Any, Final
from urllib.parse import urlsplit

from lowkiq_lambda.base.errors import LowkiqError

TIMEOUT: Final = 5.0
"""Seconds for the connection, and for each part of the answer."""
DEADLINE: Final = 10.0
"""Seconds for all of the request, once there is a connection."""

Send = Callable[[Mapping[str, Any]], object]
"""Takes a message, as a JSON object; an exception has it sent again."""


class AlertNotTaken(LowkiqError):
    """The place that alerts go to has not taken one: it is sent again."""


def webhook(url: str, timeout: float = TIMEOUT, deadline: float = DEADLINE) -> Send:
    """Sends each message as JSON by a POST. Any answer but 2xx is an AlertNotTaken; a redirect is not followed."""
    address = urlsplit(url)
    place = address.hostname or ""
    target = (address.path or "/") + (f"?{address.query}" if address.query else "")
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection

    def send(message: Mapping[str, Any]) -> None:
        connection = kind(place, address.port, timeout=timeout)
        body = json.dumps(message).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": message["key"]}
        try:
            connection.connect()
            # A server that sends a byte now and then would keep each part of the answer within its time.
            is_over = Event()
            watch = Timer(deadline, _cut, [connection.sock, is_over])
            watch.daemon = True
            watch.start()
            try:
                connection.request("POST", target, body, headers)
                status = connection.getresponse().status
            finally:
                watch.cancel()
        except (OSError, http.client.HTTPException) as error:
            # Its text may have the address, which is the secret of a webhook.
            raise AlertNotTaken(f"{place} did not answer: {type(error).__name__}") from None
        finally:
            connection.close()
        # To the reader of the answer a connection that was cut looks like the end of its headers.
        if is_over.is_set():
            raise AlertNotTaken(f"{place} did not answer within {deadline:g} s")
        if not http.client.OK <= status < http.client.MULTIPLE_CHOICES:
            raise AlertNotTaken(f"{place} answered with {status}")

    return send


def _cut(connected: socket.socket, is_over: Event) -> None:
    is_over.set()
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
