"""saq: coroutines that enqueue a job each; its worker is an event loop."""

import asyncio

from saq import Queue

from bench.peers.programs import meter

queue = Queue.from_url(meter.URL, name="blank")


async def blank(_context: object, *, payload: str) -> None:
    """The handler."""
    await meter.blank_async(payload)


settings = {"queue": queue, "functions": [blank], "concurrency": int(meter.setting("concurrency"))}


async def _push() -> None:
    await queue.connect()
    # No result is kept, as with the others.
    await meter.push_side_by_side(lambda payload: queue.enqueue("blank", payload=payload, ttl=-1))
    await queue.disconnect()


def push() -> None:
    """Enqueue jobs."""
    asyncio.run(_push())
