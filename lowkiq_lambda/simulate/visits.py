"""A visit to a shard whose calls run one after the other: claim for a settle interval, perform, settle, claim more."""

from collections.abc import Callable
from typing import Final, TypeAlias

from lowkiq_lambda.simulate.choice import MOST_IN_FLIGHT
from lowkiq_lambda.simulate.failures import SimulatedFailures
from lowkiq_lambda.simulate.state import SimulatedHolder, SimulatedQueue, SimulatedShard

TURN: Final = 0.25
LONGEST_TURN: Final = 5.0
"""Seconds after which a visit ends if another shard waits: at least, and at most."""
Leave: TypeAlias = Callable[[float, SimulatedShard], None]


class OneByOne:
    """One call at a time in a shard: an event for each claim, not for each call."""

    def __init__(self, state: SimulatedQueue, leave: Leave) -> None:
        self._state = state
        self._failures = SimulatedFailures(state)
        self._leave = leave
        choice = state.choice
        self._half_trip: Final = choice.round_trip / 2
        self._until_first_call: Final = self._half_trip + choice.visit
        self._most_batches: Final = MOST_IN_FLIGHT // choice.batch

    def begin(self, at: float, shard: SimulatedShard) -> None:
        """The shard has a holder now, and its lease is taken with the first claim."""
        shard.began_at, shard.alike = at, 0
        if shard.holder is not None:
            shard.holder.open += 1
        self._window(at + self._half_trip, shard)

    def ring(self, at: float, shard: SimulatedShard) -> None:
        """An id was pushed to the held shard: the next claim finds it."""

    def _window(self, at: float, shard: SimulatedShard) -> None:
        state, line, holder = self._state, shard.line, shard.holder
        choice = state.choice
        if holder is None or (state.outages and state.away_until(at)):
            self._end(at, shard)
            return
        batch, mean = choice.batch, shard.mean
        batches = min(int(choice.settle_interval / mean), self._most_batches) or 1 if mean else 1
        pop = line.popleft
        claimed = [pop() for _ in range(min(batch * batches, len(line)))]
        failed: list[tuple[int, int]] = []
        at += self._until_first_call
        ends_at, failures, place = holder.ends_at, self._failures, 0
        can_fail, has_rate = failures.can_happen, choice.rate > 0
        if can_fail:
            claimed = failures.lined_up(claimed)
        while place < len(claimed):
            size = failures.batch_at(claimed, place) if can_fail else batch
            part = claimed[place : place + size] if size > 1 else [claimed[place]]
            if at + shard.mean > ends_at and at > holder.began_at + choice.cold_start + 1.0:
                line.extendleft(reversed(claimed[place:]))
                del claimed[place:]
                break
            place += len(part)
            if has_rate:
                at = state.permitted_at(at, len(part))
            if can_fail:
                at, more = failures.perform(at, shard, holder, part)
                failed += more
                continue
            at += state.took(shard, holder, len(part), state.begin(part, at))
        state.plan(at + self._half_trip, self._settle, (shard, claimed, failed))

    def _settle(self, at: float, what: tuple[SimulatedShard, list[int], list[tuple[int, int]]]) -> None:
        shard, claimed, failed = what
        state, holder = self._state, shard.holder
        if failed:
            failing = {number for number, _ in failed}
            claimed = [number for number in claimed if number not in failing]
            self._failures.fail(at, failed)
        state.free(claimed, at)
        if shard.line and holder is not None and not is_over(state, shard, holder, at):
            self._window(at, shard)
        else:
            self._end(at + self._half_trip + state.choice.visit, shard)

    def _end(self, at: float, shard: SimulatedShard) -> None:
        if shard.holder is not None:
            shard.holder.open -= 1
        self._leave(at, shard)


def is_over(state: SimulatedQueue, shard: SimulatedShard, holder: SimulatedHolder, at: float, calls: int = 0) -> bool:
    """Whether the visit claims nothing more: the holder's time is over, or another shard waits for its turn.

    `calls`: a turn lasts as long as so many of them, within its bounds.
    """
    mean = shard.mean
    if at + mean > holder.ends_at:
        return True
    if not state.ready or holder.is_alone:
        return False
    return at - shard.began_at > max(TURN, min(LONGEST_TURN, calls * mean))
