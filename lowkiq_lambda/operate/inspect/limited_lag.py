"""Tells what limits of a queue keep back from what no process drains: the lag of ids, and the shards that could run."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from lowkiq_lambda.declare.worker import Worker, queues_before
from lowkiq_lambda.operate.inspect.limits import QueueLimits
from lowkiq_lambda.store.server.together import side_by_side
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Metrics, QueueMetrics

Counted = TypeVar("Counted", bound=Metrics)


def apart(
    reader: ShardReader, workers: Sequence[type[Worker[Any]] | None], limits: Iterable[Counted]
) -> Iterator[Counted]:
    """The numbers of the queues of these workers, those that are late by a limit with that as their `limited_lag`.

    A queue without limits, or that is not late, costs nothing. The others are asked side by side, behind all replies.
    """
    coming = zip(workers, limits, strict=True)
    for worker, metrics in coming:
        if _may_wait(worker, metrics):
            # All replies first, as there may be no other connection than the one that they come from.
            rest = [(worker, metrics), *coming]
            waiting = [partial(_told, reader, *each) for each in rest if _may_wait(*each)]
            looks = side_by_side(waiting)
            yield from (next(looks).result if _may_wait(*each) else each[1] for each in rest)
            return
        yield metrics


def _may_wait(worker: type[Worker[Any]] | None, metrics: Metrics) -> bool:
    if worker is None or not metrics.lag:
        return False
    return bool(metrics.limited or worker.max_running is not None or worker.rate is not None or queues_before(worker))


def _told(reader: ShardReader, worker: type[Worker[Any]] | None, metrics: Counted) -> Counted:
    if worker is None:
        return metrics
    since, most_holders = QueueLimits(reader, worker).kept_back()
    wanted_holders = max(metrics.holders, int(min(metrics.wanted_holders, most_holders)))
    metrics = msgspec.structs.replace(metrics, wanted_holders=wanted_holders)
    if since is None:
        return metrics
    if isinstance(metrics, QueueMetrics):
        metrics = msgspec.structs.replace(metrics, shards=tuple(_without(shard, since) for shard in metrics.shards))
    return _without(metrics, since)


def _without(metrics: Counted, since: float) -> Counted:
    """`since`: the seconds that count."""
    if metrics.oldest_due_age <= since:
        return metrics
    return msgspec.structs.replace(
        metrics,
        # Ids in flight do not wait for a limit.
        lag=max(since, metrics.in_flight_lag),
        oldest_due_age=since,
        limited_lag=max(metrics.limited_lag, metrics.oldest_due_age),
    )
