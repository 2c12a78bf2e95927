"""streaq: calls of `enqueue_many`; its worker is an event loop."""

import asyncio

from streaq import Worker

from bench.peers.programs import meter

worker = Worker(
    redis_url=meter.URL,
    queue_name="blank",
    concurrency=int(meter.setting("concurrency")),
    prefetch=int(meter.setting("prefetch")),
)
blank = worker.task(ttl=0, silent=True)(meter.blank_async)


async def _push() -> None:
    async with worker:
        with meter.pushing():
            for payloads in meter.calls():
                await worker.enqueue_many([blank.enqueue(payload) for payload in payloads])


def push() -> None:
    """Enqueue many at once."""
    asyncio.run(_push())
