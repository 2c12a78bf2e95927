"""How often somebody may try a password in vain: counted by where the tries come from, and in all.

All processes count together, in Redis; each counts by itself as well, for when Redis is away.

A try counts before it is looked at, so that many at once are not all let through, and is taken back where it was right.
Each address has a limit of its own. Beyond the limit of all, an address has a single failure: whoever comes from
elsewhere with the right password gets in, however many others guess, while somebody who guesses from many addresses
has one guess for each of them in a minute. Addresses of IPv6 count by their network of 64 bits, which is what one
household has: a single machine could take a new one from it for every guess.

Where a proxy names the addresses, it is counted as well, with a limit far beyond that of all: it is reached by many
hundred addresses, or by one caller whose proxy passes on what callers write. A browser that came in before is counted
apart from the others of its proxy, with those of its account.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from lowkiq_lambda.dashboard.security.sources import Source
from lowkiq_lambda.errors import LowkiqError

WINDOW: Final = 60.0
FROM_ONE: Final = 10
FROM_ALL: Final = 100
THROUGH_ONE: Final = 1_000
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

    def seconds_to_wait(self, source: Source, came_before_as: str | None = None) -> float:
        """Counts a try; 0 where it may be made, else how long none may.

        `came_before_as`: the account that the browser has signed in to before.
        """
        now, counted = self._now(), _counted(source, came_before_as)
        counts = self._count(now, counted, 1)
        if not any(_too_many(*each) for each in counts):
            return 0.0
        # A locked-out try is not a guess: one caller who goes on all the same does not fill the limit of all.
        self._count(now, counted, -1)
        return WINDOW - now % WINDOW

    def take_back(self, source: Source, came_before_as: str | None = None) -> None:
        """The try that was counted last was right."""
        self._count(self._now(), _counted(source, came_before_as), -1)

    def _count(self, now: float, counted: Sequence[str], more: int) -> Sequence[Sequence[int]]:
        window = int(now // WINDOW)
        return self._count_here(window, counted, more), self._count_with_others(window, counted, more)

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


def _counted(source: Source, came_before_as: str | None) -> list[str]:
    """What a try counts for: its address, all, and the proxy that it came through."""
    of_proxy = f"through {source.proxy}" if came_before_as is None else f"known as {came_before_as}"
    return [f"from {_whole(source.address)}", _ALL, *([of_proxy] if source.proxy else [])]


def _too_many(one: int, every: int, of_proxy: int = 0) -> bool:
    # This try is the first of the one, where it has not failed before.
    return one > FROM_ONE or (one > 1 and every > FROM_ALL) or of_proxy > THROUGH_ONE


def _whole(address: str) -> str:
    """What one that comes from there has altogether."""
    with suppress(ValueError):
        parsed = ip_address(address)
        if isinstance(parsed, IPv6Address):
            return str(parsed.ipv4_mapped or IPv6Network((int(parsed), _NETWORK), strict=False))
    return address
