"""Clocks, and how long a thread may wait.

Everything else is given a `Clock`, so that tests can move it.
"""

from time import monotonic, sleep, time
from typing import Final, Protocol

LONGEST_WAIT: Final = 3_600.0
"""Seconds. Platforms refuse waits of more than some weeks, or centuries, and jobs may be due in the year 9999.

A waiter looks again whenever a wait ends, so a look an hour is all that a shorter one costs.
"""
_DOUBLINGS: Final = 16


class Clock(Protocol):
    """Two clocks, in seconds: one that says what time it is, one that only goes forward."""

    def time(self) -> float:
        """Unix seconds by this machine; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back, may stand still while the machine is frozen."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        ...


class SystemClock:
    """The clocks of the machine."""

    __slots__ = ()

    # The functions themselves, not wrappers: the drain reads the clock several times for each batch.
    time = staticmethod(time)
    monotonic = staticmethod(monotonic)
    sleep = staticmethod(sleep)


def at_most(seconds: float | None) -> float:
    """The wait in seconds, as it may be handed to the platform: from 0 to the longest; None is for ever."""
    return LONGEST_WAIT if seconds is None else max(0.0, min(seconds, LONGEST_WAIT))


def doubled(first: float, times: int, longest: float) -> float:
    """Seconds: the first wait, doubled so many times, but not more than the longest.

    >>> [doubled(0.5, times, 3.0) for times in (0, 1, 2, 3, 10_000)]
    [0.5, 1.0, 2.0, 3.0, 3.0]
    """
    return min(longest, first * 2.0 ** min(times, _DOUBLINGS))
