"""Bounds the connections to the dashboard's port, which share file descriptors with the workers of the process.

Anybody who reaches the port can open connections without signing in. Each one takes a descriptor, and a handler that
cannot open a file fails its job. So connections are few, few from one address, and none lasts that makes no progress.
"""

import asyncio
import errno
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lowkiq_lambda.base.clock import SystemClock

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Container

logger = logging.getLogger(__name__)

ACCEPTED_AT_ONCE: Final = 32
"""Connections that asyncio accepts before it looks at any of them; the operating system queues as many."""
_NO_MORE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_REFUSAL: Final = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class ConnectionLimits(NamedTuple):
    """What connections may take. Times are in seconds."""

    in_all: int = 64
    from_one: int = 16
    """From one address; the trusted proxies count in all alone."""
    header: float = 10.0
    """The longest time until a request has its whole header."""
    standstill: float = 30.0
    """The longest time for the body of a request, and for a client to read a part of the response."""
    quiet: float = 60.0
    """Between two warnings of the same kind."""

    def within(self, descriptors: int) -> "ConnectionLimits":
        """These, but at most an eighth of the file descriptors that the process may have (-1: as many as it likes)."""
        return self if descriptors < 0 else self._replace(in_all=max(1, min(self.in_all, descriptors // 8)))


def of_this_process() -> ConnectionLimits:
    """The limits, as far as the file descriptors of this process allow them."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ModuleNotFoundError:
        return ConnectionLimits()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return ConnectionLimits().within(-1 if limit == resource.RLIM_INFINITY else limit)


class BoundedServer(uvicorn.Server):
    """Serves an ASGI app to a bounded number of connections. `proxies`: the addresses of trusted proxies."""

    def __init__(
        self,
        app: Any,  # noqa: ANN401 - uvicorn and starlette have types of their own for an app
        limits: ConnectionLimits,
        proxies: "Container[str | None]" = (),
        **options: Any,  # noqa: ANN401 - as uvicorn.Config has them
    ) -> None:
        protocol = cast("type[asyncio.Protocol]", partial(_Connection, self))
        # Other loops and protocols would be unbounded, and are taken where their packages are installed.
        bounded: dict[str, Any] = {"http": protocol, "ws": "none", "loop": "asyncio", "backlog": ACCEPTED_AT_ONCE}
        super().__init__(uvicorn.Config(app, **options, **bounded))
        self.limits = limits
        self._proxies = proxies
        self._quiet_until: dict[str, float] = {}

    async def startup(self, sockets: "list[socket.socket] | None" = None) -> None:
        """Begin to listen."""
        asyncio.get_running_loop().set_exception_handler(self._on_error)
        await super().startup(sockets)

    def has_room_for(self, address: str | None) -> bool:
        """Whether a connection from this address may stay."""
        connections = self.server_state.connections
        if len(connections) >= self.limits.in_all:
            self.warn("the dashboard has too many connections: new ones are closed", connections=len(connections))
            return False
        same = sum(isinstance(each, _Connection) and each.address == address for each in connections)
        if same >= self.limits.from_one and address not in self._proxies:
            self.warn("an address has too many connections to the dashboard: new ones are closed", address=address)
            return False
        return True

    def warn(self, message: str, **fields: object) -> None:
        """Log it, unless it was logged a moment ago."""
        now = SystemClock.monotonic()
        if now >= self._quiet_until.get(message, now):
            self._quiet_until[message] = now + self.limits.quiet
            logger.warning(message, extra=fields)

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_MORE:
            self.warn("the dashboard accepts no connections: the process has no file descriptors left")
        else:
            loop.default_exception_handler(context)


class _Connection(H11Protocol):
    """A connection that is closed if it makes no progress."""

    def __init__(self, server: BoundedServer, **options: Any) -> None:  # noqa: ANN401 - as uvicorn has them
        super().__init__(**options)
        self._bounds = server
        self._awaited: object = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str | None:
        """Of the client, as the operating system names it."""
        return self.client[0] if self.client else None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Keep it if there is room."""
        peer = transport.get_extra_info("peername")
        if not self._bounds.has_room_for(peer[0] if peer else None):
            transport.set_protocol(asyncio.Protocol())
            transport.write(_REFUSAL)
            transport.close()
            return
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Await the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The client reads more slowly than the response comes."""
        super().pause_writing()
        self._write_timer = self._close_in(self._bounds.limits.standstill)

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        _cancel(self._write_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        _cancel(self._timer)
        _cancel(self._write_timer)
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Limit the time for what the client has to send next; more bytes of the same give it no more time."""
        awaited = self.conn.their_state
        if awaited is self._awaited:
            return
        self._awaited = awaited
        _cancel(self._timer)
        limits = self._bounds.limits
        if awaited is h11.IDLE:
            self._timer = self._close_in(limits.header)
        elif awaited is h11.SEND_BODY:
            self._timer = self._close_in(limits.standstill)

    def _close_in(self, seconds: float) -> asyncio.TimerHandle:
        close: Callable[[], None] = self.transport.abort
        return self.loop.call_later(seconds, close)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
