"""How many ids a call has: the fewest beside which the fixed part of its time is little."""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from lowkiq_lambda.engine.settled import Settled, Window
from lowkiq_lambda.jobs.auto import Auto

HURT_FOR: Final = 3_600.0
"""Seconds after a death, or after most of it failed, in which calls get no more ids."""
KEPT: Final = 200
"""Calls that are fitted."""
LOOK: Final = 50
"""Calls from one fit to the next."""
OVERHEAD: Final = 0.1
"""The share of a call's fixed time in that of its ids, at most."""
LONGEST: Final = 1.0
"""Seconds that the ids of a call take, at most."""
OF_TARGET: Final = 0.1
"""The share of the lag that may be, and of the lease, which a call takes at most."""
STEADY: Final = 0.25
"""A change of the batch size by less is chance."""


class Fit(msgspec.Struct, frozen=True):
    """A call takes `fixed` seconds, and `each` for an id."""

    fixed: float
    each: float

    @classmethod
    def of(cls, calls: Sequence[tuple[int, float]]) -> "Fit | None":
        """The line through calls with ids and seconds; None if all have as many ids."""
        if not calls:
            return None
        ids, took = (sum(values) / len(calls) for values in zip(*calls, strict=True))
        spread = sum((each - ids) ** 2 for each, _ in calls)
        if not spread:
            return None
        each = max(0.0, sum((one - ids) * (seconds - took) for one, seconds in calls) / spread)
        return cls(max(0.0, took - each * ids), each)

    def ids(self, longest: float, most: int) -> int:
        """The fewest ids beside which the fixed time is little, and that do not take longer than that."""
        if not self.each:
            return most if self.fixed else 1
        # Rounded, so that no last digit of a float makes an id more.
        wanting = math.ceil(round(self.fixed / (OVERHEAD * self.each), 6))
        return max(1, min(wanting, int(longest / self.each), most))


class IdsTuner:
    """How many ids a call has. A pure function of what it is told, with the times."""

    def __init__(self, auto: Auto, lease: float) -> None:
        self.least, self.most = auto.least, auto.most
        self.ids = self.least
        self._longest = min(LONGEST, OF_TARGET * auto.lag, OF_TARGET * lease)
        self._calls: deque[tuple[int, float]] = deque(maxlen=KEPT)
        self._new = 0
        self._has_fit = False
        self._hurt_at = -math.inf
        self._window = Window()

    def note(self, ids: int, took: float) -> None:
        """A call ended well."""
        self._calls.append((ids, took))
        self._new += 1

    def resume(self, ids: int) -> None:
        """Go on from so many; 0: from the least."""
        self.ids = self._within(ids)

    def hurt(self, at: float) -> None:
        """Ids were left by a holder that died: larger calls would make suspects of more of them."""
        self._hurt_at = at

    def settled(self, settled: Settled) -> None:
        """Fit anew after so many calls."""
        window = self._window
        window.ended, window.failed = window.ended + settled.ended, window.failed + settled.failed
        if window.is_failing:
            self._hurt_at = settled.at
        if window.ended >= LOOK:
            self._window = Window()
        if self._new < LOOK:
            return
        self._new = 0
        ids = self._next()
        if ids > self.ids and settled.at - self._hurt_at <= HURT_FOR:
            return
        if abs(ids - self.ids) > STEADY * self.ids:
            self.ids = ids

    def _next(self) -> int:
        fit = Fit.of(self._calls)
        if fit is None:
            # The line through calls of one size is not known: once, another size is tried.
            other = self.ids * 2 if self.ids <= self.least else self.ids // 2
            return self.ids if self._has_fit else self._within(other)
        self._has_fit = True
        return self._within(min(fit.ids(self._longest, self.most), 2 * self.ids))

    def _within(self, ids: int) -> int:
        return max(self.least, min(ids, self.most))
