"""What is remembered of a queue from one minute to the next, so that moves are few. Values, without I/O."""

from collections.abc import Sequence
from typing import Final

import msgspec

from lowkiq_lambda.operate.auto.facts import WORK_OFF
from lowkiq_lambda.operate.lateness.samples import LONGEST
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.views.auto import AutoMove

DAY: Final = 86_400.0
BEFORE: Final = 600.0
"""Seconds before a move whose lag it is compared with."""
AFTER: Final = 1_800.0
"""Seconds after a move by which it is judged whether it helped.

The first of them do not count (`WORK_OFF`): the shards are so many that they work off in these what waited before, and
of half an hour's minutes a 95th percentile is the second largest, which is always of that backlog.
"""
BETTER: Final = 2 / 3
"""Of the lag before, that is left at most where a move helped."""
MOVES_KEPT: Final = 8
_LAGS_FOR: Final = AFTER + BEFORE
_BEGINS_WITHIN: Final = 30.0
"""Seconds from the note of a move to its begin: later, its process has died before it."""
_FEWEST: Final = 10
"""Minutes with a known lag after a move, of fewer nothing can be said."""
_HIGH: Final = 0.95


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A queue's past, times in Unix seconds. `moves`: those that were made here, the newest last.

    `epoch`: of the layout that was looked at last. `moved_by_hand`: when somebody else moved the queue, `failed_at`:
    when failures were a good part of a minute, `rests_until`: after a move that was turned round. `useless_at`: when a
    move turned out not to have helped. `lags`: the lag of each minute. `told`, `told_at`: the last line that was said.
    `untold`: the line of a move that is about to begin, as its process may die before it is told. `tidied_at`: the move
    back behind which no schedule is left over. `back_at`: when the queue was looked at again after minutes in which
    nobody could, as in an outage.
    `forecasts`: the simulated 95th percentile of waits by the number of shards, at `forecast_at`.
    """

    moves: tuple[AutoMove, ...] = ()
    epoch: int | None = None
    moved_by_hand: float | None = None
    failed_at: float | None = None
    rests_until: float | None = None
    useless_at: float | None = None
    lags: tuple[tuple[float, float], ...] = ()
    back_at: float | None = None
    forecast_at: float = 0.0
    forecasts: tuple[tuple[int, float], ...] = ()
    told: str = ""
    told_at: float = 0.0
    untold: str = ""
    tidied_at: float = 0.0

    @property
    def last(self) -> AutoMove | None:
        """The move that was made last."""
        return self.moves[-1] if self.moves else None

    def is_beginning(self, now: float) -> bool:
        """Whether a process may be about to begin the last move, which was noted and has not ended."""
        return self.last is not None and self.last.ended_at is None and 0 <= now - self.last.at < _BEGINS_WITHIN

    def with_lag(self, now: float, lag: float) -> "Memory":
        """The same, with the lag of this minute."""
        kept = [each for each in self.lags if 0 <= now - each[0] <= _LAGS_FOR]
        is_back = self.lags and now - self.lags[-1][0] > LONGEST
        return msgspec.structs.replace(self, lags=(*kept, (now, lag)), back_at=now if is_back else self.back_at)

    def lag_of(self, since: float, until: float) -> float | None:
        """The 95th percentile of the lag in this time; None where nothing is known of it."""
        lags = sorted(lag for at, lag in self.lags if since < at <= until)
        return lags[min(len(lags) - 1, int(_HIGH * len(lags)))] if lags else None

    def begins(self, now: float, shards: int, to: int) -> "Memory":
        """A move is about to begin: noted before, so that one that dies in between knows its own move."""
        move = AutoMove(at=now, shards=shards, to=to, lag_before=self.lag_of(now - BEFORE, now) or 0.0)
        return msgspec.structs.replace(self, moves=(*self.moves, move)[-MOVES_KEPT:])

    def turns(self, now: float, rest: float) -> "Memory":
        """The last move is turned round."""
        return self._with_last(is_turned=True, rests_until=now + rest)

    def forgets_begin(self) -> "Memory":
        """The last move did not begin."""
        return msgspec.structs.replace(self, moves=self.moves[:-1], untold="")

    def sees(self, layout: Layout, now: float) -> "Memory":
        """The layout as it is now: whether it is that of a move that was made here, and whether this has ended."""
        last = self.last
        is_own = last is not None and last.ended_at is None and {layout.before, layout.after} <= {last.shards, last.to}
        changes: dict[str, object] = {"epoch": layout.epoch}
        if layout.epoch != self.epoch and not is_own and layout.epoch:
            # Of a queue that is looked at for the first time, only what was lately.
            is_late_news = self.epoch is not None or now - layout.at < 7 * DAY
            changes |= {"moved_by_hand": layout.at} if is_late_news else {}
        if last is not None and is_own and layout.is_returning and not last.is_turned:
            # Somebody turns it round: the layout at the end has this epoch, too.
            return self._with_last(**changes, is_turned=True, moved_by_hand=layout.at)
        if last is None or last.ended_at is not None or layout.is_moving:
            return msgspec.structs.replace(self, **changes)
        if layout.after == last.to or last.is_turned:
            changes |= {"ended_at": layout.at}
        elif layout.epoch != self.epoch:
            # Somebody has turned it round.
            changes |= {"ended_at": layout.at, "is_turned": True, "moved_by_hand": layout.at}
        elif not self.is_beginning(now):
            return self.forgets_begin()
        return self._with_last(**changes)

    def judged(self, now: float) -> "Memory":
        """Whether the last move has helped, once that can be told: by the lag once what waited is worked off."""
        last = self.last
        if last is None or last.ended_at is None or last.lag_after is not None or last.is_turned:
            return self
        if now - last.ended_at < AFTER:
            return self
        since, until = last.ended_at + WORK_OFF, last.ended_at + AFTER
        lag = self.lag_of(since, until)
        minutes = sum(since < at <= until for at, _ in self.lags)
        if lag is None or minutes < _FEWEST:
            return self
        is_useless = last.to > last.shards and lag > BETTER * last.lag_before
        return self._with_last(lag_after=lag, **({"useless_at": now} if is_useless else {}))

    def moves_since(self, since: float) -> Sequence[AutoMove]:
        """Those that were begun since then."""
        return [move for move in self.moves if move.at >= since]

    def _with_last(self, **changes: object) -> "Memory":
        of_move = {name: value for name, value in changes.items() if name in AutoMove.__struct_fields__}
        own = {name: value for name, value in changes.items() if name not in of_move}
        last = msgspec.structs.replace(self.moves[-1], **of_move)
        return msgspec.structs.replace(self, moves=(*self.moves[:-1], last), **own)
