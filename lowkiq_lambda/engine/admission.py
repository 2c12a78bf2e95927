"""Admission control for queues with limits: whether a visit may start, and which ids it may start as it goes on.

Visits to queues without limits have none. A permit is trusted like a lease (`lease.py`), and granted ids may begin only
while the server still counts them for later. So too many visits never run, and too many ids never begin, whatever
becomes of a call. docs/lease.md has the proof.
"""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from lowkiq_lambda.base.errors import LeaseLost, LowkiqError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.budget import Budget, StopReason
from lowkiq_lambda.engine.lease import Lease, LeaseRenewers, Moment
from lowkiq_lambda.store.shard.admitting import Admitted, Full, Limits, PermitSession, visits_running
from lowkiq_lambda.store.shard.keys import ShardRef

logger = logging.getLogger(__name__)

TURN: Final = 0.25
"""Seconds after which a visit ends whose permit another shard waits for."""
ASK: Final = 1.0
"""Seconds after which a visit asks anew whether others wait."""
_SHORTEST: Final = 0.001
"""Seconds of a wait: so that they add up, whatever two clocks make of what may begin now."""
_LAST_WORDS: Final = 1.0
"""Seconds of retries of the call that ends a visit's permit. If they all fail, the permit ends by its TTL."""


def limits_of(worker: type[Worker[Any]]) -> Limits:
    """The limits that the worker declares for visits, and for ids that begin."""
    rate = worker.rate
    return Limits(worker.max_running) if rate is None else Limits(worker.max_running, rate.ids, rate.per)


