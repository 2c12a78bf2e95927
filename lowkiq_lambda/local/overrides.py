"""Settings that the command line sets in place of the app, and the schedulers that it can name."""

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeVar

import msgspec

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.engine.shard_queue import urgency
from lowkiq_lambda.settings.protocols import ShardState

State = TypeVar("State", bound=ShardState)


class SeqScheduler:
    """One shard after the other, going on after the last one."""

    def __init__(self) -> None:
        self._last: object = None
        self._position = -1

    def next(self, states: Sequence[State]) -> State | None:
        """The next shard with work after the last one that was taken; None if no shard has work."""
        start = self._position_of_last(states) + 1
        for step in range(len(states)):
            position = (start + step) % len(states)
            if states[position].has_work:
                self._last, self._position = states[position].ref, position
                return states[position]
        return None

    def _position_of_last(self, states: Sequence[State]) -> int:
        if self._position < 0:
            return -1
        # The last one may be missing for a while, if held shards are left out: its old place serves then.
        positions = (position for position, state in enumerate(states) if state.ref == self._last)
        return next(positions, self._position - 1)


_SCHEDULERS: Final = {"lag": None, "seq": SeqScheduler}
"""None: the board goes by lag itself, and need not look at all shards for it."""

_NO_LAG = -1.0


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an app; None leaves one as it is."""

    threads: int | None = None
    redis_url: str | None = None
    scheduler: Literal["lag", "seq"] | None = None

    def apply(self, app: Lowkiq) -> None:
        """Set only the given options."""
        changes: dict[str, object] = {}
        if self.threads is not None:
            changes["threads_per_node"] = self.threads
        if self.redis_url is not None:
            changes["redis_url"] = self.redis_url
        if self.scheduler is not None:
            changes["build_scheduler"] = _SCHEDULERS[self.scheduler]
        if changes:
            app.core.configure(**changes)


class LagScheduler:
    """The shard whose oldest due job has waited longest, each second counted by the weight of its queue."""

    def next(self, states: Sequence[State]) -> State | None:
        """The most urgent of the shards with work, the first of equals; None if no shard has work."""
        best, most = None, -math.inf
        # Run for each visit, over all shards of the thread.
        for state in states:
            if state.has_work:
                own = urgency(_NO_LAG if state.lag is None else state.lag, state.weight)
                if own > most:
                    best, most = state, own
        return best
