"""How long a holder may trust its lease, and the thread that renews it. The proof stands in docs/lease.md.

A lease is trusted for `ttl - ttl / 10` from the *start* of the last call that renewed it: the server cannot have begun
to count earlier. Both clocks are read, and the earlier end counts: the monotonic clock may stand still while the
machine is frozen, the wall clock may be set.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from operator import itemgetter
from threading import Lock
from typing import Final, Protocol

import msgspec

from lowkiq_lambda.base.clock import Clock, at_most
from lowkiq_lambda.base.errors import LeaseLost, LowkiqError
from lowkiq_lambda.store.shard.keys import Keyed, ShardRef
from lowkiq_lambda.store.shard.lease_replies import Requests

logger = logging.getLogger(__name__)

_STALL: Final = (
    "this process stood still: it was %.1f s late to renew a lease of %g s; give it more processor, or raise "
    "LOWKIQ_LEASE_TTL"
)
MARGIN: Final = 0.1
"""Of the TTL: what is left for clocks that run at different speeds."""
_STALLED: Final = 1 / 3
"""Of the TTL: a renewal that is late by so much was near to the loss of the lease."""
_SHORTEST_STALL: Final = 0.5
"""Seconds: any busy machine lets a process wait for less, which matters to leases of a second alone."""


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
    stalled: float = 0.0
    """Seconds by which the process itself was late to renew it, if that was near to its loss."""
    stalled_at: float = 0.0
    """When that was noticed (Unix seconds)."""
    is_lost: bool = False
    """Whether the server says that the shard has another holder."""
    _hurries: bool = False
    _lock: Lock = msgspec.field(default_factory=Lock)

    def renewed(self, started: Moment) -> None:
        """A call that began at `started` has renewed the lease."""
        with self._lock:
            if started.monotonic > self._renewed.monotonic:
                self._renewed = started
            self._hurries = False

    def lose(self) -> None:
        """The server says that the shard has another holder."""
        self.is_lost = True

    def hurry(self) -> None:
        """Its next renewal is due: the server has something to tell."""
        self._hurries = True

    def trust_left(self) -> float:
        """Seconds for which the lease is still trusted; never below 0."""
        if self.is_lost:
            return 0.0
        renewed, trusted = self._renewed, self.ttl * (1 - MARGIN)
        by_monotonic = renewed.monotonic + trusted - self.clock.monotonic()
        by_wall = renewed.wall + trusted - self.clock.time()
        return max(0.0, min(by_monotonic, by_wall))

    def renewal_due_in(self) -> float:
        """Seconds until it should be renewed: a third of the TTL after the last time, or at once if it `hurry`s."""
        if self._hurries:
            return 0.0
        return self._renewed.monotonic + self.ttl / 3 - self.clock.monotonic()


class HandlerContext(Protocol):
    """The part of a drain that handlers may ask for their time and their lease."""

    @property
    def token(self) -> int:
        """The fencing token of the lease."""
        ...

    def remaining(self) -> float:
        """Seconds that are left."""
        ...

    def stopping(self) -> bool:
        """Whether to come to an end."""
        ...

    @property
    def requests(self) -> Requests:
        """What operators want of ids that run."""
        ...


class LimitedRun(HandlerContext, Protocol):
    """The context of a batch whose run has a limit of its own, `Worker.max_run_time`."""

    def begin(self, job_id: str) -> None:
        """A handler is about to be called with this job, which has all of the time."""
        ...

    def end(self) -> None:
        """The batch has ended."""
        ...


class _Kept(msgspec.Struct, frozen=True, eq=False):
    shard: ShardRef
    lease: Lease
    renew: Callable[[], object]
    kept_at: float
    """Since when (monotonic)."""


class LeaseRenewer:
    """Keeps the leases of one node from running out while batches take long: by one thread, begun when first needed."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """`monotonic`: of the machine, whatever clock a lease has: a thread waits by it."""
        self._monotonic = monotonic
        self._kept: set[_Kept] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = math.inf
        self._ended = False
        self._is_calling = False
        self._called_at = -math.inf
        """When the last call of the thread ended (monotonic): until then Redis may have kept it, later the process."""

    def end(self) -> None:
        """End the thread; the next call of `keep` starts another one."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    @contextmanager
    def keep(self, shard: ShardRef, lease: Lease, renew: Callable[[], object]) -> Iterator[None]:
        """Renew the lease by calling `renew` whenever a third of its TTL has passed, until the block ends."""
        entry = _Kept(shard, lease, renew, self._monotonic())
        try:
            with self._changed:
                self._kept.add(entry)
                self._ensure_thread()
                if self._monotonic() + lease.renewal_due_in() < self._wakes_at:
                    self._changed.notify()
            yield
        finally:
            with self._changed:
                self._kept.discard(entry)
            # The thread of the batch may run again before the one that renews.
            self._note_stalls([entry])

    def hurry(self, shard: ShardRef) -> None:
        """Renew the leases of this shard at once."""
        with self._changed:
            for entry in self._kept:
                if entry.shard == shard:
                    entry.lease.hurry()
            self._changed.notify()

    def renew_due(self) -> float | None:
        """Renew what is due; seconds until the next is, None if nothing is kept."""
        with self._changed:
            entries = list(self._kept)
        self._note_stalls(entries)
        for held in entries:
            if held.lease.renewal_due_in() <= 0:
                self._renew(held)
        return min((max(held.lease.renewal_due_in(), held.lease.ttl / 30) for held in entries), default=None)

    def _note_stalls(self, entries: Collection[_Kept]) -> None:
        """Log once which of these leases the process was late to renew, by itself and not because Redis was."""
        stalls = [(self._stall(entry), entry) for entry in entries]
        late = [(seconds, entry) for seconds, entry in stalls if seconds >= _least_stall(entry.lease)]
        for seconds, entry in late:
            lease = entry.lease
            lease.stalled, lease.stalled_at = max(lease.stalled, seconds), lease.clock.time()
        if late:
            seconds, entry = max(late, key=itemgetter(0))
            ttl, shard = entry.lease.ttl, entry.shard
            fields = {"queue": shard.queue_name, "shard": shard.number, "lease": ttl, "late": round(seconds, 3)}
            logger.warning(_STALL, seconds, ttl, extra=fields)

    def _stall(self, entry: _Kept) -> float:
        if self._is_calling:
            return 0.0
        now = self._monotonic()
        return min(-entry.lease.renewal_due_in(), now - self._called_at, now - entry.kept_at)

    def _renew(self, entry: _Kept) -> None:
        started = Moment.now(entry.lease.clock)
        self._is_calling = True
        try:
            entry.renew()
            entry.lease.renewed(started)
        except LeaseLost:
            entry.lease.lose()
            with self._changed:
                self._kept.discard(entry)
        except LowkiqError as error:
            # The next round tries again; trust ends by itself if none gets through.
            fields = {"queue": entry.shard.queue_name, "shard": entry.shard.number}
            logger.warning("a lease could not be renewed: %s", error, extra=fields)
        finally:
            self._called_at, self._is_calling = self._monotonic(), False

    def _ensure_thread(self) -> None:
        # After a fork the thread is not alive in the child, and a new one is begun here.
        self._ended = False
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="lowkiq-renewer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            wait = self.renew_due()
            with self._changed:
                if self._ended:
                    self._thread = None
                    return
                if wait is None and self._kept:
                    continue
                self._wakes_at = math.inf if wait is None else self._monotonic() + wait
                self._changed.wait(at_most(wait))


def _least_stall(lease: Lease) -> float:
    return max(_SHORTEST_STALL, _STALLED * lease.ttl)


class LeaseRenewers:
    """A renewer for each node: one that does not answer costs no lease that lies on another.

    `node_of` names the node that a shard, or what is kept of a queue, lies on. The lease of what moves meanwhile stays
    with its renewer.
    """

    def __init__(self, node_of: Callable[[Keyed], str]) -> None:
        self._node_of = node_of
        self._by_node: dict[str, LeaseRenewer] = {}

    def of(self, shard: Keyed) -> LeaseRenewer:
        """The renewer of the shard's node, or of the queue's. Raises what `node_of` does."""
        node = self._node_of(shard)
        # Of two threads that come first, both get the same one.
        return self._by_node.get(node) or self._by_node.setdefault(node, LeaseRenewer())

    def end(self) -> None:
        """Let all their threads go."""
        for renewer in list(self._by_node.values()):
            renewer.end()
