"""Queues in numbers: one round trip for each node, whatever they hold."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from lowkiq_lambda.store.backend import Backend, Reply
from lowkiq_lambda.store.keys import ShardRef
from lowkiq_lambda.views import Metrics, Numbers, QueueMetrics

_Time: TypeAlias = float | None
_Line: TypeAlias = tuple[int, int, int, int, int, int, int, int, _Time, _Time, _Time]
_decode: Final = msgspec.json.Decoder(_Line).decode

_LASTING: Final = frozenset({"lag", "oldest_due_age"})
_TOGETHER: Final[Mapping[str, tuple[Callable[[Iterable[Any]], Any], Callable[[Metrics], Any]]]] = {
    field: (max if field in _LASTING else sum, attrgetter(field)) for field in Metrics.__struct_fields__
}
"""How shards are taken together, by field: the longest time, and the sum of anything else."""


def measure(backend: Backend, queues: Sequence[Sequence[ShardRef]], patience: float) -> list[QueueMetrics]:
    """The numbers of each queue, given by its shards. Raises BackendError."""
    shards = [shard for queue in queues for shard in queue]
    return measured(backend, queues, backend.read_each("measure", shards, patience))


def measured(backend: Backend, queues: Sequence[Sequence[ShardRef]], replies: Sequence[Reply]) -> list[QueueMetrics]:
    """What `measure.lua` just said of the shards, one after the other, by queue."""
    shards = [shard for queue in queues for shard in queue]
    nows = backend.now_each(shards)
    found = iter([_shard(reply, now) for reply, now in zip(replies, nows, strict=True)])
    return [_queue(tuple(next(found) for _ in queue)) for queue in queues]


def numbers(metrics: Metrics) -> Numbers:
    """Those that everybody asks for."""
    return {"length": metrics.length, "morgue_length": metrics.morgue_length, "lag": metrics.lag}


def in_total(each: Sequence[Numbers]) -> Numbers:
    """Sums, and the largest lag; zeros where there is nothing."""
    return {
        "length": sum(one["length"] for one in each),
        "morgue_length": sum(one["morgue_length"] for one in each),
        "lag": max((one["lag"] for one in each), default=0.0),
    }


def _shard(reply: Reply, now: float) -> Metrics:
    length, retries, busy, morgue_length, processed, retried, dead, payloads, due, since, flight_since = _decode(
        reply[0]
    )
    earliest_due = now if due is None else due
    oldest = min(earliest_due, now if since is None else since, now if flight_since is None else flight_since)
    return Metrics(
        length=length,
        fresh=length - retries,
        retries=retries,
        busy=busy,
        morgue_length=morgue_length,
        lag=max(0.0, now - oldest),
        oldest_due_age=max(0.0, now - earliest_due),
        processed=processed,
        failed=retried + dead,
        dead=dead,
        payloads=payloads,
    )


def _queue(shards: tuple[Metrics, ...]) -> QueueMetrics:
    of_all = {field: unite(map(value, shards)) for field, (unite, value) in _TOGETHER.items()}
    return QueueMetrics(**of_all, shards=shards)
