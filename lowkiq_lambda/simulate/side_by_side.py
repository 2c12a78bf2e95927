"""A visit to a shard whose calls run side by side, in slots, under one lease.

It settles what has ended a settle interval after the first end, and claims more with that; with a slot free it looks
for more after a tenth of a second, doubled up to a second, or when a push rings.
"""

import math
from collections import deque
from typing import Final

from lowkiq_lambda.simulate.choice import MOST_IN_FLIGHT
from lowkiq_lambda.simulate.failures import SimulatedFailures
from lowkiq_lambda.simulate.state import SimulatedQueue, SimulatedShard
from lowkiq_lambda.simulate.visits import Leave, is_over

LOOKS: Final = (0.1, 0.2, 0.4, 0.8, 1.0)
SOONEST_LOOK: Final = 0.005
"""Seconds between two looks for more: one after the other, and the least where pushes ring."""
TURN_CALLS: Final = 20
"""A turn lasts as long as so many calls."""


class SideStanding:
    """How a visit stands."""

    __slots__ = (
        "ended",
        "is_awaited",
        "is_last",
        "is_rung",
        "left",
        "look_at",
        "looked_at",
        "looks",
        "planned_at",
        "running",
        "unsettled_since",
    )

    def __init__(self) -> None:
        self.left: deque[int] = deque()
        """Claimed ids that wait for a slot."""
        self.running = 0
        self.ended: list[int] = []
        self.unsettled_since = math.inf
        self.look_at, self.looked_at, self.looks = 0.0, -math.inf, 0
        self.is_last = False
        """Whether it claims nothing more."""
        self.is_rung = self.is_awaited = False
        """Whether a push is told, and whether one was heard of since it last claimed."""
        self.planned_at = math.inf
        """When it looks up next."""


