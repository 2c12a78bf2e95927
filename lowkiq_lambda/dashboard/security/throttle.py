"""How often somebody may try a password: counted by where the tries come from, and in all.

All processes count together, in Redis; each counts by itself as well, for when Redis is away.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from lowkiq_lambda.errors import LowkiqError

WINDOW: Final = 60.0
FROM_ONE: Final = 10
FROM_ALL: Final = 100
_ALL: Final = "all"

CountTogether = Callable[[int, Sequence[str]], Sequence[int]]
"""Given the number of a window, and sources: counts a try of each, and says how many there were."""


class Throttle:
    """Counts tries in windows of a minute."""

    def __init__(self, now: Callable[[], float], count_together: CountTogether) -> None:
        self._now = now
        self._count_together = count_together
        self._lock = threading.Lock()
        self._window = -1
        self._tries: Counter[str] = Counter()

    def seconds_to_wait(self, source: str) -> float:
        """Counts a try; 0 where it may be made, else how long none may."""
        now = self._now()
        window = int(now // WINDOW)
        sources = [f"from {source}", _ALL]
        counts = [self._count_here(window, sources), self._count_with_others(window, sources)]
        refused = any(one > FROM_ONE or every > FROM_ALL for one, every in counts)
        return WINDOW - now % WINDOW if refused else 0.0

    def _count_here(self, window: int, sources: Sequence[str]) -> Sequence[int]:
        with self._lock:
            if window != self._window:
                self._window, self._tries = window, Counter()
            self._tries.update(sources)
            return [self._tries[source] for source in sources]

    def _count_with_others(self, window: int, sources: Sequence[str]) -> Sequence[int]:
        try:
            return self._count_together(window, sources)
        except LowkiqError:
            return [0] * len(sources)
