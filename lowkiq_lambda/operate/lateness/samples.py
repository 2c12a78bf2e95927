"""A sample of a queue: its counters and its present, as housekeeping keeps them each minute. Values, without I/O."""

from collections.abc import Sequence
from typing import Final

import msgspec

from lowkiq_lambda.operate.lateness.minutes import Minute, ShardMinute
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import Metrics, QueueMetrics

SHORTEST: Final = 20.0
"""Seconds between two samples of which a share still says something."""
LONGEST: Final = 150.0
"""Seconds above which they do not tell of a minute: housekeeping was away, or Redis was."""
PEGGED: Final = 1.1
"""Processors at work up to which a process may run Python code alone, and so no more than one thread at a time."""


class ShardSample(msgspec.Struct, frozen=True, array_like=True):
    """Counters of a shard, and its present: `lag` whatever keeps its ids, `waited` of ids that no holder has."""

    calls: int
    busy: float
    held: float
    lag: float
    waited: float
    in_flight: int


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A queue at a moment (Unix seconds). `shape`: of its shards; counters of another shape are not compared.

    `ended`: ids that were done or rejected. `held_back`: the lag of ids that wait for limits. `cpu`: the processors
    that the processes which drain the queue keep at work, and `cores` those that they may. `threads`: of all processes
    that take new work.
    """

    at: float
    shape: str
    ended: int
    failed: int
    dead: int
    payloads: int
    calls: int
    busy: float
    computing: float
    held: float
    length: int
    retries: int
    held_back: float
    cpu: float
    cores: float
    threads: int
    shards: tuple[ShardSample, ...]


def sample_of(at: float, layout: Layout, metrics: QueueMetrics, processes: Sequence[Process], queue: str) -> Sample:
    """The sample of a queue by its numbers, and by the processes that are known."""
    able = [process for process in processes if not (process.is_gone or process.quiet)]
    cpu, cores = _processors([process for process in able if any(doing.queue == queue for doing in process.doing)])
    return Sample(
        at=at,
        shape=layout.shape,
        ended=metrics.done + metrics.rejected,
        failed=metrics.failed,
        dead=metrics.dead,
        payloads=metrics.payloads,
        calls=metrics.calls,
        busy=metrics.busy,
        computing=metrics.computing,
        held=metrics.held,
        length=metrics.length,
        retries=metrics.retries,
        held_back=metrics.limited_lag,
        cpu=cpu,
        cores=cores,
        threads=sum(process.threads for process in able),
        shards=tuple(_shard(metrics.shards[number]) for number in layout.live),
    )


def lag_of(metrics: Metrics) -> float:
    """How long the oldest due id has waited, also if a pause or a limit keeps it."""
    return max(metrics.lag, metrics.limited_lag, metrics.paused_lag)


def _shard(metrics: Metrics) -> ShardSample:
    waited = max(metrics.oldest_due_age, metrics.limited_lag)
    return ShardSample(metrics.calls, metrics.busy, metrics.held, lag_of(metrics), waited, metrics.in_flight)


def _processors(processes: Sequence[Process]) -> tuple[float, float]:
    """How many processors these keep at work, and how many they may."""
    measured = [(process.cpu, process.cores) for process in processes if process.cpu is not None and process.cores > 0]
    # Python runs one thread at a time, so such a process is at its end with one processor, however many there are.
    return sum(cpu for cpu, _ in measured), sum(min(cores, 1.0) if cpu <= PEGGED else cores for cpu, cores in measured)


def minute_between(before: Sample, after: Sample, concurrency: int) -> Minute | None:
    """The minute between two samples; None if it is unknown: too short, too long, or with counters that fell."""
    seconds = after.at - before.at
    if before.shape != after.shape or not SHORTEST <= seconds <= LONGEST:
        return None
    ended, failed, calls = after.ended - before.ended, after.failed - before.failed, after.calls - before.calls
    busy, computing = after.busy - before.busy, after.computing - before.computing
    pairs = [*zip(before.shards, after.shards, strict=True)]
    if min(ended, failed, calls, busy, computing, *(new.calls - old.calls for old, new in pairs)) < 0:
        return None
    return Minute(
        seconds=seconds,
        ended=ended,
        failed=failed,
        length=after.length,
        retries=after.retries,
        held_back=after.held_back,
        took=busy / calls if calls else None,
        fill=(ended + failed) / calls if calls else None,
        computing=computing / busy if busy else None,
        processors=after.cpu / after.cores if after.cores else None,
        threads=after.threads,
        shards=tuple(_shard_minute(old, new, seconds, concurrency) for old, new in pairs),
    )


def _shard_minute(before: ShardSample, after: ShardSample, seconds: float, concurrency: int) -> ShardMinute:
    held = min(1.0, max(0.0, (after.held - before.held) / seconds))
    busy = (after.busy - before.busy) / (seconds * concurrency)
    if after.calls == before.calls and after.in_flight:
        # A call is counted when it has ended: one that goes on for minutes keeps its slot meanwhile all the same.
        busy = held
    return ShardMinute(lag=after.lag, waited=after.waited, busy=busy, held=held, has_work=after.lag > 0)


def moment_of(sample: Sample) -> Minute:
    """The present alone, of which no share is known."""
    return Minute(
        seconds=0.0,
        ended=0,
        failed=0,
        length=sample.length,
        retries=sample.retries,
        held_back=sample.held_back,
        took=None,
        fill=None,
        computing=None,
        processors=None,
        threads=sample.threads,
        shards=tuple(
            ShardMinute(
                lag=each.lag, waited=each.waited, busy=0.0, held=float(each.in_flight > 0), has_work=each.lag > 0
            )
            for each in sample.shards
        ),
    )
