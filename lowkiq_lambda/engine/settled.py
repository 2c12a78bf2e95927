"""What settlings tell of the calls of a worker that leaves numbers to the library, and a window of it."""

import math
from typing import Final

import msgspec

FEWEST: Final = 8
"""Ends in a window, and two for each slot: fewer tell nothing."""
FAILS: Final = 0.5
"""The share of failed ids, above which what fails is behind all of them."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What a settling tells: seconds of calls that ended, and those of its slots since the one before.

    `ended`, `failed`: ids. `is_short`: whether more was due than the claim had room for; None: nothing was claimed.
    `computing`: the share of it in calls; None: not measured.
    """

    at: float
    busy: float
    room: float
    ended: int
    failed: int
    is_short: bool | None = None
    computing: float | None = None


class Window(msgspec.Struct):
    """Calls since the last look: how long they took, how many ids they had, and what the slots had to do."""

    count: int = 0
    took: float = 0.0
    squares: float = 0.0
    ids: int = 0
    ended: int = 0
    failed: int = 0
    busy: float = 0.0
    room: float = 0.0
    """Seconds of all slots."""

    @property
    def mean(self) -> float:
        """Seconds of a call."""
        return self.took / self.count

    @property
    def error(self) -> float:
        """Twice the standard error of the mean: chance seldom makes more."""
        variance = max(0.0, self.squares / self.count - self.mean**2)
        return 2 * math.sqrt(variance / self.count)

    @property
    def fill(self) -> int:
        """The ids of a call, by powers of two: only calls of one fill are compared."""
        return round(self.ids / self.count).bit_length()

    @property
    def load(self) -> float:
        """The share of the slots' time in calls."""
        return self.busy / self.room if self.room > 0 else 0.0

    @property
    def is_failing(self) -> bool:
        """Whether most of it fails, and not by chance."""
        return self.failed >= FEWEST / 2 and self.failed > FAILS * self.ended
