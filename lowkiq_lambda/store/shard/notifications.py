"""Receives notifications of shards that have work sooner than before: one connection of its own for all queues.

A lost notification costs at most one poll, so this module does not retry: a broken connection is an error, and the
listener subscribes again and looks at the pushes of the meantime.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from time import monotonic
from types import TracebackType
from typing import Final, NamedTuple, Self

from lowkiq_lambda.base.clock import at_most
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.settings.protocols import Credentials, RedisPlug
from lowkiq_lambda.store.server.connection import Client, Subscription, connect, subscribe
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, translate, translated
from lowkiq_lambda.store.server.pipelines import next_message
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import REQUESTS, ShardRef

SILENCE: Final = 10.0
"""Seconds without a word after which the server is asked whether it is still there."""

_MAX_DIGITS: Final = 10
_OFFER: Final = b"offer "
REQUEST: Final = "request "
"""A message begins with it that tells of requests for ids in flight."""


class Heard(NamedTuple):
    """The shards that a message names: they have work, or their limited queue has a permit for them if they have."""

    shards: list[ShardRef]
    is_offer: bool = False
    is_request: bool = False
    """Something is wanted of what runs there."""


class Notifications:
    """Subscribes to the channels of these shards' queues. For one thread."""

    def __init__(
        self,
        url: str,
        shards: Iterable[ShardRef],
        *,
        timeout: float,
        credentials: Credentials | None = None,
        client: RedisPlug | None = None,
    ) -> None:
        self._url = url
        self._given = client
        self._timeout = timeout
        self._credentials = credentials
        self._shards = _by_channel(shards)
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._heard_at = 0.0
        self._asked_at: float | None = None

    def go_by(self, shards: Iterable[ShardRef]) -> None:
        """These are the shards of the queues from now on."""
        self._shards |= _by_channel(shards)

    def open(self) -> None:
        """Subscribe, on a new connection; what is pushed from now on is heard. Raises BackendError."""
        self.close()
        # Two connections: a cluster's client may ask a node for the others beside the subscription.
        self._client = connect(
            self._url,
            max_connections=2,
            timeout=self._timeout,
            pool_timeout=self._timeout,
            credentials=self._credentials,
            client=self._given,
        )
        with translated():
            self._subscription = subscribe(self._client, self._shards)
            for _ in self._shards:
                if self._next(self._timeout) is None:
                    raise BackendUnavailable("The server did not confirm a subscription in time.")

    def receive(self, seconds: float) -> Heard:
        """The shards of the next message; no shards after `seconds`, or the longest wait, without one.

        Raises BackendError if the connection is lost, or the server does not answer a check.
        """
        try:
            message = self._next(seconds)
            if message is not None:
                return self._said(message)
            self._check_silence()
        except REDIS_ERRORS as error:
            raise translate(error) from error
        return Heard([])

    def close(self) -> None:
        """Let the connection go; `open` makes another."""
        if self._subscription is not None:
            self._subscription.end()
        if self._client is not None and self._given is None:
            self._client.close()
        self._subscription = self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next(self, seconds: float) -> list[bytes] | None:
        if self._subscription is None:
            raise BackendUnavailable("The subscription is not open.")
        message = next_message(self._subscription.connection, at_most(seconds))
        if message is not None:
            self._heard_at, self._asked_at = monotonic(), None
        return message

    def _said(self, message: list[bytes]) -> Heard:
        kind, channel, *body = message
        if kind != b"message" or channel not in self._shards:
            return Heard([])
        numbers = body[0].removeprefix(_OFFER)
        if (ids := body[0].removeprefix(REQUEST.encode())) != body[0]:
            return Heard(list(self._named(channel, ids)), is_request=True)
        return Heard(list(self._named(channel, numbers)), is_offer=numbers != body[0])

    def _named(self, channel: bytes, numbers: bytes) -> Iterator[ShardRef]:
        """The shards of these numbers. Any client may publish: values that are not numbers of ours are skipped."""
        shards = self._shards[channel]
        for number in numbers.split(b","):
            if number.isdigit() and len(number) < _MAX_DIGITS and int(number) in shards:
                yield shards[int(number)]

    def _check_silence(self) -> None:
        if self._subscription is None:
            return
        if self._asked_at is not None:
            if monotonic() - self._asked_at > self._timeout:
                raise BackendUnavailable("The server does not answer on the connection of notifications.")
        elif monotonic() - self._heard_at > SILENCE:
            self._asked_at = monotonic()
            self._subscription.connection.send_command("PING")


def ask_holder(backend: Backend, shard: ShardRef, words: Collection[str]) -> None:
    """Note that the shard has requests, and let its holder hear of them, by the words of a script for their ids."""
    backend.note_use(shard, REQUESTS)
    if "asked" in words:
        backend.publish(shard.channel, f"{REQUEST}{shard.number}")


def _by_channel(shards: Iterable[ShardRef]) -> dict[bytes, dict[int, ShardRef]]:
    """The shards by their numbers, for each channel."""
    by_channel: defaultdict[bytes, dict[int, ShardRef]] = defaultdict(dict)
    for shard in shards:
        by_channel[shard.channel.encode()][shard.number] = shard
    return {**by_channel}