class SideBySide:
    """Up to `concurrency` calls at once in a shard."""

    def __init__(self, state: SimulatedQueue, leave: Leave) -> None:
        self._state, self._choice = state, state.choice
        self._failures = SimulatedFailures(state)
        self._leave = leave

    def begin(self, at: float, shard: SimulatedShard) -> None:
        """The shard has a holder now, and its lease is taken with the first claim."""
        shard.began_at, shard.alike = at, 0
        shard.side = SideStanding()
        self._state.plan(at + self._state.choice.round_trip, self._first, (shard, shard.side))

    def _first(self, at: float, what: tuple[SimulatedShard, SideStanding]) -> None:
        shard, standing = what
        self._claim(at, shard, standing)
        self._go_on(at, shard, standing)

    def ring(self, at: float, shard: SimulatedShard) -> None:
        """An id was pushed to the held shard: once a slot is free, the visit looks for it."""
        standing: SideStanding | None = shard.side
        if standing is not None and not standing.is_rung:
            standing.is_rung = True
            self._state.plan(at + self._state.choice.start, self._hear, (shard, standing))

    def _hear(self, at: float, what: tuple[SimulatedShard, SideStanding]) -> None:
        shard, standing = what
        standing.is_rung, standing.is_awaited = False, True
        if shard.side is not standing or standing.running >= self._choice.concurrency:
            return
        look_at = min(standing.look_at, standing.looked_at + SOONEST_LOOK)
        events = self._state.events
        if look_at <= at < standing.planned_at and not (events and events[0][0] <= at):
            # Nothing else comes first.
            standing.planned_at = math.inf
            self._go_on(at, shard, standing)
        else:
            self._plan(max(at, look_at), shard, standing)

    def _plan(self, at: float, shard: SimulatedShard, standing: SideStanding) -> None:
        if at < standing.planned_at:
            standing.planned_at = at
            self._state.plan(at, self._look_up, (shard, standing))

    def _look_up(self, at: float, what: tuple[SimulatedShard, SideStanding]) -> None:
        shard, standing = what
        if shard.side is standing and standing.planned_at <= at:
            standing.planned_at = math.inf
            self._go_on(at, shard, standing)

    def _go_on(self, at: float, shard: SimulatedShard, standing: SideStanding) -> None:
        """Begin what may begin, settle and claim what is due for it, and plan the next look; or end."""
        choice = self._choice
        now = at
        while True:
            if standing.left:
                self._start(now, shard, standing, choice.visit)
            elif not standing.running:
                now = self._settle(now, shard, standing)
                if not standing.left:
                    shard.side = None
                    self._leave(now, shard)
                    return
                continue
            if standing.is_awaited and standing.running < choice.concurrency:
                standing.look_at = min(standing.look_at, standing.looked_at + SOONEST_LOOK)
            until = standing.unsettled_since + choice.settle_interval
            wants_more = not standing.is_last and (
                standing.running < choice.concurrency or len(standing.left) < self._low(shard) * choice.batch
            )
            if wants_more and standing.look_at < until:
                until = standing.look_at
            if now < until:
                break
            now = self._settle(now, shard, standing)
        if until < math.inf:
            self._plan(until, shard, standing)

    def _low(self, shard: SimulatedShard) -> int:
        """With fewer calls waiting than that, more is claimed, so that they begin while the server is asked."""
        choice = self._state.choice
        if not shard.mean:
            return 0
        spare = int(choice.concurrency * choice.settle_interval / shard.mean)
        return min(math.ceil(2 * choice.round_trip * choice.concurrency / shard.mean), spare // 2)

    def _start(self, at: float, shard: SimulatedShard, standing: SideStanding, delay: float = 0.0) -> None:
        """Begin what there are slots for, so many seconds later: those of other threads have to wake."""
        state, left, holder, failures = self._state, standing.left, shard.holder, self._failures
        choice = self._choice
        failed: list[tuple[int, int]] = []
        while left and standing.running < choice.concurrency and holder is not None:
            size = failures.batch_at(left) if failures.can_happen else min(choice.batch, len(left))
            part = [left.popleft() for _ in range(size)]
            begins = delay + (state.permitted_at(at, len(part)) if choice.rate else at)
            standing.running += 1
            state.running += 1
            holder.open += 1
            if failures.can_happen:
                ends, failed = failures.perform(begins, shard, holder, part)
            else:
                ends = begins + state.took(shard, holder, len(part), state.begin(part, begins))
            state.plan(ends, self._end_call, (shard, standing, part, failed))

    def _end_call(self, at: float, what: tuple[SimulatedShard, SideStanding, list[int], list[tuple[int, int]]]) -> None:
        shard, standing, part, failed = what
        state = self._state
        standing.running -= 1
        state.running -= 1
        if shard.holder is not None:
            shard.holder.open -= 1
        if failed:
            failing = {number for number, _ in failed}
            part = [number for number in part if number not in failing]
            self._failures.fail(at, failed)
        standing.ended += part
        standing.unsettled_since = min(standing.unsettled_since, at)
        if standing.left:
            self._start(at, shard, standing)
        self._go_on(at, shard, standing)

    def _settle(self, at: float, shard: SimulatedShard, standing: SideStanding) -> float:
        """Write what has ended, and claim what there is room for; when that is done."""
        state = self._state
        if standing.ended:
            state.free(standing.ended, at)
            standing.ended = []
        standing.unsettled_since = math.inf
        standing.looked_at, standing.is_awaited = at, False
        self._claim(at, shard, standing)
        return at + self._choice.round_trip

    def _claim(self, at: float, shard: SimulatedShard, standing: SideStanding) -> None:
        state, holder = self._state, shard.holder
        choice, mean, line = self._choice, shard.mean, shard.line
        if (
            standing.is_last
            or holder is None
            or (state.outages and state.away_until(at))
            or is_over(state, shard, holder, at, TURN_CALLS)
        ):
            standing.is_last = True
            return
        if not line:
            self._look_later(at, standing)
            return
        batch, concurrency = choice.batch, choice.concurrency
        spare = int(concurrency * choice.settle_interval / mean) if mean else 0
        most = batch * max(concurrency, min(concurrency + spare, MOST_IN_FLIGHT // batch))
        room = min(len(line), most - standing.running * batch - len(standing.left))
        if room > 0:
            claimed = [line.popleft() for _ in range(room)]
            standing.left.extend(self._failures.lined_up(claimed) if state.retries else claimed)
            standing.look_at, standing.looks = 0.0, 0
        if room <= 0 or not line:
            self._look_later(at, standing)

    @staticmethod
    def _look_later(at: float, standing: SideStanding) -> None:
        standing.look_at = at + LOOKS[min(standing.looks, len(LOOKS) - 1)]
        standing.looks += 1
