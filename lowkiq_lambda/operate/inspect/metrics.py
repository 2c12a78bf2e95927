"""Queues in numbers: one round trip for each node, however many jobs they have."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Final, NamedTuple, Self, TypeAlias

import msgspec

from lowkiq_lambda.store.shard.backend import ExtraCommand
from lowkiq_lambda.store.shard.keys import ShardGroup, ShardRef
from lowkiq_lambda.store.shard.reader import Request, ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape
from lowkiq_lambda.store.shard.state import ShardTimes, age
from lowkiq_lambda.views.queues import Metrics, Numbers, QueueMetrics

_Time: TypeAlias = float | None
_Values: TypeAlias = tuple[float, ...]
"""Those of a shard, or several, in the order of the fields of `Metrics`."""
_FIELDS: Final = Metrics.__struct_fields__
_LASTING: Final = frozenset({"lag", "oldest_due_age", "limited_lag", "in_flight_lag", "paused_lag"})
_UNITED_BY: Final[Sequence[Callable[[Iterable[Any]], Any]]] = [max if name in _LASTING else sum for name in _FIELDS]
"""How shards are taken together, by field: the longest time, and the sum of anything else."""


class _Flight(NamedTuple):
    """Since when a shard has jobs in flight, until when its lease lasts, and since when its time is not counted."""

    since: float
    held_until: float
    uncounted_since: float


class ShardCounts(ReplyShape, frozen=True):
    """The reply of counts.lua for a shard, or the sum of several."""

    length: int
    retries: int
    started: int
    in_flight: int
    morgue_length: int
    done: int
    retried: int
    dead: int
    trimmed: int
    blocked_ever: int
    rejected: int
    superseded: int
    checkpointed: int
    payloads: int
    damaged: int
    discarded: int
    expired: int
    cancelled: int
    blocked: int
    due: int
    paused_due: int
    calls: int
    busy_ms: float
    computing_ms: float
    held_ms: float
    arrivals: int
    due_at: _Time
    since: _Time
    flights: list[_Flight]
    pauses: list[ShardTimes]
    """Those of shards with a pause, whether it is over or not."""
    rests_at: _Time
    tenants_paused_at: _Time
    limited: int
    held_shards: int
    ready_shards: int


class CountsReply(ReplyShape, frozen=True):
    """The reply of counts.lua."""

    scripts = ("counts",)
    counts: bytes
    """JSON: those of each shard, or of all together."""


_decode: Final = msgspec.json.Decoder(list[ShardCounts]).decode


def queue_metrics(reader: ShardReader, queues: Sequence[Sequence[ShardRef]]) -> list[QueueMetrics]:
    """The numbers of each queue, given by its shards, and of each shard. Raises BackendError."""
    call = _CountsCall.of(reader, queues, together=False)
    return [
        QueueMetrics(**_named(_united(shards)), shards=tuple([Metrics(**_named(values)) for values in shards]))
        for shards in call.parsed(reader, reader.ask_each("counts", call.requests))
    ]


def queue_totals(reader: ShardReader, queues: Sequence[Sequence[ShardRef]]) -> list[Metrics]:
    """As `queue_metrics`, without the shards, for less."""
    call = _CountsCall.of(reader, queues, together=True)
    return [*call.totals(reader, reader.ask_each("counts", call.requests))]


@contextmanager
def stream_totals(
    reader: ShardReader, queues: Sequence[Sequence[ShardRef]], extra_commands: Sequence[ExtraCommand]
) -> Iterator[tuple[Sequence[Any], Iterator[Metrics]]]:
    """The answers, or redis-py errors, to extra commands; and the totals of each queue, one by one inside the block."""
    call = _CountsCall.of(reader, queues, together=True)
    with reader.replies("counts", call.requests, extra_commands) as (answers, replies):
        yield answers, call.totals(reader, replies)


def numbers(metrics: Metrics) -> Numbers:
    """Those that everybody asks for."""
    return {"length": metrics.length, "morgue_length": metrics.morgue_length, "lag": metrics.lag}


def in_total(each: Sequence[Numbers]) -> Numbers:
    """Sums, and the largest lag; zeros where there is nothing."""
    return {
        "length": sum(queue["length"] for queue in each),
        "morgue_length": sum(queue["morgue_length"] for queue in each),
        "lag": max((queue["lag"] for queue in each), default=0.0),
    }


class _CountsCall(NamedTuple):
    """The requests for the counts of queues: of each shard, or of those that one call can add up."""

    queues: list[list[ShardGroup]]
    args: Sequence[Sequence[Argument]]
    """Of each group."""

    @classmethod
    def of(cls, reader: ShardReader, queues: Sequence[Sequence[ShardRef]], *, together: bool) -> Self:
        word, grouped = "1" if together else "", [reader.groups(queue) for queue in queues]

        nows = reader.backend.now_each([group.shards[0] for groups in grouped for group in groups])
        return cls(grouped, [(word, now) for now in nows])

    @property
    def groups(self) -> list[ShardGroup]:
        return [group for queue in self.queues for group in queue]

    @property
    def requests(self) -> list[Request]:
        return [*zip(self.groups, self.args, strict=True)]

    def parsed(self, reader: ShardReader, replies: Iterable[Reply]) -> Iterator[list[_Values]]:
        """The values of each queue's shards, or of those that were added up."""
        nows = reader.backend.now_each([group.shards[0] for group in self.groups])
        counts = (_decode(CountsReply.of(reply).counts) for reply in replies)
        rows = ([_values(line, now) for line in lines] for lines, now in zip(counts, nows, strict=True))
        return ([*chain.from_iterable(islice(rows, len(queue)))] for queue in self.queues)

    def totals(self, reader: ShardReader, replies: Iterable[Reply]) -> Iterator[Metrics]:
        """The metrics of each queue."""
        return (Metrics(**_named(_united(values))) for values in self.parsed(reader, replies))


