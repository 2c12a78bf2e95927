"""Queues in numbers: one round trip for each node, whatever they hold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import msgspec

from lowkiq_lambda.store.backend import Beside
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
    with _measured(reader, queues, together=False) as (_, found):
        return [
            QueueMetrics(**_named(_united(shards)), shards=tuple([Metrics(**_named(values)) for values in shards]))
            for shards in found
        ]


def totals(reader: Reader, queues: Sequence[Sequence[ShardRef]]) -> list[Metrics]:
    """As `measure`, without the shards, for less."""
    with totals_beside(reader, queues) as (_, found):
        return [*found]


@contextmanager
def totals_beside(
    reader: Reader, queues: Sequence[Sequence[ShardRef]], beside: Sequence[Beside] = ()
) -> Iterator[tuple[Sequence[Any], Iterator[Metrics]]]:
    """The answers, or redis-py errors, to commands; and what `totals` has, as it comes, until the block ends."""
    with _measured(reader, queues, beside, together=True) as (told, found):
        yield told, (Metrics(**_named(_united(values))) for values in found)


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


@contextmanager
def _measured(
    reader: Reader, queues: Sequence[Sequence[ShardRef]], beside: Sequence[Beside] = (), *, together: bool
) -> Iterator[tuple[Sequence[Any], Iterator[list[_Values]]]]:
    """By queue the values of each shard, or of those that lie together; and the answers to further commands."""
    by_queue = [reader.groups(queue) for queue in queues]
    groups = [group for queue in by_queue for group in queue]
    args = ("1" if together else "",)
    with reader.look("measure", [(group, args) for group in groups], beside) as (told, replies):
        nows = reader.backend.now_each([group.shards[0] for group in groups])
        found = ([_values(line, now) for line in _decode(reply[0])] for reply, now in zip(replies, nows, strict=True))
        yield told, ([*chain.from_iterable(islice(found, len(queue)))] for queue in by_queue)


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
