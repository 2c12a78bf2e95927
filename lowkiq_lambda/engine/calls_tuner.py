"""How many calls a holder makes side by side: more while slots are full and no slower, fewer once calls take longer."""

import math
from typing import Final

from lowkiq_lambda.engine.settled import FEWEST, Settled, Window

FULL: Final = 0.8
"""The share of the slots' time in calls, from which on they count as full: the rest is for claims between them."""
IDLE: Final = 0.5
"""The share below which slots are too many."""
FALL: Final = 0.9
"""So many times as many ends a slot, or fewer, are a fall: less is within what loads change."""
SLOWER: Final = 1.5
"""So many times as long as the floor of the hour a call takes, and the service behind it has had enough."""
COMPUTES: Final = 0.5
"""The share of computing in a call, above which calls would wait for a processor."""
REST: Final = 60.0
"""Seconds after a step back: what it does has to be seen."""
HOUR: Final = 3_600.0
DAY: Final = 86_400.0


class CallsTuner:
    """How many calls side by side. A pure function of what it is told, with the times."""

    def __init__(self, least: int, most: int) -> None:
        self.most = most
        self.least = self.calls = min(least, most)
        self._window, self._minute = Window(), Window()
        self._minute_at: float | None = None
        self._before: tuple[int, float] | None = None
        """Fill and mean of the window before the last rise."""
        self._floors: dict[int, tuple[float, float]] = {}
        """By fill: the least that a call surely took at most, and when that was."""
        self._rests_until = self._halved_until = -math.inf
        """When it may rise again, and when it may be halved again."""
        self._is_short = False
        self._computing = 0.0
        self._told_at = -math.inf

    def resume(self, calls: int) -> None:
        """Go on from so many; 0: from the least."""
        self.calls = max(self.least, min(calls, self.most))

    def note(self, ids: int, took: float) -> None:
        """A call ended well."""
        window = self._window
        window.count, window.ids = window.count + 1, window.ids + ids
        window.took, window.squares = window.took + took, window.squares + took * took

    def settled(self, settled: Settled) -> bool:
        """Look at the window if it has enough; whether the bound is in the way, which is told once a day."""
        now = settled.at
        for window in (self._window, self._minute):
            window.busy, window.room = window.busy + settled.busy, window.room + settled.room
            window.ended, window.failed = window.ended + settled.ended, window.failed + settled.failed
        self._is_short = self._is_short if settled.is_short is None else settled.is_short
        self._computing = self._computing if settled.computing is None else settled.computing
        if self._window.is_failing:
            self._halve(now)
        self._look_at_minute(now)
        if self._window.count < max(FEWEST, 2 * self.calls):
            return False
        window, self._window = self._window, Window()
        return self._judge(window, now)

    def _judge(self, window: Window, now: float) -> bool:
        floor = self._floor(window, now)
        if floor is not None and window.mean - window.error > SLOWER * floor:
            self._halve(now)
            return False
        if self._has_fallen(window):
            self._step(-1)
            self._before, self._rests_until = None, now + REST
            return False
        if now < self._rests_until or window.load < FULL or not self._is_short or self._computing > COMPUTES:
            return False
        if self.calls < self.most:
            self._before = window.fill, window.mean
            self._step(1)
            return False
        if now - self._told_at < DAY:
            return False
        self._told_at = now
        return True

    def _floor(self, window: Window, now: float) -> float | None:
        floor, at = self._floors.get(window.fill, (math.inf, -math.inf))
        surely = window.mean + window.error
        if surely < floor or now - at > HOUR:
            self._floors[window.fill] = surely, now
        return None if now - at > HOUR else floor

    def _has_fallen(self, window: Window) -> bool:
        if self._before is None or self._before[0] != window.fill:
            return False
        mean = self._before[1]
        return window.mean * FALL > mean and window.mean - window.error > mean

    def _look_at_minute(self, now: float) -> None:
        if self._minute_at is None:
            self._minute_at = now
        if now - self._minute_at < REST:
            return
        if self._minute.load < IDLE:
            self._step(-1)
        self._minute, self._minute_at = Window(), now

    def _halve(self, now: float) -> None:
        if now >= self._halved_until:
            self._step(-(self.calls - self.calls // 2))
        self._before, self._window = None, Window()
        self._rests_until = self._halved_until = now + REST

    def _step(self, by: int) -> None:
        self.calls = min(self.most, max(self.least, self.calls + by))
        self._window = Window()
