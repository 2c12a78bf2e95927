"""Queues in numbers: one round trip for each node, whatever they hold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import msgspec

from lowkiq_lambda.store.backend import Beside, Reply, Result
from lowkiq_lambda.store.keys import ShardRef
from lowkiq_lambda.store.reading import Reader
from lowkiq_lambda.views import Metrics, Numbers, QueueMetrics

_Time: TypeAlias = float | None
_Line: TypeAlias = tuple[int, int, int, int, int, int, int, int, _Time, _Time, _Time, list[float]]
_decode: Final = msgspec.json.Decoder(list[_Line]).decode

_Values: TypeAlias = tuple[float, ...]
"""Those of a shard, or several, in the order of the fields of `Metrics`."""
_FIELDS: Final = Metrics.__struct_fields__
_LASTING: Final = frozenset({"lag", "oldest_due_age"})
_UNITED_BY: Final[Sequence[Callable[[Iterable[Any]], Any]]] = [max if name in _LASTING else sum for name in _FIELDS]
"""How shards are taken together, by field: the longest time, and the sum of anything else."""


def measure(reader: Reader, queues: Sequence[Sequence[ShardRef]]) -> list[QueueMetrics]:
    """The numbers of each queue, given by its shards, and of each shard. Raises BackendError."""

    def whole(_: object, queues: Iterator[list[_Values]]) -> list[QueueMetrics]:
        return [
            QueueMetrics(**_named(_united(shards)), shards=tuple([Metrics(**_named(values)) for values in shards]))
            for shards in queues
        ]

    return _look(reader, queues, (), whole, together=False)


def totals(reader: Reader, queues: Sequence[Sequence[ShardRef]]) -> list[Metrics]:
    """As `measure`, without the shards, for less."""
    return look_at_totals(reader, queues, (), lambda _, each: [*each])


def look_at_totals(
    reader: Reader,
    queues: Sequence[Sequence[ShardRef]],
    beside: Sequence[Beside],
    see: Callable[[Sequence[Any], Iterator[Metrics]], Result],
) -> Result:
    """What is seen in the answers, or redis-py errors, to commands, and in what `totals` has, queue by queue.

    It may be called again where the connection breaks. Raises BackendError.
    """

    def whole(answers: Sequence[Any], queues: Iterator[list[_Values]]) -> Result:
        return see(answers, (Metrics(**_named(_united(values))) for values in queues))

    return _look(reader, queues, beside, whole, together=True)


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


def _look(
    reader: Reader,
    queues: Sequence[Sequence[ShardRef]],
    beside: Sequence[Beside],
    see: Callable[[Sequence[Any], Iterator[list[_Values]]], Result],
    *,
    together: bool,
) -> Result:
    """By queue the values of each shard, or of those that lie together; and the answers to further commands."""
    by_queue = [reader.groups(queue) for queue in queues]
    places = [place for queue in by_queue for place in queue]

    def by_shard(answers: Sequence[Any], replies: Iterator[Reply]) -> Result:
        nows = reader.backend.now_each([place.shards[0] for place in places])
        found = ([_values(line, now) for line in _decode(reply[0])] for reply, now in zip(replies, nows, strict=True))
        return see(answers, ([*chain.from_iterable(islice(found, len(queue)))] for queue in by_queue))

    args = ("1" if together else "",)
    return reader.look("measure", [(place, args) for place in places], beside, by_shard)


def _values(line: _Line, now: float) -> _Values:
    length, retries, busy, buried, processed, retried, dead, payloads, due, since, flight_since, pauses = line
    earliest_due = now if due is None else min(now, due)
    oldest = min(earliest_due, now if since is None else since, now if flight_since is None else flight_since)
    return (
        *(length, length - retries, retries, busy, buried),
        *(now - oldest, now - earliest_due),
        *(processed, retried + dead, dead, payloads),
        sum(paused_until > now for paused_until in pauses),
    )


def _united(shards: Sequence[_Values]) -> _Values:
    return tuple([unite(column) for unite, column in zip(_UNITED_BY, zip(*shards, strict=True), strict=True)])


def _named(values: _Values) -> dict[str, Any]:
    return dict(zip(_FIELDS, values, strict=True))
