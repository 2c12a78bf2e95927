"""How often somebody may try a password in vain: counted by where the tries come from, and in all.

All processes count together, in Redis; each counts by itself as well, for when Redis is away.

A try counts before it is looked at, so that many at once are not all let through, and is taken back where it was right.
Each address has a limit of its own. Beyond the limit of all, an address has a single failure: whoever comes from
elsewhere with the right password gets in, however many others guess, while somebody who guesses from many addresses
has one guess for each of them in a minute. Addresses of IPv6 count by their network of 64 bits, which is what one
household has: a single machine could take a new one from it for every guess.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from lowkiq_lambda.errors import LowkiqError

WINDOW: Final = 60.0
FROM_ONE: Final = 10
FROM_ALL: Final = 100
_ALL: Final = "all"

_NETWORK: Final = 64
"""Bits of an IPv6 address."""

CountTogether = Callable[[int, Sequence[str], int], Sequence[int]]
"""Given the number of a window, sources, and how many tries more: counts them for each, and says how many there are."""


class Throttle:
    """Counts tries that fail, in windows of a minute."""

    def __init__(self, now: Callable[[], float], count_together: CountTogether) -> None:
        self._now = now
        self._count_together = count_together
        self._lock = threading.Lock()
        self._window = -1
        self._tries: Counter[str] = Counter()

    def seconds_to_wait(self, source: str) -> float:
        """Counts a try; 0 where it may be made, else how long none may."""
        now = self._now()
        counts = self._count(now, source, 1)
        # This try is the first of the one, where it has not failed before.
        refused = any(one > FROM_ONE or (one > 1 and every > FROM_ALL) for one, every in counts)
        if not refused:
            return 0.0
        # It is no guess: whoever goes on all the same does not fill the limit of all by himself.
        self._count(now, source, -1)
        return WINDOW - now % WINDOW

    def take_back(self, source: str) -> None:
        """The try that was counted last was right."""
        self._count(self._now(), source, -1)

    def _count(self, now: float, source: str, more: int) -> Sequence[Sequence[int]]:
        window, sources = int(now // WINDOW), [f"from {_whole(source)}", _ALL]
        return self._count_here(window, sources, more), self._count_with_others(window, sources, more)

    def _count_here(self, window: int, sources: Sequence[str], more: int) -> Sequence[int]:
        with self._lock:
            # A try may have begun in the minute before.
            if window > self._window:
                self._window, self._tries = window, Counter()
            for source in sources:
                self._tries[source] += more
            return [self._tries[source] for source in sources]

    def _count_with_others(self, window: int, sources: Sequence[str], more: int) -> Sequence[int]:
        try:
            return self._count_together(window, sources, more)
        except LowkiqError:
            return [0] * len(sources)


def _whole(source: str) -> str:
    """What one that comes from there has altogether."""
    # Of a path through proxies only the last is known by who tells it; the others are what the caller has said.
    last = source.rpartition(",")[2].strip()
    with suppress(ValueError):
        address = ip_address(last)
        if isinstance(address, IPv6Address):
            return str(address.ipv4_mapped or IPv6Network((int(address), _NETWORK), strict=False))
    return last
