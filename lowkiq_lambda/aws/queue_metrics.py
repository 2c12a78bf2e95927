"""The task of a tick that publishes each queue in numbers, as embedded metrics in the function's log."""

from collections.abc import Callable, Iterable
from typing import Final

from lowkiq_lambda.aws.emf import publish
from lowkiq_lambda.aws.tick import Tick
from lowkiq_lambda.store.inspect.metrics import queue_totals
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views import Metrics

Published = dict[str, float]

_OF_ALL: Final[dict[str, Callable[[Iterable[float]], float]]] = {
    "lag": max,
    "oldest_due_age": max,
    "length": sum,
    "morgue": sum,
}
"""What is published, and how queues are taken together."""
HELD: Final = "held"
"""Published only of queues that hold ids, or may: each metric of a queue costs."""


def publish_queues(tick: Tick) -> dict[str, Published]:
    """The numbers of each queue by its name, published under the dimensions `function` and `queue`.

    Under `function` alone stands the app as a whole, with the sum of lengths and the largest lag and age: an alarm
    needs to know no queue by name.
    """
    names = [queue.worker.queue_name for queue in tick.queues]
    measured = queue_totals(ShardReader(tick.app.backend, tick.retry_for), [queue.shards for queue in tick.queues])
    holds = [queue.worker.dead_head == "hold" for queue in tick.queues]
    by_queue = {
        name: _published(metrics, may_hold) for name, metrics, may_hold in zip(names, measured, holds, strict=True)
    }
    namespace = tick.settings.metrics_namespace
    for name, published in by_queue.items():
        # Not rolled up: CloudWatch would take the lengths of queues for samples of one.
        publish(namespace, tick.function_name, name, published, roll_up=False)
    publish(namespace, tick.function_name, None, _of_all(list(by_queue.values())))
    return by_queue


def _published(metrics: Metrics, may_hold: bool) -> Published:  # noqa: FBT001 - of the queue
    held = {HELD: metrics.held} if may_hold or metrics.held else {}
    return {
        "lag": metrics.lag,
        "oldest_due_age": metrics.oldest_due_age,
        "length": metrics.length,
        "morgue": metrics.morgue_length,
        **held,
    }


def _of_all(queues: list[Published]) -> Published:
    of_all = {name: unite([queue[name] for queue in queues] or [0]) for name, unite in _OF_ALL.items()}
    held = [queue[HELD] for queue in queues if HELD in queue]
    return {**of_all, HELD: sum(held)} if held else of_all
