"""Where time is read: everything else is given a `Clock`, so that tests can move it."""

from time import monotonic, sleep, time
from typing import Protocol


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
