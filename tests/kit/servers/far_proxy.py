"""A proxy before a server that is far away: what is sent arrives later, and does not hold up what is sent behind it."""

import asyncio
from contextlib import suppress

from tests.kit.servers.proxy import HasAddress, Link, Proxy

_CHUNK = 65_536


class FarProxy(Proxy):
    """Forwards requests so many seconds after they came; `away` may be changed at any time."""

    def __init__(self, target: HasAddress | tuple[str, int], away: float = 0.0) -> None:
        super().__init__(target)
        self.away = away

    async def upstream(self, link: Link) -> None:
        """Forward the client's bytes, each at its time, until it closes."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        arriving = asyncio.create_task(self._arrive(link, under_way))
        try:
            while chunk := await link.client_reader.read(_CHUNK):
                under_way.put_nowait((asyncio.get_running_loop().time() + self.away, chunk))
        finally:
            arriving.cancel()
            with suppress(asyncio.CancelledError):
                await arriving

    async def _arrive(self, link: Link, under_way: asyncio.Queue[tuple[float, bytes]]) -> None:
        while True:
            at, chunk = await under_way.get()
            await asyncio.sleep(max(0.0, at - asyncio.get_running_loop().time()))
            link.target_writer.write(chunk)
            await link.target_writer.drain()
