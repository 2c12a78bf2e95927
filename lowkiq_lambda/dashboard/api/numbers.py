"""Queues and shards in numbers."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lowkiq_lambda.dashboard.api.asked import OfQueue, worker_named
from lowkiq_lambda.dashboard.api.operations import Nothing
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.views import Metrics, ShardDetails, Stats


class QueueNumbers(Metrics, frozen=True, kw_only=True):
    """A queue in numbers, as its shards are; the lag is that of its most lagging shard."""

    name: str
    shards_count: int


class Queues(msgspec.Struct, frozen=True):
    """All queues of the app, in the order of their declaration."""

    queues: list[QueueNumbers]


class ShardNumbers(ShardDetails, frozen=True, kw_only=True):
    """A shard in numbers, and who holds it. Times are Unix seconds by the server's clock, `at` is when this was so.

    `suspects`: ids that run alone, and first. `due_at`: when the first of what waits is due. `owner`, `acquired_at` and
    `token` are those of the holder, or of the last one there was. `held_until`: when the lease ends; 0 where it was
    given back. `gave_up`: nothing that the holder writes is accepted any more, as its process is about to exit or
    somebody evicted it. `paused_until`: when a pause ends or ended; null where there is none, or where it lasts until
    somebody resumes the queue. `woken_until`: somebody was told to start a drain, and has until then to come.
    """

    paused: Annotated[
        bool, Meta(description="Whether nobody takes the shard now; without a `paused_until`, until it is resumed.")
    ]


class Shards(msgspec.Struct, frozen=True):
    """The shards of a queue, in their order, and who holds them."""

    shards: list[ShardNumbers]


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
    found = visit.app.queries(worker_named(visit, asked.queue)).shards()
    return Shards([ShardNumbers(**msgspec.structs.asdict(shard), paused=shard.is_paused) for shard in found])


def _numbers(metrics: Metrics) -> dict[str, Any]:
    return {field.name: getattr(metrics, field.name) for field in msgspec.structs.fields(Metrics)}
