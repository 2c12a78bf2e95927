"""A visit to a shard whose calls run one after the other: claim for a settle interval, perform, settle, claim more."""

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from lowkiq_lambda.simulate.choice import MOST_IN_FLIGHT
from lowkiq_lambda.simulate.failures import SimulatedFailures
from lowkiq_lambda.simulate.state import SimulatedQueue, SimulatedShard

TURN: Final = 0.25
"""Seconds after which a visit ends if another shard waits."""
Leave: TypeAlias = Callable[[float, SimulatedShard], None]


class OneByOne:
    """One call at a time in a shard: an event for each claim, not for each call."""

    def __init__(self, state: SimulatedQueue, leave: Leave) -> None:
        self._state = state
        self._failures = SimulatedFailures(state)
        self._leave = leave

    def begin(self, at: float, shard: SimulatedShard) -> None:
        """The shard has a holder now, and its lease is taken with the first claim."""
        shard.began_at, shard.alike = at, 0
        if shard.holder is not None:
            shard.holder.open += 1
        self._window(at + self._state.choice.round_trip / 2, shard)

    def ring(self, at: float, shard: SimulatedShard) -> None:
        """An id was pushed to the held shard: the next claim finds it."""

    def _window(self, at: float, shard: SimulatedShard) -> None:
        state, line, holder = self._state, shard.line, shard.holder
        choice = state.choice
        if holder is None or state.away_until(at):
            self._end(at, shard)
            return
        batch, half, mean = choice.batch, choice.round_trip / 2, shard.mean
        batches = max(1, min(int(choice.settle_interval / mean), MOST_IN_FLIGHT // batch)) if mean else 1
        pop = line.popleft
        claimed = [pop() for _ in range(min(batch * batches, len(line)))]
        failed: list[tuple[int, int]] = []
        at += half + choice.visit
        begin, took, ends_at = state.begin, state.took, holder.ends_at
        failures, place = self._failures, 0
        claimed = failures.lined_up(claimed)
        while place < len(claimed):
            size = failures.batch_at(claimed, place) if failures.can_happen else batch
            part = claimed[place : place + size] if size > 1 else [claimed[place]]
            if at + shard.mean > ends_at and at > holder.began_at + choice.cold_start + 1.0:
                line.extendleft(reversed(claimed[place:]))
                del claimed[place:]
                break
            place += len(part)
            if choice.rate:
                at = state.permitted_at(at, len(part))
            if failures.can_happen:
                at, more = failures.perform(at, shard, holder, part)
                failed += more
                continue
            payloads = begin(part, at)
            at += took(shard, holder, len(part), payloads)
        state.plan(at + half, self._settle, (shard, claimed, failed))

    def _settle(self, at: float, what: tuple[SimulatedShard, list[int], list[tuple[int, int]]]) -> None:
        shard, claimed, failed = what
        state, holder = self._state, shard.holder
        if failed:
            failing = {number for number, _ in failed}
            claimed = [number for number in claimed if number not in failing]
            self._failures.fail(at, failed)
        state.free(claimed, at)
        if holder is None or not shard.line or is_over(state, shard, at):
            self._end(at + state.choice.round_trip / 2 + state.choice.visit, shard)
        else:
            self._window(at, shard)

    def _end(self, at: float, shard: SimulatedShard) -> None:
        if shard.holder is not None:
            shard.holder.open -= 1
        self._leave(at, shard)


def is_over(state: SimulatedQueue, shard: SimulatedShard, at: float, least: float = TURN) -> bool:
    """Whether the visit claims nothing more: the holder's time is over, or another shard waits for its turn."""
    holder = shard.holder
    if holder is None:
        return True
    if at + shard.mean > holder.ends_at:
        return True
    return not holder.is_alone and bool(state.ready) and at - shard.began_at > least and math.isfinite(at)
