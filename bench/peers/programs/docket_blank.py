"""docket: calls of `add_many`; its worker is an event loop. `python -m bench.peers.programs.docket_blank` works."""

import asyncio
from datetime import timedelta

from docket import Docket, Worker

from bench.peers.programs import meter


async def blank(payload: str) -> None:
    """The handler."""
    await meter.blank_async(payload)


def _docket() -> Docket:
    # No result is kept, as with the others. A hundred tasks at once need more than a pool's hundred connections.
    return Docket(name="blank", url=f"{meter.URL}?max_connections=1000", execution_ttl=timedelta(0))


async def _push() -> None:
    async with _docket() as docket:
        docket.register(blank)
        with meter.pushing():
            for payloads in meter.calls():
                await docket.add_many([docket.call(blank)(payload) for payload in payloads])


def push() -> None:
    """Add many at once."""
    asyncio.run(_push())


async def _work() -> None:
    # Its command line takes whole seconds alone.
    interval = timedelta(milliseconds=int(meter.setting("check_ms")))
    async with _docket() as docket:
        docket.register(blank)
        concurrency = int(meter.setting("concurrency"))
        async with Worker(docket, concurrency=concurrency, minimum_check_interval=interval) as worker:
            await worker.run_forever()


if __name__ == "__main__":
    asyncio.run(_work())
