"""What time it is on a Redis node, without asking it each time.

Scripts take `now` as an argument. It is the node's own time as measured last, carried on by this machine's
monotonic clock. Where the wall clock disagrees about how long that was (the process was frozen, or the clock was
set), the measurement is not trusted any more.
"""

from typing import Final, Protocol

from lowkiq_lambda.base.clock import Clock

FOREVER: Final = 253_402_300_799.0
"""The last second of the year 9999: what has no end has this one, as anything can be counted with it."""
FAR: Final = 253_402_300_800.0
"""When an id is due whose head is held: a second that no push may name. Also in include/far.lua."""
MAX_AGE: Final = 60.0
FRESH: Final = 1.0
"""Seconds for which a measurement need not be made anew, though one could be had on the way."""
MAX_DISAGREEMENT: Final = 0.5


class NodeTime(Protocol):
    """What time it is on a node."""

    def observe(self, seconds: float, asked_at: float) -> float:
        """Takes in what the node said when asked at `asked_at` (monotonic), and returns what time it is."""
        ...

    def now(self) -> float | None:
        """Unix seconds, or None when the node has to be asked."""
        ...

    def is_fresh(self) -> bool:
        """Whether it was asked just now, so that asking again would bring nothing."""
        ...

    def estimate(self) -> float:
        """Unix seconds as far as that can be told without asking: it may be off where the node was not asked lately."""
        ...


class GivenTime:
    """The time of a clock that somebody moves by hand, whatever the server says."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def observe(self, seconds: float, asked_at: float) -> float:
        """The clock's time; both arguments are set aside."""
        del seconds, asked_at
        return self._clock.time()

    def now(self) -> float | None:
        """The clock's time, never in need of a measurement."""
        return self._clock.time()

    def is_fresh(self) -> bool:
        """Always."""
        return True

    def estimate(self) -> float:
        """The clock's time."""
        return self._clock.time()


class ServerTime:
    """The clock of one node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._measured: tuple[float, float, float] | None = None

    def observe(self, seconds: float, asked_at: float) -> float:
        """The node said `seconds`; it was asked at `asked_at` by the monotonic clock, and answered just now."""
        answered_at = self._clock.monotonic()
        # The node read its clock somewhere between: the middle is at most half a round trip off.
        middle = (asked_at + answered_at) / 2
        self._measured = (seconds, middle, self._clock.time() - (answered_at - middle))
        return seconds + answered_at - middle

    def now(self) -> float | None:
        """Unix seconds on the node, or None when it has to be measured again."""
        if self._measured is None:
            return None
        seconds, at, wall = self._measured
        passed = self._clock.monotonic() - at
        if passed > MAX_AGE or abs(self._clock.time() - wall - passed) > MAX_DISAGREEMENT:
            return None
        return seconds + passed

    def is_fresh(self) -> bool:
        """Whether the last measurement is trusted, and less than a second old."""
        if self._measured is None or self.now() is None:
            return False
        return self._clock.monotonic() - self._measured[1] < FRESH

    def estimate(self) -> float:
        """What the node said last and what has passed since; this machine's time where the node was never asked."""
        if self._measured is None:
            return self._clock.time()
        seconds, at, wall = self._measured
        # The one stands still while a machine is frozen, the other may be set back.
        return seconds + max(self._clock.monotonic() - at, self._clock.time() - wall)
