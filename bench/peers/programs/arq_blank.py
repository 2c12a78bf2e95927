"""arq: coroutines that enqueue a job each, as it has no call for many; its worker is an event loop."""

import asyncio

from arq import create_pool
from arq.connections import RedisSettings

from bench.peers.programs import meter


async def blank(_context: object, payload: str) -> None:
    """The handler."""
    await meter.blank_async(payload)


class WorkerSettings:
    """As its command line reads them."""

    functions = (blank,)
    redis_settings = RedisSettings.from_dsn(meter.URL)
    max_jobs = int(meter.setting("concurrency"))
    poll_delay = float(meter.setting("poll_delay"))
    keep_result = 0


async def _push() -> None:
    pool = await create_pool(WorkerSettings.redis_settings)
    await meter.push_side_by_side(lambda payload: pool.enqueue_job("blank", payload))


def push() -> None:
    """Enqueue jobs."""
    asyncio.run(_push())
