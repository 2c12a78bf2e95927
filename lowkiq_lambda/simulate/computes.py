"""The compute: a daemon that always runs, or invocations that schedules and pushes start and that end."""

import math
from typing import Final

from lowkiq_lambda.simulate.choice import LOOK
from lowkiq_lambda.simulate.side_by_side import SideBySide
from lowkiq_lambda.simulate.state import NOTHING, SimulatedHolder, SimulatedQueue, SimulatedShard
from lowkiq_lambda.simulate.visits import OneByOne

FROZEN_AFTER: Final = 300.0
"""Seconds for which an environment of a function stays warm without an invocation, at least."""
WOKEN_FOR: Final = 10.0
"""Seconds for which a shard that was woken is not woken again."""
LEFT_FOR: Final = 86_400.0
"""Seconds behind the trace in which schedules still start drains: what is not done by then is never done."""


class AlwaysOn:
    """Threads that take the shard that has waited longest, whenever one of them is free."""

    def __init__(self, state: SimulatedQueue) -> None:
        self._state = state
        state.serve = self.serve
        choice = state.choice
        kind = OneByOne if choice.concurrency == 1 else SideBySide
        self.visits: OneByOne | SideBySide = kind(state, self.leave)
        self._most_visits = choice.max_running or math.inf
        self._held = 0
        self._pool = SimulatedHolder(0.0, math.inf, choice.threads, is_alone=False)
        self._delay = choice.start

    def open(self) -> None:
        """The trace begins."""
        for _, until in self._state.outages:
            self._state.plan(until, self._resume, None)

    def _resume(self, at: float, _: object) -> None:
        self.serve(at)

    def pushed(self, at: float, _shard: SimulatedShard) -> None:
        """A shard that nobody holds has due work."""
        if self._pool.free:
            self._fill(at + self._delay, self._pool)

    def serve(self, at: float) -> None:
        """Free threads take the shards that have waited longest."""
        self._fill(at, self._pool)

    def _fill(self, at: float, holder: SimulatedHolder) -> None:
        state = self._state
        ready = state.ready
        if state.outages and state.away_until(at):
            return
        while holder.free and ready and self._held < self._most_visits:
            self.take(at, min(ready, key=state.head) if len(ready) > 1 else next(iter(ready)), holder)

    def take(self, at: float, shard: SimulatedShard, holder: SimulatedHolder) -> None:
        """The holder visits the shard."""
        state = self._state
        state.ready.pop(shard, None)
        holder.free -= 1
        holder.visits += 1
        self._held += 1
        state.visits += 1
        shard.holder = holder
        if shard.waits_since >= 0:
            if at > shard.waits_since:
                shard.holderless += at - shard.waits_since
            shard.waits_since = NOTHING
        self.visits.begin(at, shard)

    def open_invocations(self) -> set[SimulatedHolder]:
        """Those that go on."""
        return set()

    def leave(self, at: float, shard: SimulatedShard) -> None:
        """A visit has ended."""
        holder = self._free(at, shard)
        if holder is not None and self._state.ready:
            self._fill(at, holder)

    def _free(self, at: float, shard: SimulatedShard) -> SimulatedHolder | None:
        holder, shard.holder = shard.holder, None
        shard.held += at - shard.began_at
        self._held -= 1
        if shard.line:
            self._state.note_ready(shard, at)
        if holder is not None:
            holder.free += 1
            holder.visits -= 1
            holder.ended_at = at
        return holder


