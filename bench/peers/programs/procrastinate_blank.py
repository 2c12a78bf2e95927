"""procrastinate: calls of `batch_defer_async`; its worker is an event loop. Jobs are rows of PostgreSQL."""

import asyncio

import procrastinate

from bench.peers.programs import meter

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=meter.URL, max_size=20))


async def _blank(payload: str) -> None:
    await meter.blank_async(payload)


blank = app.task(name="blank")(_blank)


async def _push() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with meter.pushing():
            for payloads in meter.calls():
                await blank.batch_defer_async(*({"payload": payload} for payload in payloads))


def push() -> None:
    """Defer many at once, into a new schema."""
    asyncio.run(_push())
