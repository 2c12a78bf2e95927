"""A drain of several shards: which of them, what was seen in each, what came of it, and whom it leaves alone."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.engine.budget import STOP_REASONS, StopReason
from lowkiq_lambda.engine.visit import DrainResult
from lowkiq_lambda.errors import LowkiqError
from lowkiq_lambda.patience import doubled
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ShardState

LONGEST_REST: Final = 10.0
"""Seconds for which a shard is left alone, at most, whose visit, or look, ended in an error."""

RISK_PUT_OFF: Final = 60.0
"""Seconds for which shards whose next job may end the process wait for others, at most; or half of a drain's time."""


class Tour:
    """Fills while `Drainer.drain` goes from shard to shard; may be handed to it again, to go on."""

    def __init__(self, shards: Iterable[ShardRef], clock: Clock, poll_interval: float) -> None:
        self.shards: Sequence[ShardRef] = tuple(shards)
        self.counts: Counter[str] = Counter()
        """Ids by outcome."""
        self.reasons: dict[ShardRef, StopReason] = {}
        """Why each shard was left, as of late."""
        self.errors: dict[ShardRef, LowkiqError] = {}
        """What keeps shards from being drained: of those that were not drained since."""
        self.exits: dict[ShardRef, BaseException] = {}
        """What ended handlers without being a failure (SystemExit): the last of each shard."""
        self.next_at: dict[ShardRef, float] = {}
        """When shards without work are worth another look, where that is known: Unix seconds by their server."""
        self.lags_at_start: Mapping[ShardRef, float] | None = None
        self.lags: dict[ShardRef, float] = {}
        """Seconds that the oldest due job of each had waited at the last look."""
        self.looked_last = False
        """Whether nothing was visited since the last look."""
        self.on_first_look: Callable[[Tour], object] = _ignore
        """Called before anything is visited."""
        self._clock = clock
        self._poll_interval = poll_interval
        self._rests_until: dict[ShardRef, float] = {}
        self._failures: Counter[ShardRef] = Counter()
        self._work: dict[ShardRef, None] = {}
        self._risks_from: float | None = None
        self.puts_off_risk = False
        """Whether the last look found shards that wait for the others to be empty."""

    @property
    def reason(self) -> StopReason:
        """Why it ended: of the shards' reasons the one that says most about what is left; "empty" comes last."""
        return min(self.reasons.values(), key=STOP_REASONS.index, default="empty")

    @property
    def left(self) -> list[ShardRef]:
        """The shards that had work when it ended, and nobody who does it."""
        return list(self._work)

    def begin(self, seconds: float) -> None:
        """The drain has so much time; one that goes on has begun before."""
        if self._risks_from is None:
            self._risks_from = self._clock.monotonic() + min(RISK_PUT_OFF, seconds / 2)

    def resting(self, shard: ShardRef) -> bool:
        """Whether the shard is left alone for now."""
        return self._rests_until.get(shard, -math.inf) >= self._clock.monotonic()

    def to_look_at(self, among: Iterable[ShardRef] | None) -> list[ShardRef]:
        """The shards that are worth a look: all but those that just failed."""
        shards = self.shards if among is None else among
        return [one for one in shards if not (one in self.errors and self.resting(one))]

    def saw(self, found: Mapping[ShardRef, ShardState | LowkiqError]) -> list[ShardRef]:
        """Take in what a look brought; the shards to visit, most lagging first.

        Those whose next job may end the process wait until no other has work, but not for ever.
        """
        due = []
        for shard, state in found.items():
            if isinstance(state, LowkiqError):
                self.failed(shard, state)
            elif self._has_work(state) and not self.resting(shard):
                due.append(state)
        self.looked_last = True
        if self.lags_at_start is None:
            self.lags_at_start = dict(self.lags)
            self.on_first_look(self)
        due.sort(key=lambda state: state.lag, reverse=True)
        safe = [state for state in due if not state.risky]
        self.puts_off_risk = 0 < len(safe) < len(due) and not self._may_risk()
        return [state.ref for state in (safe if self.puts_off_risk else due)]

    def visited(self, shard: ShardRef, result: DrainResult, siblings: Iterable[ShardRef]) -> None:
        """A visit came to its end; `siblings` are all shards of its queue."""
        self.looked_last = False
        self.counts += result.counts
        self.reasons[shard] = result.reason
        if result.exit is None:
            self._worked(shard)
        else:
            self._exited(shard, result.exit)
        if result.token is None or result.reason in ("lease lost", "held"):
            self._rests_until[shard] = self._clock.monotonic() + self._poll_interval
        elif result.reason == "out of time":
            # No further batch of this queue is predicted to fit; one of another queue may.
            self._rests_until.update(dict.fromkeys(siblings, math.inf))
            self.reasons.update(dict.fromkeys(self._work.keys() & set(siblings), result.reason))
        if result.reason in ("empty", "held", "paused"):
            self._work.pop(shard, None)

    def failed(self, shard: ShardRef, error: LowkiqError) -> None:
        """A visit or a look ended in an error."""
        self.errors[shard] = error
        self.reasons[shard] = "failed"
        self.next_at.pop(shard, None)
        self._work.pop(shard, None)
        self._rest(shard)

    def ended(self, reason: StopReason) -> None:
        """The budget is over: what has work, or was never looked at, was left for that reason."""
        # There what is left has exited: more time would not help.
        left = [shard for shard in self._work if self.reasons.get(shard) != "exited"]
        self.reasons.update(dict.fromkeys(left, reason))
        self.reasons = {**dict.fromkeys(self.shards, reason), **self.reasons}

    def _may_risk(self) -> bool:
        return self._risks_from is not None and self._clock.monotonic() >= self._risks_from

    def _rest(self, shard: ShardRef) -> None:
        self._failures[shard] += 1
        # Twice as long each time: what is out of reach may take its time to say so, while the others wait.
        rest = doubled(self._poll_interval, self._failures[shard] - 1, LONGEST_REST)
        self._rests_until[shard] = self._clock.monotonic() + rest

    def _exited(self, shard: ShardRef, error: BaseException) -> None:
        self.errors.pop(shard, None)
        self.exits[shard] = error
        # Not longer each time: an id that exits is bounded by itself, and its shard has others.
        self._failures.pop(shard, None)
        # After its turn the backlog comes first: what exited waits behind it.
        if self.reasons[shard] != "turn over":
            self._rests_until[shard] = self._clock.monotonic() + self._poll_interval

    def _worked(self, shard: ShardRef) -> None:
        self.errors.pop(shard, None)
        self._failures.pop(shard, None)

    def _has_work(self, state: ShardState) -> bool:
        shard = state.ref
        self.lags[shard] = state.lag
        self.next_at.pop(shard, None)
        if state.obstacle is None:
            self._work[shard] = None
            return True
        self._work.pop(shard, None)
        self._worked(shard)
        if self.reasons.get(shard) != "lease lost":
            # That this holder lost the shard says more about it than what others have made of it since.
            self.reasons[shard] = state.obstacle
        if state.next_at is not None:
            self.next_at[shard] = state.next_at
        return False


def _ignore(_tour: Tour) -> None:
    pass
