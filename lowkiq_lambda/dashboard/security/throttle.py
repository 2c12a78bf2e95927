"""Limits wrong passwords: by address, and in total.

All processes count together in Redis. Each also counts by itself, in case Redis is unreachable.

Attempts are counted before the password is checked, so that concurrent guesses cannot slip through; a correct password
removes its own attempt. Each address has its own limit. Above the total limit an address has one attempt a minute: so
an operator from another address can still sign in while attackers guess. IPv6 addresses count by their 64-bit network,
because one machine can use all addresses of its network.

If a proxy reports the addresses, it has a limit of its own, far above the total. Many hundred addresses reach it, or
one caller whose proxy trusts forged headers. A browser that signed in before counts with its account instead.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from lowkiq_lambda.dashboard.security.caller import Caller
from lowkiq_lambda.errors import LowkiqError

MINUTE: Final = 60.0
FROM_ONE: Final = 10
FROM_ALL: Final = 100
THROUGH_ONE: Final = 1_000
_ALL: Final = "all"

_NETWORK: Final = 64
"""Bits of an IPv6 network."""

CountTogether = Callable[[int, Sequence[str], int], Sequence[int]]
"""Adds a number of attempts to each source in the minute of that number; returns their counts."""


class Throttle:
    """Counts failed attempts by minute."""

    def __init__(self, now: Callable[[], float], count_together: CountTogether) -> None:
        self._now = now
        self._count_together = count_together
        self._lock = threading.Lock()
        self._minute = -1
        self._attempts: Counter[str] = Counter()

    def seconds_to_wait(self, caller: Caller, known_account: str | None = None) -> float:
        """Counts an attempt. Returns 0 if it is allowed, else the seconds until the next one is.

        `known_account`: the account of the browser's last session.
        """
        now, counted = self._now(), _counted(caller, known_account)
        counts = self._count(now, counted, 1)
        if not any(_too_many(*each) for each in counts):
            return 0.0
        # A locked-out attempt is not a guess, so a caller that repeats it does not use up the total limit.
        self._count(now, counted, -1)
        return MINUTE - now % MINUTE

    def forget(self, caller: Caller, known_account: str | None = None) -> None:
        """Removes the last attempt, because its password was right."""
        self._count(self._now(), _counted(caller, known_account), -1)

    def _count(self, now: float, counted: Sequence[str], more: int) -> Sequence[Sequence[int]]:
        minute = int(now // MINUTE)
        return self._count_here(minute, counted, more), self._count_with_others(minute, counted, more)

    def _count_here(self, minute: int, sources: Sequence[str], more: int) -> Sequence[int]:
        with self._lock:
            # An attempt may have begun in the minute before.
            if minute > self._minute:
                self._minute, self._attempts = minute, Counter()
            for caller in sources:
                self._attempts[caller] += more
            return [self._attempts[caller] for caller in sources]

    def _count_with_others(self, minute: int, sources: Sequence[str], more: int) -> Sequence[int]:
        try:
            return self._count_together(minute, sources, more)
        except LowkiqError:
            return [0] * len(sources)


def _counted(caller: Caller, known_account: str | None) -> list[str]:
    """The counters of an attempt: its address, the total, and its proxy."""
    of_proxy = f"through {caller.proxy}" if known_account is None else f"known as {known_account}"
    return [f"from {_network_of(caller.address)}", _ALL, *([of_proxy] if caller.proxy else [])]


def _too_many(of_address: int, of_all: int, of_proxy: int = 0) -> bool:
    # The count of an address includes this attempt, so 1 means no failure before.
    return of_address > FROM_ONE or (of_address > 1 and of_all > FROM_ALL) or of_proxy > THROUGH_ONE


def _network_of(address: str) -> str:
    """The address, or the network of an IPv6 address."""
    with suppress(ValueError):
        parsed = ip_address(address)
        if isinstance(parsed, IPv6Address):
            return str(parsed.ipv4_mapped or IPv6Network((int(parsed), _NETWORK), strict=False))
    return address
