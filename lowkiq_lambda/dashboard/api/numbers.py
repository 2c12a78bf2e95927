"""Queues and shards in numbers."""

from typing import Any

import msgspec

from lowkiq_lambda.dashboard.api.asked import OfQueue, worker_named
from lowkiq_lambda.dashboard.api.operations import Nothing
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.views import Metrics, ShardView, Stats


class QueueNumbers(Metrics, frozen=True, kw_only=True):
    """A queue in numbers, as its shards are; the lag is that of its most lagging shard."""

    name: str
    shards_count: int


class Queues(msgspec.Struct, frozen=True):
    """All queues of the app, in the order of their declaration."""

    queues: list[QueueNumbers]


class Shards(msgspec.Struct, frozen=True):
    """The shards of a queue, in their order, and who holds them."""

    shards: list[ShardView]


def stats(visit: Visit, asked: Nothing) -> Stats:  # noqa: ARG001 - nothing is asked
    """How much waits, how much is in the morgue, and the lag, in total and by queue; as Lowkiq answers it."""
    return visit.app.stats()


def queues(visit: Visit, asked: Nothing) -> Queues:  # noqa: ARG001 - as above
    """All queues in numbers."""
    return Queues(
        [
            QueueNumbers(name=name, shards_count=len(found.shards), **_numbers(found))
            for name, found in visit.app.metrics().items()
        ]
    )


def shards(visit: Visit, asked: OfQueue) -> Shards:
    """The shards of a queue in numbers, and who holds them."""
    return Shards(visit.app.queries(worker_named(visit, asked.queue)).shards())


def _numbers(metrics: Metrics) -> dict[str, Any]:
    return {field.name: getattr(metrics, field.name) for field in msgspec.structs.fields(Metrics)}
