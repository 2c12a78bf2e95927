"""Whether a drain may go on: its time, the stop signal, and whose turn it is; and the words for why it ended."""

import math
from collections.abc import Callable
from copy import copy
from threading import Event
from typing import Final, Literal, TypeAlias, get_args

from lowkiq_lambda.clock import Clock

StopReason: TypeAlias = Literal[
    "failed", "exited", "stopping", "out of time", "turn over", "lease lost", "paused", "held", "empty"
]
"""Why a drain of a shard ended, in the order in which reasons say something of what is left.

`failed`: with an error; `exited`: its handlers exited (`sys.exit`, a cancellation), or Ctrl-C came; `stopping`: the
process stops; `out of time`: no further batch is predicted to fit; `turn over`: another shard had its turn; `lease
lost`: another holder has the shard; `paused`: an operator paused it; `held`: another holder had it before; `empty`:
nothing is due.
"""
STOP_REASONS: Final[tuple[StopReason, ...]] = get_args(StopReason)


def _never() -> bool:
    return False


class Budget:
    """Time for a drain. `seconds` from now on; without, only the stop signal ends it.

    `stopping` is asked before each batch, `turn_over` before each claim: another shard may be waiting.
    """

    def __init__(
        self,
        clock: Clock,
        seconds: float = math.inf,
        *,
        stopping: Callable[[], bool] = _never,
        turn_over: Callable[[], bool] = _never,
    ) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + seconds
        self.stopping = stopping
        self._turn_over = turn_over
        # An event, because it is shared with the copies that are made for turns.
        self._ran = Event()

    def for_turn(self, is_over: Callable[[], bool]) -> "Budget":
        """The same budget for a visit that others wait for: it ends at a claim when that says so."""
        turn = copy(self)
        turn._turn_over = is_over  # noqa: SLF001 - its own class
        return turn

    def remaining(self) -> float:
        """Seconds that are left; never below 0."""
        return max(0.0, self._ends_at - self._clock.monotonic())

    def may_try_one(self) -> bool:
        """Whether one id may be tried though it is not predicted to fit: nothing has been started yet."""
        return not self._ran.is_set() and self.remaining() > 0

    def note_batch(self) -> None:
        """A batch has been started on this budget."""
        # For each batch: looking is cheap, setting takes a lock.
        if not self._ran.is_set():
            self._ran.set()

    def against_batch(self, predicted: float) -> StopReason | None:
        """Why no further batch may start, or None; `predicted` is how long it would take, in seconds."""
        if self.stopping():
            return "stopping"
        return "out of time" if predicted >= self.remaining() else None

    def against_claim(self, predicted: float) -> StopReason | None:
        """Why nothing more may be claimed, or None."""
        return self.against_batch(predicted) or ("turn over" if self._turn_over() else None)