class Functions(AlwaysOn):
    """Invocations: a tick a minute, or a schedule for each shard, and what else starts them."""

    def __init__(self, state: SimulatedQueue) -> None:
        super().__init__(state)
        self._pool.free = 0
        self._warm: list[float] = []
        """When each environment that is idle was used last."""
        self._listening: list[SimulatedHolder] = []
        self._woken_until: dict[SimulatedShard, float] = {}
        self._kind = state.choice.compute
        self._closes_at = state.trace.seconds + LEFT_FOR

    def open(self) -> None:
        """Plan the first invocations."""
        state = self._state
        if self._kind == "shards":
            for shard in state.shards:
                state.plan(state.choice.period * state.rng.random(), self._own_tick, shard)
        else:
            # In a part of a trace, too, one that listens has listened before.
            state.plan(0.0 if self._kind == "linger" else state.choice.period / 2, self._tick, None)

    def open_invocations(self) -> set[SimulatedHolder]:
        """Those that go on."""
        return {shard.holder for shard in self._state.shards if shard.holder is not None}.union(self._listening)

    def _goes_on(self, at: float) -> bool:
        state = self._state
        has_more = bool(state.ready or state.carried) or any(shard.holder is not None for shard in state.shards)
        return at < state.trace.seconds or (has_more and at < self._closes_at)

    def _invoke(self, at: float, free: int, *, is_alone: bool) -> tuple[float, SimulatedHolder]:
        """An invocation begins; when it looks for work, and it."""
        state = self._state
        state.invocations += 1
        warm = self._warm
        while warm and warm[0] < at - FROZEN_AFTER:
            warm.pop(0)
        cold = 0.0 if warm else state.choice.cold_start
        if warm:
            warm.pop()
        holder = SimulatedHolder(at, at + cold + state.choice.timeout, free, is_alone=is_alone)
        if at < FROZEN_AFTER:
            # It would be warm by what was before the trace: a month has no more of these starts than an hour.
            holder.began_at += cold
        return at + cold + LOOK, holder

    def _end(self, at: float, holder: SimulatedHolder) -> None:
        """The invocation is over."""
        self._state.billed += max(at - holder.began_at, LOOK)
        self._warm.append(at)

    def _tick(self, at: float, _: object) -> None:
        if not self._goes_on(at):
            return
        state, choice = self._state, self._state.choice
        begins, holder = self._invoke(at, choice.threads, is_alone=False)
        state.plan(begins, self._look, holder)
        state.plan(at + choice.period, self._tick, None)

    def _look(self, at: float, holder: SimulatedHolder) -> None:
        self._fill(at, holder)
        if self._kind == "linger" and at < self._state.trace.seconds:
            self._listening.append(holder)
            self._state.plan(holder.ends_at, self._stop_listening, holder)
        elif self._kind == "start":
            for shard in sorted(self._state.ready, key=self._state.head):
                self._start(at, shard)
        if not holder.visits and holder not in self._listening:
            self._end(at, holder)

    def _stop_listening(self, at: float, holder: SimulatedHolder) -> None:
        self._listening.remove(holder)
        if not holder.visits:
            self._end(at, holder)

    def _own_tick(self, at: float, shard: SimulatedShard) -> None:
        self._start(at, shard)
        state = self._state
        if at < state.trace.seconds or ((shard.line or state.carried) and at < self._closes_at):
            state.plan(at + state.choice.period, self._own_tick, shard)

    def _start(self, at: float, shard: SimulatedShard, delay: float = 0.0) -> None:
        """An invocation for this shard alone."""
        begins, holder = self._invoke(at, 1, is_alone=True)
        self._state.plan(begins + delay, self._visit, (shard, holder))

    def _visit(self, at: float, what: tuple[SimulatedShard, SimulatedHolder]) -> None:
        shard, holder = what
        is_away = self._state.away_until(at) or self._held >= self._most_visits
        if shard.holder is None and shard.line and not is_away:
            self.take(at, shard, holder)
        else:
            self._end(at, holder)

    def pushed(self, at: float, shard: SimulatedShard) -> None:
        """A shard that nobody holds has due work: it is woken, or an invocation hears of it."""
        if self._kind == "wake" and self._woken_until.get(shard, 0.0) <= at:
            self._woken_until[shard] = at + WOKEN_FOR
            self._start(at, shard, self._state.choice.wake - LOOK)
        elif self._listening:
            self.serve(at + self._delay)

    def serve(self, at: float) -> None:
        """Invocations that listen take the shards that have waited longest."""
        for holder in self._listening:
            if at < holder.ends_at:
                self._fill(at, holder)

    def leave(self, at: float, shard: SimulatedShard) -> None:
        """A visit has ended: the invocation takes another shard, or is over."""
        self._woken_until.pop(shard, None)
        holder = self._free(at, shard)
        if holder is None:
            return
        has_time = at + shard.mean < holder.ends_at
        if has_time and not holder.is_alone:
            self._fill(at, holder)
        if not holder.visits and holder not in self._listening:
            self._end(at, holder)
            if self._kind == "start" and not has_time and shard.line:
                self._start(at, shard)
