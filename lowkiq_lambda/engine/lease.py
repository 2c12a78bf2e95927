"""How long a holder may believe in its lease. The proof stands in docs/lease.md.

A lease is trusted for `ttl - ttl / 10` from the *start* of the last call that renewed it: the server cannot have
begun to count earlier. Both clocks are asked, and whichever says stop first wins: the monotonic clock may stand
still while the machine is frozen, the wall clock may be set.
"""

from threading import Lock
from typing import Final

import msgspec

from lowkiq_lambda.clock import Clock

MARGIN: Final = 0.1
"""Of the TTL: what is left for clocks that run at different speeds."""


class Moment(msgspec.Struct, frozen=True):
    """One instant by both clocks."""

    monotonic: float
    wall: float

    @classmethod
    def now(cls, clock: Clock) -> "Moment":
        """The present."""
        return cls(clock.monotonic(), clock.time())


class Lease(msgspec.Struct):
    """A holder's view of its lease; shared with the thread that renews it."""

    clock: Clock
    ttl: float
    _renewed: Moment
    _lost: bool = False
    _lock: Lock = msgspec.field(default_factory=Lock)

    def renewed(self, started: Moment) -> None:
        """A call that began at `started` has renewed the lease."""
        with self._lock:
            if started.monotonic > self._renewed.monotonic:
                self._renewed = started

    def lose(self) -> None:
        """The server says that the shard has another holder."""
        self._lost = True

    def trust_left(self) -> float:
        """Seconds for which it may still be believed in; never below 0."""
        if self._lost:
            return 0.0
        renewed, trusted = self._renewed, self.ttl * (1 - MARGIN)
        by_monotonic = renewed.monotonic + trusted - self.clock.monotonic()
        by_wall = renewed.wall + trusted - self.clock.time()
        return max(0.0, min(by_monotonic, by_wall))

    def renewal_due_in(self) -> float:
        """Seconds until it should be renewed: a third of the TTL after the last time."""
        return self._renewed.monotonic + self.ttl / 3 - self.clock.monotonic()
