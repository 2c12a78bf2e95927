"""Limits wrong passwords, by address and in total, and wrong bearer tokens, by address.

All processes count together in Redis. Each also counts by itself, in case Redis is unreachable.

Attempts are counted before the password is checked, so that concurrent guesses cannot slip through; a correct password
removes its own attempt. Each address has its own limit. Above the total limit an address has one attempt a minute: so
an operator from another address can still sign in while attackers guess. IPv6 addresses count by their 64-bit network,
because one machine can use all addresses of its network.

If a proxy reports the addresses, it has a limit of its own, far above the total. Many hundred addresses reach it, or
one caller whose proxy trusts forged headers.

A browser with a cookie of an earlier sign-in counts by itself, whatever strangers do at its address: otherwise they
could keep it out for ever. All browsers of an account together have the limits of the total and of a proxy, as each
sign-in makes a further cookie.

A right token costs no call to Redis, so a process looks only at what it has counted itself, and at what it heard of
others when it last counted. An address above the limit has its tokens refused unread, right ones too: otherwise a
limit would not slow down guesses. It is higher than that of passwords, because tokens are longer, and one program with
an old token should not keep out its neighbours.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final, NamedTuple

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.security.caller import Caller
from lowkiq_lambda.dashboard.security.sessions import Session

MINUTE: Final = 60.0
FROM_ONE: Final = 10
FROM_ALL: Final = 100
THROUGH_ONE: Final = 1_000
_ALL: Final = "all"

_NETWORK: Final = 64
"""Bits of an IPv6 network."""

CountTogether = Callable[[int, Sequence[str], int], Sequence[int]]
"""Adds a number of attempts to each source in the minute of that number; returns their counts."""

WRONG_TOKENS: Final = 100
"""From one address in a minute."""
TOLD_TOGETHER: Final = 5


class _Counters(NamedTuple):
    """The counters of an attempt: its caller, the callers counted together, and one that is never exceeded, if any."""

    one: str
    all: str
    bounded: str | None


class Throttle:
    """Counts failed attempts by minute."""

    def __init__(self, now: Callable[[], float], count_together: CountTogether) -> None:
        self._now = now
        self._count_together = count_together
        self._lock = threading.Lock()
        self._minute = -1
        self._attempts: Counter[str] = Counter()

    def seconds_to_wait(self, caller: Caller, session: Session | None = None) -> float:
        """Counts an attempt. Returns 0 if it is allowed, else the seconds until the next one is.

        `session`: the session of the browser's cookie, which may have ended.
        """
        now, counters = self._now(), _counters(caller, session)
        counts = self._count(now, counters, 1)
        if not any(_too_many(counters, each) for each in counts):
            return 0.0
        # A locked-out attempt is not a guess, so a caller that repeats it does not use up the total limit.
        self._count(now, counters, -1)
        return MINUTE - now % MINUTE

    def forget(self, caller: Caller, session: Session | None = None) -> None:
        """Removes the last attempt, because its password was right."""
        self._count(self._now(), _counters(caller, session), -1)

    def _count(self, now: float, counters: _Counters, more: int) -> Sequence[Mapping[str, int]]:
        minute, sources = int(now // MINUTE), sorted({source for source in counters if source})
        counts = self._count_here(minute, sources, more), self._count_with_others(minute, sources, more)
        return [dict(zip(sources, each, strict=True)) for each in counts]

    def _count_here(self, minute: int, sources: Sequence[str], more: int) -> Sequence[int]:
        with self._lock:
            # An attempt may have begun in the minute before.
            if minute > self._minute:
                self._minute, self._attempts = minute, Counter()
            for source in sources:
                self._attempts[source] += more
            return [self._attempts[source] for source in sources]

    def _count_with_others(self, minute: int, sources: Sequence[str], more: int) -> Sequence[int]:
        try:
            return self._count_together(minute, sources, more)
        except LowkiqError:
            return [0] * len(sources)


def _counters(caller: Caller, session: Session | None) -> _Counters:
    if session is not None:
        account = f"known as {session.account}"
        return _Counters(f"browser {session.id}", account, account)
    proxy = f"through {caller.proxy}" if caller.proxy else None
    return _Counters(f"from {network_of(caller.address)}", _ALL, proxy)


def _too_many(counters: _Counters, counts: Mapping[str, int]) -> bool:
    of_one, of_all = counts[counters.one], counts[counters.all]
    # The count includes this attempt, so 1 means no failure before.
    beyond = of_one > FROM_ONE or (of_one > 1 and of_all > FROM_ALL)
    return beyond or (counters.bounded is not None and counts[counters.bounded] > THROUGH_ONE)


def network_of(address: str) -> str:
    """The address, or the network of an IPv6 address."""
    with suppress(ValueError):
        parsed = ip_address(address)
        if isinstance(parsed, IPv6Address):
            return str(parsed.ipv4_mapped or IPv6Network((int(parsed), _NETWORK), strict=False))
    return address


class TokenThrottle:
    """Counts wrong tokens by minute."""

    def __init__(self, now: Callable[[], float], count_together: CountTogether) -> None:
        self._now = now
        self._count_together = count_together
        self._minute = -1
        self._wrong: Counter[str] = Counter()

    def seconds_to_wait(self, caller: Caller) -> float:
        """0 if a token of this caller may be read, else the seconds until the next one may be."""
        now = self._now()
        self._begin(int(now // MINUTE))
        return MINUTE - now % MINUTE if self._wrong[_source(caller)] >= WRONG_TOKENS else 0.0

    def count(self, caller: Caller) -> int:
        """Counts a wrong token at once, so that concurrent ones cannot slip through. Returns its number."""
        self._wrong[_source(caller)] += 1
        return self._wrong[_source(caller)]

    def count_together(self, caller: Caller, number: int) -> None:
        """Counts the wrong token of this number with those of other processes, in Redis; else each has its own limit.

        The first few are told together: a single one does not load the app, which knows where Redis is.
        """
        minute, source = self._minute, _source(caller)
        if number < TOLD_TOGETHER:
            return
        try:
            (of_all,) = self._count_together(minute, [source], number if number == TOLD_TOGETHER else 1)
        except LowkiqError:
            return
        if minute == self._minute:
            self._wrong[source] = max(self._wrong[source], of_all)

    def _begin(self, minute: int) -> None:
        if minute > self._minute:
            self._minute, self._wrong = minute, Counter()


def _source(caller: Caller) -> str:
    return f"tokens from {network_of(caller.address)}"
