"""What the proxies share: connections forwarded by an event loop in a thread of its own."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from tests.kit.servers.ports import HOST, free_port
from tests.kit.servers.started import Started

Result = TypeVar("Result")

_CHUNK = 65_536
_ROUNDS = 10
_CALL_TIMEOUT = 10.0


class HasAddress(Protocol):
    """A server that a proxy can stand before."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""


@dataclass(eq=False)
class Link:
    """One client's connection and ours to the target."""

    client_reader: asyncio.StreamReader
    client_writer: asyncio.StreamWriter
    target_reader: asyncio.StreamReader
    target_writer: asyncio.StreamWriter

    def cut(self) -> None:
        """Close both sides at once."""
        self.client_writer.transport.abort()
        self.target_writer.transport.abort()


class Proxy(Started):
    """Forwards what it reads, both ways; the target may be restarted behind it."""

    host = HOST

    def __init__(self, target: HasAddress | tuple[str, int], *, tls: ssl.SSLContext | None = None) -> None:
        self.port = free_port()
        self._target = target
        self._tls = tls
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__, daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port

    @property
    def url(self) -> str:
        """What a client is given."""
        return f"redis://{self.host}:{self.port}/0"

    @property
    def target(self) -> tuple[str, int]:
        """Host and port of what it stands before."""
        return self._target if isinstance(self._target, tuple) else self._target.address

    def start(self) -> Self:
        """Listen, with connections accepted when this returns."""
        self._thread.start()
        self._call(self._listen())
        return self

    def close(self) -> None:
        """Cut all connections and stop listening."""
        if not self._thread.is_alive():
            return
        self._call(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Close all open connections, which they are when this returns; new ones are accepted."""
        self._call(self._cut_links())

    async def upstream(self, link: Link) -> None:
        """Forward the client's bytes until it closes."""
        while chunk := await link.client_reader.read(_CHUNK):
            link.target_writer.write(chunk)
            await link.target_writer.drain()

    async def downstream(self, link: Link) -> None:
        """Forward the target's bytes until it closes."""
        while chunk := await link.target_reader.read(_CHUNK):
            link.client_writer.write(chunk)
            await link.client_writer.drain()

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_TIMEOUT)

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, self.host, self.port, ssl=self._tls)

    async def _stop_listening(self) -> None:
        if self._listener is not None:
            # What was accepted and has no transport yet would be left open for ever by a listener that is closed.
            for listening in self._listener.sockets:
                self._loop.remove_reader(listening.fileno())
            await self._some_rounds()
            self._listener.close()
            self._listener = None

    async def _cut_links(self) -> None:
        for link in [*self._links]:
            link.cut()
        await self._some_rounds()

    async def _shut(self) -> None:
        await self._stop_listening()
        await self._cut_links()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait([*self._tasks])
        await self._some_rounds()

    async def _some_rounds(self) -> None:
        """Let the loop go on: an aborted transport closes its socket, or a TLS one that below it, a round later."""
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._forward(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(reader, writer, *await asyncio.open_connection(*self.target))
        pumps = [asyncio.ensure_future(pump(link)) for pump in (self.upstream, self.downstream)]
        self._links.add(link)
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._links.discard(link)
            link.cut()
