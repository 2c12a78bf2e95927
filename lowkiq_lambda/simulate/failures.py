"""Failures of a simulated queue: of single ids, and of calls as a whole; and with whom ids share their next batch."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from lowkiq_lambda.simulate.state import SimulatedHolder, SimulatedQueue, SimulatedShard, end_of

ALIKE: Final = 3
"""Ids of a group that fail alone before the others are charged."""
TRIED: Final = 3
"""Groups in a row, from which on their ids are tried in the claim of the group."""
PROVEN: Final = 6
"""Groups in a row, from which on one id is enough."""
ALONE: Final = 2
"""A kind of id: 0: fresh, 1: in retry."""
Performed: TypeAlias = tuple[float, list[tuple[int, int]]]


class SimulatedFailures:
    """What becomes of calls where some fail."""

    def __init__(self, state: SimulatedQueue) -> None:
        self._state = state
        self.can_happen: Final = bool(state.choice.failures or state.choice.breakdowns)

    def perform(self, at: float, shard: SimulatedShard, holder: SimulatedHolder, part: list[int]) -> Performed:
        """A call of these ids: when it has ended, and the ids that failed, each with its payloads."""
        state = self._state
        payloads, choice = state.begin(part, at), state.choice
        failed: list[tuple[int, int]] = []
        each = max(1, payloads // len(part))
        is_broken = bool(state.breakdowns) and end_of(state.breakdowns, at) > 0
        if choice.failures and not is_broken:
            share, uniform = choice.failures, state.rng.random
            failed = [(number, each) for number in part if uniform() < share]
            state.blamed.update(number for number, _ in failed)
        at += state.took(shard, holder, len(part), payloads)
        if not is_broken:
            shard.alike = 0
            return at, failed
        if len(part) == 1:
            state.blamed.add(part[0])
            return at, [(part[0], each)]
        state.blamed.difference_update(part)
        return self._fail_whole(at, shard, holder, [(number, each) for number in part])

    def _fail_whole(
        self, at: float, shard: SimulatedShard, holder: SimulatedHolder, group: list[tuple[int, int]]
    ) -> Performed:
        """Its ids run alone until enough have failed alike: the others are charged, without a run."""
        state = self._state
        shard.alike += 1
        enough = ALIKE if shard.alike < PROVEN else 1
        failed: list[tuple[int, int]] = []
        for place, (number, payloads) in enumerate(group):
            is_broken = end_of(state.breakdowns, at) > 0
            # The first groups of a row are suspects: each trial is noted before, and settled.
            at += 2 * state.choice.round_trip if shard.alike < TRIED else 0.0
            at += state.took(shard, holder, 1, payloads)
            if is_broken:
                failed.append((number, payloads))
            else:
                shard.alike = 0
            if len(failed) == enough == place + 1:
                return at, group
        state.blamed.update(number for number, _ in failed)
        return at, failed

    def lined_up(self, claimed: list[int]) -> list[int]:
        """Fresh ids, those in retry, and those that run alone: they do not meet in a batch."""
        return sorted(claimed, key=self._kind) if self._state.retries else claimed

    def batch_at(self, line: Sequence[int], place: int = 0) -> int:
        """How many ids of those that are lined up the next batch has."""
        most = min(self._state.choice.batch, len(line) - place)
        if not self._state.retries:
            return most
        kind = self._kind(line[place])
        if kind == ALONE:
            return 1
        return next((size for size in range(1, most) if self._kind(line[place + size]) != kind), most)

    def _kind(self, number: int) -> int:
        state = self._state
        return 0 if number not in state.retries else ALONE if number in state.blamed else 1

    def fail(self, at: float, failed: list[tuple[int, int]]) -> None:
        """They rest, and run again. The oldest payload of one that has no retry left dies, and the others are fresh."""
        state = self._state
        for number, payloads in failed:
            before = state.retries.get(number, 0)
            if before < state.choice.max_retry_count:
                state.carried[number] = payloads
                state.retries[number] = before + 1
                state.plan(at + state.choice.retry_in + before**4, self._retry, number)
                continue
            state.dead += 1
            state.retries.pop(number, None)
            state.blamed.discard(number)
            if payloads > 1:
                state.carried[number] = payloads - 1
            state.free([number], at)

    def _retry(self, at: float, number: int) -> None:
        self._state.free([number], at)
        self._state.serve(at)
