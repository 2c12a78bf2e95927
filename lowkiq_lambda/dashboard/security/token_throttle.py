"""Limits wrong bearer tokens, by address.

A right token costs no call to Redis, so a process looks only at what it has counted itself, and at what it heard of
others when it last counted. An address above the limit has its tokens refused unread, right ones too: otherwise a
limit would not slow down guesses. It is higher than that of passwords, because tokens are longer, and one program with
an old token should not keep out its neighbours.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.security.caller import Caller
from lowkiq_lambda.dashboard.security.throttle import MINUTE, CountTogether, network_of

WRONG_TOKENS: Final = 100
"""From one address in a minute."""
TOLD_TOGETHER: Final = 5


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
