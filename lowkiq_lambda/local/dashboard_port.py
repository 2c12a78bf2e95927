"""The dashboard at a port of this process, served from a thread of its own beside the daemon."""

import errno
import logging
import os
import re
import socket
import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import ConfigError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import uvicorn
    from starlette.types import ASGIApp, Receive, Scope, Send

    from lowkiq_lambda.dashboard.security.settings import Entry

logger = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
SHUTDOWN_TIMEOUT: Final = 2
"""Seconds that answers under way have to end."""
_ADDRESS: Final = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]+):)?(?P<port>[0-9]{1,9})")
_LARGEST_PORT: Final = 65_535
_TAKEN: Final = "another program listens there, so choose another port."


class ListenAddress(NamedTuple):
    """Where to listen; port 0 is any that is free."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> "ListenAddress":
        """The address that `[HOST:]PORT` names; on loopback without a host. Raises ConfigError."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise ConfigError(f"--dashboard {text} is refused: write PORT or HOST:PORT, such as 127.0.0.1:8080.")
        if int(match["port"]) > _LARGEST_PORT:
            raise ConfigError(f"--dashboard {text} is refused: a port is a number from 1 to {_LARGEST_PORT}.")
        return cls((match["host"] or LOOPBACK).strip("[]"), int(match["port"]))

    @property
    def url(self) -> str:
        """For browsers."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def dashboard_at(address: str | None, app: Lowkiq) -> "AbstractContextManager[object]":
    """Serves the app's dashboard inside the block, if an address is given.

    Raises ConfigError at once if its packages are not installed, or if other machines could reach it without
    authentication. Raises it at the start of the block if the port cannot listen at the address.
    """
    if address is None:
        return nullcontext()
    place = ListenAddress.of(address)
    try:
        import uvicorn  # noqa: F401, PLC0415 - only where a dashboard is asked for

        from lowkiq_lambda.dashboard.security.settings import entry_for  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise ConfigError(f"--dashboard needs {error.name}: pip install 'lowkiq-lambda[local]'.") from error
    return _served(place, entry_for(place.host, os.environ), app)


@contextmanager
def _served(address: ListenAddress, entry: "Entry", app: Lowkiq) -> Iterator[None]:
    from lowkiq_lambda.dashboard import dashboard  # noqa: PLC0415 - only where a dashboard is asked for
    from lowkiq_lambda.local import dashboard_connections  # noqa: PLC0415 - as above

    with _listening(address) as listening:
        served, proxies = _behind(entry.proxies, dashboard(app, auth=entry.auth))
        server = dashboard_connections.BoundedServer(
            served,
            dashboard_connections.of_this_process(),
            proxies,
            lifespan="off",
            # It would believe whatever comes from this machine, so every caller where a proxy runs on it.
            proxy_headers=False,
            log_config=None,
            access_log=False,
            server_header=False,
            log_level="warning",
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        )
        url = ListenAddress(address.host, listening.getsockname()[1]).url
        # A daemon thread: an answer that hangs does not keep the process.
        thread = Thread(target=_serve, args=(server, listening), name="lowkiq-dashboard", daemon=True)
        thread.start()
        if entry.password is None:
            logger.info("dashboard", extra={"url": url})
        else:
            # Written to the terminal that started the process, and not to a log.
            sys.stderr.write(f"dashboard at {url} for this machine alone, password {entry.password}\n")
            sys.stderr.flush()
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(SHUTDOWN_TIMEOUT + 1)


def _listening(address: ListenAddress) -> socket.socket:
    """Refused at once where the address cannot be had, not later in a thread."""
    try:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server(address, family=family, backlog=128)
    except OSError as error:
        why = _TAKEN if error.errno == errno.EADDRINUSE else f"{error.strerror or error}."
        raise ConfigError(f"The dashboard cannot listen at {address.url}: {why}") from error


def _behind(proxies: Sequence[str], app: "ASGIApp") -> tuple["ASGIApp", "Container[str | None]"]:
    """The app with trust in these proxies only, for the origin of a request and for TLS; and a set of the proxies."""
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware  # noqa: PLC0415 - as above

    from lowkiq_lambda.dashboard.security.caller import PEER  # noqa: PLC0415 - as above

    believing = ProxyHeadersMiddleware(cast("Any", app), [*proxies])

    async def served(scope: "Scope", receive: "Receive", send: "Send") -> None:
        await cast("ASGIApp", believing)({**scope, PEER: scope.get("client")}, receive, send)

    return served, cast("Container[str | None]", believing.trusted_hosts)


def _serve(server: "uvicorn.Server", listening: socket.socket) -> None:
    try:
        server.run(sockets=[listening])
    except Exception:
        logger.exception("the dashboard ended; jobs go on")