def _values(reply: ShardCounts, now: float) -> _Values:
    resting = [shard for shard in reply.pauses if (shard.paused_until or 0.0) > now]
    over = [shard for shard in reply.pauses if (shard.paused_until or 0.0) <= now]
    waiting = [reply.due_at, reply.since, *chain.from_iterable((shard.due_at, shard.since) for shard in over)]
    flights = [(flight.since, flight.held_until) for flight in reply.flights]
    flights += [(shard.flight_since, shard.held_until) for shard in over if shard.flight_since is not None]
    left = [at for at, until in flights if until <= now]
    paused = [shard.waiting_since for shard in resting]
    return (
        *(reply.length, reply.length - reply.retries, reply.retries, reply.started),
        *(reply.in_flight, reply.morgue_length),
        *(age(now, [*waiting, *[at for at, _ in flights]]), age(now, [*waiting, *left])),
        *(reply.done, reply.retried + reply.dead + reply.blocked_ever, reply.dead, reply.rejected),
        *(reply.checkpointed, reply.payloads),
        *(len(resting), age(now, [*chain.from_iterable(paused), reply.tenants_paused_at])),
        *(reply.damaged, reply.blocked, reply.superseded, reply.trimmed),
        *(reply.limited, age(now, [reply.rests_at]), age(now, [at for at, _ in flights])),
        *(reply.discarded, reply.expired, reply.cancelled),
        *(reply.due - reply.paused_due, reply.paused_due),
        *(reply.calls, reply.busy_ms / 1_000, reply.computing_ms / 1_000),
        # A holder tells of its time when it settles, and a call may go on for long.
        reply.held_ms / 1_000
        + sum(now - flight.uncounted_since for flight in reply.flights if flight.held_until > now),
        reply.arrivals,
        *(reply.held_shards, reply.held_shards + reply.ready_shards),
    )


def _united(shards: Sequence[_Values]) -> _Values:
    return tuple([unite(column) for unite, column in zip(_UNITED_BY, zip(*shards, strict=True), strict=True)])


def _named(values: _Values) -> dict[str, Any]:
    return dict(zip(_FIELDS, values, strict=True))
