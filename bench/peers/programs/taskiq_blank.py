"""taskiq with taskiq-redis: coroutines that send a job each, by a list or a stream; its worker is an event loop."""

import asyncio

from taskiq_redis import ListQueueBroker, RedisStreamBroker

from bench.peers.programs import meter

broker = (
    ListQueueBroker(meter.URL, queue_name="blank")
    if meter.setting("broker") == "list"
    else RedisStreamBroker(meter.URL, queue_name="blank", consumer_id="0")
)
blank = broker.task(task_name="blank")(meter.blank_async)


async def _push() -> None:
    await broker.startup()
    await meter.push_side_by_side(blank.kiq)
    await broker.shutdown()


def push() -> None:
    """Send jobs."""
    asyncio.run(_push())
