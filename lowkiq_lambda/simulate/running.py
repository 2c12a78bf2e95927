"""One run of a simulation: the pushes of a trace, in their order, and the events that they lead to."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop

from lowkiq_lambda.simulate.choice import Choice
from lowkiq_lambda.simulate.computes import AlwaysOn, Functions
from lowkiq_lambda.simulate.outcome import Outcome, ShardOutcome
from lowkiq_lambda.simulate.state import SimulatedQueue
from lowkiq_lambda.simulate.times import Times
from lowkiq_lambda.simulate.trace import Trace

_SAMPLE = 1_000_000
"""Waits from which percentiles are taken: of more, each n-th."""


def simulate(trace: Trace, times: Times, choice: Choice, *, seed: int = 1) -> Outcome:
    """What becomes of the trace. The same arguments give the same outcome; 100,000 jobs take about a second."""
    with _no_collections():
        state = SimulatedQueue(trace, times, choice, seed)
        compute = Functions(state) if choice.is_function else AlwaysOn(state)
        compute.open()
        if trace.warm_up:
            state.plan(trace.warm_up, lambda at, _: state.end_warm_up(at, compute.open_invocations()), None)
            state.plan(trace.seconds, lambda at, _: state.end_part(at, compute.open_invocations()), None)
        _push(state, compute, trace)
        _finish(state)
        return _outcome(state)


@contextmanager
def _no_collections() -> Iterator[None]:
    """A run has millions of events and no cycles of them: to look for some would take a sixth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _push(state: SimulatedQueue, compute: AlwaysOn, trace: Trace) -> None:
    """All pushes; before each, the events that come before it."""
    events, first, more, flying, shard_of = state.events, state.first, state.more, state.flying, state.shard_of
    note_ready, pushed, ring = state.note_ready, compute.pushed, compute.visits.ring
    is_side_by_side = state.choice.concurrency > 1
    next_step = state.step
    for before, (at, number) in enumerate(zip(trace.at, trace.ids, strict=True)):
        while events and events[0][0] <= at:
            now, _, act, what = heappop(events)
            act(now, what)
        if at >= next_step:
            state.pushed = before
            next_step = _note_depth(state, at, next_step)
        if first[number] >= 0:
            further = more.get(number)
            if further is None:
                more[number] = [at]
            else:
                further.append(at)
            continue
        first[number] = at
        if flying[number]:
            continue
        shard = shard_of[number]
        shard.line.append(number)
        if shard.holder is None:
            note_ready(shard, at)
            pushed(at, shard)
        elif is_side_by_side:
            ring(at, shard)
    state.pushed = trace.jobs
    state.last = trace.at[-1] if trace.at else 0.0


def _finish(state: SimulatedQueue) -> None:
    """The rest of the work is done."""
    events = state.events
    next_step = (len(state.depths) + 1) * state.step
    while events:
        at, _, act, what = heappop(events)
        if at >= next_step:
            next_step = _note_depth(state, at, next_step)
        act(at, what)
        state.last = max(state.last, at) if state.waiting > 0 or state.running else state.last


def _note_depth(state: SimulatedQueue, at: float, next_step: float) -> float:
    """How many payloads wait, for each step that is over by now; when the next one is."""
    waiting = state.waiting
    while at >= next_step:
        state.depths.append(max(0, waiting))
        next_step += state.step
    return next_step


def _outcome(state: SimulatedQueue) -> Outcome:
    waits = state.waits
    sample, others = _ordered(waits), _ordered(state.others)
    for shard in state.shards:
        if shard.waits_since >= 0:
            shard.holderless += max(0.0, state.last - shard.waits_since)
    end = max(state.last, max((shard.began_at for shard in state.shards), default=0.0))
    warm_up = state.trace.warm_up
    if warm_up:
        end = state.trace.seconds - warm_up
    sums = state.closed or state.sums()
    return Outcome(
        **sums,
        p50=_percentile(sample, 0.50),
        p95=_percentile(sample, 0.95),
        p99=_percentile(sample, 0.99),
        mean=sum(sample) / max(1, len(sample)),
        most=max(waits, default=0.0),
        busy=min(1.0, sums["seconds"] / (max(end, 1e-9) * state.choice.slots)),
        end=end,
        step=state.step,
        lag=tuple(state.lags[int(warm_up / state.step) :]),
        depth=tuple(state.depths[int(warm_up / state.step) :]),
        shards=tuple(ShardOutcome(one.busy, one.held, one.holderless, one.payloads) for one in state.shards),
        others_p95=_percentile(others, 0.95) if others else None,
    )


def _ordered(waits: Sequence[float]) -> list[float]:
    return sorted(waits[:: max(1, -(-len(waits) // _SAMPLE))])


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