class Admission:
    """The permit of one visit. For the visit's own thread; `keep` and `end_in` for any.

    `wanted` says how many ids begin in so many seconds, by experience. `waits_for`: queues of which no shard may be
    visited while it begins, or goes on.
    """

    def __init__(
        self,
        session: PermitSession,
        budget: Budget,
        ttl: float,
        most: Callable[[float], int],
        waits_for: Sequence[str] = (),
    ) -> None:
        clock = session.clock
        self.session = session
        self.lease = Lease(clock, ttl, Moment.now(clock))
        """The time for which the permit is trusted."""
        self.others_wait = False
        """Whether shards wait for a permit, or for ids, as far as is known."""
        self._clock = clock
        self._budget = budget
        self._wanted = most
        self._waits_for = waits_for
        self._is_blocked = False
        self._left = 0.0
        self._grant = Lease(clock, 0.0, Moment.now(clock))
        self._entered_at = self._asked_at = self._more_at = clock.monotonic()

    @property
    def is_lost(self) -> bool:
        """Whether the permit is not trusted any more: handlers are to come to an end."""
        return self.lease.trust_left() <= 0

    @property
    def more_in(self) -> float:
        """In how many seconds another id may begin, as far as is known."""
        return max(0.0, self._more_at - self._clock.monotonic())

    @contextmanager
    def taken(
        self, shard: ShardRef, renewers: LeaseRenewers, may_still_run: Callable[[], bool]
    ) -> Iterator[float | None]:
        """Take a permit until the block ends, for longer if handlers may still run then.

        Yields None, or the seconds after which to come again if there is no permit.
        """
        if (seconds := self.enter()) is not None:
            yield seconds
            return
        try:
            with renewers.of(self.session.queue).keep(shard, self.lease, self.keep):
                yield None
        finally:
            if not may_still_run():
                self.leave()

    def enter(self) -> float | None:
        """Take a permit. None if there is one, else in how many seconds to come again. Raises BackendError."""
        budget = self._budget
        retry_for = min(self.lease.ttl / 3, budget.remaining())
        if seconds := self._blocked_for(retry_for):
            return seconds
        started = Moment.now(self._clock)
        try:
            want = self._wanted(min(ASK, self.session.limits.slack))
            answer = self.session.enter(want, budget.patience, retry_for)
        except LowkiqError:
            # It may have been applied.
            self.leave()
            raise
        if isinstance(answer, Full):
            return max(_SHORTEST, answer.seconds)
        self._take(answer, started)
        return None

    def room(self, ids: int, waiting: int = 0) -> int:
        """How many of `ids` may be claimed, if `waiting` ids of the visit have not begun."""
        return int(min(ids, max(0.0, self._left - waiting)))

    def against_claim(self) -> StopReason | None:
        """The reason against another claim, or None; asks the server if it is time to."""
        if self._is_turn_over():
            return "turn over"
        if self._clock.monotonic() - self._asked_at >= ASK or not self._may_begin(1):
            self._stay()
        if self.is_lost or self._is_blocked or not self._may_begin(1):
            return "limited"
        return "turn over" if self._is_turn_over() else None

    def begin(self, ids: int) -> int:
        """How many of so many ids may begin now: they count as begun."""
        if not self._may_begin(ids):
            self._stay()
        if self.is_lost or self._is_blocked or not self._may_begin(1):
            return 0
        begun = int(min(ids, self._left))
        self._left -= begun
        return begun

    def hand_back(self) -> None:
        """Nothing waits in the shard: what was granted is for other shards, while calls of this visit go on."""
        if 0 < self._left < math.inf and not self.is_lost:
            self._ask(0)

    def keep(self) -> None:
        """Prolong the permit. Raises LeaseLost if it has ended, and BackendError."""
        self.others_wait = self.session.keep(0.0).waiting > 0

    def end_in(self, seconds: float) -> None:
        """Set the permit to end in `seconds`; the handlers of its visit must have ended by then."""
        with suppress(LowkiqError):
            self.session.keep(0.0, seconds)

    def leave(self) -> None:
        """The visit has ended, and no handler of it runs: end its permit."""
        try:
            self.session.leave(self._left, _LAST_WORDS)
        except LowkiqError as error:
            logger.info("a visit could not say that it has ended, its permit ends by itself: %s", error)

    def _may_begin(self, ids: int) -> bool:
        return self._left >= ids and self._grant.trust_left() > 0

    def _is_turn_over(self) -> bool:
        return self.others_wait and self._clock.monotonic() - self._entered_at >= TURN

    def _stay(self) -> None:
        """Ask for more, unless it is known that there is none."""
        now = self._clock.monotonic()
        if now < self._more_at and now - self._asked_at < ASK:
            return
        try:
            seconds = self._blocked_for(self._retry_for())
        except LowkiqError as error:
            self._lose(error)
            return
        if seconds:
            # The ids that the visit has claimed and not begun go back, or wait beside the running ones.
            self._is_blocked, self._asked_at, self._more_at = True, now, now + seconds
            return
        self._ask(self._wanted(min(ASK, self._grant.ttl)))

    def _ask(self, want: int) -> None:
        """Prolong the permit, give back what has not begun, and ask for so many."""
        started = Moment.now(self._clock)
        try:
            answer = self.session.stay(want, self._left, self._retry_for())
        except LeaseLost:
            self.lease.lose()
        except LowkiqError as error:
            # It is unknown whether the call was applied: the next visit that enters gets a new count.
            self._lose(error)
        else:
            self._take(answer, started)

    def _retry_for(self) -> float:
        return min(self.lease.trust_left(), self._budget.remaining() + self.lease.ttl / 3)

    def _lose(self, error: LowkiqError) -> None:
        shard = self.session.shard
        fields = {"queue": shard.queue_name, "shard": shard.number}
        logger.warning("a permit could not be prolonged, so its visit ends: %s", error, extra=fields)
        self.lease.lose()

    def _blocked_for(self, retry_for: float) -> float:
        """In how many seconds to come again, as a queue that goes first is visited; 0: now. Raises BackendError."""
        for name in self._waits_for:
            visits = visits_running(self.session.backend, name, retry_for)
            if visits.running:
                # Nobody rings when they have ended.
                return min(ASK, visits.seconds)
        return 0.0

    def _take(self, answer: Admitted, started: Moment) -> None:
        self.lease.renewed(started)
        self._is_blocked = False
        self._grant = Lease(self._clock, answer.slack, started)
        self._left = answer.ids
        self.others_wait = answer.waiting > 0
        self._asked_at = self._clock.monotonic()
        self._more_at = self._asked_at + (answer.more_in if answer.ids < 1 else 0.0)
