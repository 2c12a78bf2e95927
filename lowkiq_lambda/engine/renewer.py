"""Renews leases while their batches run long: one thread for all leases of a process, begun when first needed."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from lowkiq_lambda.clock import at_most
from lowkiq_lambda.engine.lease import Lease, Moment
from lowkiq_lambda.errors import LeaseLost, LowkiqError

logger = logging.getLogger(__name__)


class _Kept(msgspec.Struct, frozen=True, eq=False):
    lease: Lease
    renew: Callable[[], object]


class LeaseRenewer:
    """Keeps the leases that it was given from running out."""

    def __init__(self) -> None:
        self._kept: set[_Kept] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = math.inf

    @contextmanager
    def keep(self, lease: Lease, renew: Callable[[], object]) -> Iterator[None]:
        """Renew the lease by calling `renew` whenever a third of its TTL has passed, until the block ends."""
        kept = _Kept(lease, renew)
        with self._changed:
            self._kept.add(kept)
            self._ensure_thread()
            if time.monotonic() + lease.renewal_due_in() < self._wakes_at:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._kept.discard(kept)

    def renew_due(self) -> float | None:
        """Renew what is due; seconds until the next is, None where nothing is kept."""
        with self._changed:
            kept = list(self._kept)
        for held in kept:
            if held.lease.renewal_due_in() <= 0:
                self._renew(held)
        return min((max(held.lease.renewal_due_in(), held.lease.ttl / 30) for held in kept), default=None)

    def _renew(self, kept: _Kept) -> None:
        started = Moment.now(kept.lease.clock)
        try:
            kept.renew()
            kept.lease.renewed(started)
        except LeaseLost:
            kept.lease.lose()
            with self._changed:
                self._kept.discard(kept)
        except LowkiqError as error:
            # The next round tries again; trust ends by itself if none gets through.
            logger.warning("a lease could not be renewed: %s", error)

    def _ensure_thread(self) -> None:
        # After a fork the thread is not alive in the child, and a new one is begun here.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="lowkiq-renewer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            wait = self.renew_due()
            with self._changed:
                if wait is None and self._kept:
                    continue
                self._wakes_at = math.inf if wait is None else time.monotonic() + wait
                self._changed.wait(at_most(wait))
