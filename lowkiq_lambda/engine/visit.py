"""A visit to a shard: acquire, recover, [claim, perform, settle] while the budget allows, release.

Everything else hangs off this. Recovery travels with acquiring, the next claim or the release with settling:
one call each.
"""

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.engine.batch import batches_of, parted
from lowkiq_lambda.engine.budget import Budget, StopReason
from lowkiq_lambda.engine.failure import ErrorText
from lowkiq_lambda.engine.lease import Lease, Moment
from lowkiq_lambda.engine.outcomes import PendingOutcomes
from lowkiq_lambda.engine.perform import Performer
from lowkiq_lambda.engine.renewer import LeaseRenewer
from lowkiq_lambda.engine.timing import BatchTiming
from lowkiq_lambda.errors import BackendError, LeaseLost, LowkiqError
from lowkiq_lambda.job import Delivery, Outcome
from lowkiq_lambda.protocols import SettledEvent
from lowkiq_lambda.store.shard.session import Acquired, ClaimLimits, LeaseSession, Next, NotAcquired, Settlement
from lowkiq_lambda.store.shard.windows import Window
from lowkiq_lambda.worker import Worker

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DrainResult:
    """How a visit ended: why, ids by outcome, the lease's token, when the shard is worth another look.

    `exit`: what a handler exited with, at last; its jobs were given back.
    """

    reason: StopReason
    counts: Counter[str] = field(default_factory=Counter)
    token: int | None = None
    until: float | None = None
    exit: BaseException | None = None


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """What is the same for every visit to the shards of one worker."""

    worker: type[Worker]
    performer: Performer
    texts: ErrorText
    timing: BatchTiming
    renewer: LeaseRenewer
    clock: Clock
    owner: str
    lease_ttl: float
    ack_interval: float
    claim_payloads: int
    claim_bytes: int
    alone: threading.Lock
    """Of the process: held while a suspect runs, from its start to its settling."""
    after_burial: Callable[[Sequence[tuple[str, bytes, bytes]]], None]
    """Told of (id, entry, error) that just went to the morgue."""
    after_settling: Callable[[SettledEvent], None]
    """Told what Redis has acknowledged."""


class ShardVisit:
    """One visit to one shard; also what its handlers may know about their time and lease."""

    def __init__(
        self, settings: DrainSettings, session: LeaseSession, budget: Budget, now: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._session = session
        self._budget = budget
        self._now = now
        self._lease = Lease(settings.clock, settings.lease_ttl, Moment.now(settings.clock))
        self._pending = PendingOutcomes(settings.worker, settings.texts)
        self._counts: Counter[str] = Counter()
        self._took: list[float] = []
        self._waited: list[float] = []
        self._reason: StopReason | None = None
        self._exit: BaseException | None = None
        # These wait for another visit: they go behind all others, so that all others were performed by now.
        self._exited_ids: set[str] = set()

    @property
    def token(self) -> int:
        """The fencing token."""
        return self._session.token

    def remaining(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget.remaining()

    def stopping(self) -> bool:
        """Whether handlers should come to an end."""
        return bool(self._session.stop_request) or self._budget.stopping() or self._lease.trust_left() <= 0

    def abandon(self, seconds: float) -> None:
        """From another thread, before the process exits: give back what is running, free after `seconds`."""
        with suppress(LowkiqError):
            self._session.abandon(seconds, retry_for=0.0)

    def drain(self) -> DrainResult:
        """Work the shard off as far as the budget allows.

        Raises BackendError where Redis is out of reach for longer than the lease can be trusted, and KeyboardInterrupt
        where that ended a handler. What else ends one without being a failure (SystemExit) is told by the result.
        """
        if reason := self._budget.against_batch(0.0):
            return DrainResult(reason)
        granted = self._acquire()
        if isinstance(granted, NotAcquired):
            return DrainResult(granted.reason, until=granted.until)
        self._note_recovery(granted)
        with self._settings.renewer.keep(self._lease, lambda: self._session.renew(retry_for=0.0)):
            self._run_windows(granted.window)
        if isinstance(self._exit, KeyboardInterrupt):
            raise self._exit
        reason = self._reason or self._requested() or "empty"
        until = None if reason == "held" else self._session.due_at
        return DrainResult(reason, self._counts, granted.token, until, self._exit)

    def _acquire(self) -> Acquired | NotAcquired:
        started = Moment.now(self._settings.clock)
        retry_for = min(self._settings.lease_ttl / 3, self._budget.remaining())
        granted = self._session.acquire(self._settings.owner, self._limits(), retry_for)
        self._lease.renewed(started)
        return granted

    def _note_recovery(self, acquired: Acquired) -> None:
        if acquired.pace:
            self._settings.timing.adopt(acquired.pace)
        if acquired.recovered:
            shard, left = self._session.shard, {"recovered": acquired.recovered, "owner": acquired.recovered_from}
            told = {"queue": shard.queue_name, "shard": shard.index, **left}
            logger.warning("took over what another holder left in flight", extra=told)
        counts = Counter(recovered=acquired.recovered, buried=len(acquired.buried), failed=len(acquired.buried))
        self._count(counts, lambda: [(job_id, "buried") for job_id, _ in acquired.buried])
        if acquired.buried:
            self._settings.after_burial([(job_id, entry, self._session.crashed) for job_id, entry in acquired.buried])

    def _run_windows(self, window: Window | None) -> None:
        try:
            while window:
                window = self._run_window(window)
        except LeaseLost:
            self._lease.lose()
            self._reason = "lease lost"
        except BaseException as error:
            if not isinstance(error, BackendError):
                # No handler runs any more: what is in flight is returned, and others need not wait for the lease.
                self.abandon(0.05)
            raise

    def _run_window(self, window: Window) -> Window | None:
        """Perform a window, settle it, and claim the next; None where the visit ends."""
        if not window.lone_suspect:
            return self._perform_and_settle(window)
        # Were two to run alone in one process, its death would be held against both.
        if not self._settings.alone.acquire(blocking=False):
            self._pending.give_back(window.deliveries)
            self._reason = "held"
            return self._settle("release")
        try:
            return self._perform_and_settle(window)
        finally:
            self._settings.alone.release()

    def _perform_and_settle(self, window: Window) -> Window | None:
        if window.charge is None:
            self._run_batches(window)
        else:
            self._pending.charge(window.deliveries, window.charge, self._now())
        self._reason = self._reason or self._budget.against_claim(self._settings.timing.slowest)
        return self._settle("release" if self._reason else "claim")

    def _run_batches(self, window: Window) -> None:
        clock = self._settings.clock
        fresh, exited = parted(window.deliveries, self._exited_ids)
        left = deque(batches_of(fresh, self._settings.worker.batch_size))
        settled = clock.monotonic()
        ahead = self._now() - settled
        while left and (batch := self._next_batch(left)):
            begun = clock.monotonic()
            self._run_batch(batch, lone_suspect=window.lone_suspect)
            ended = clock.monotonic()
            self._settings.timing.observe(ended - begun)
            self._took.append(ended - begun)
            self._waited.append(ahead + begun - batch[0].perform_in)
            if isinstance(self._exit, KeyboardInterrupt):
                break
            if left and ended - settled >= self._settings.ack_interval:
                self._settle("part")
                settled = ended
        self._pending.give_back([*exited, *chain.from_iterable(left)])
        if exited or isinstance(self._exit, KeyboardInterrupt):
            self._reason = self._reason or "exited"

    def _next_batch(self, left: deque[list[Delivery]]) -> list[Delivery]:
        """The next batch if it may start; its first id where nothing ran yet and more is not predicted to fit."""
        if self._lease.trust_left() <= 0:
            self._reason = "lease lost"
        elif requested := self._requested():
            self._reason = requested
        else:
            self._reason = self._budget.against_batch(self._settings.timing.slowest)
        if self._reason is None:
            return left.popleft()
        if self._reason == "out of time" and self._budget.may_try_one():
            text = "%s: a batch takes %.1f s by experience and %.1f s are left: one id is tried"
            logger.warning(
                text, self._settings.worker.queue_name, self._settings.timing.slowest, self._budget.remaining()
            )
            self._reason = None
            batch = left.popleft()
            if batch[1:]:
                left.appendleft(batch[1:])
            return batch[:1]
        return []

    def _run_batch(self, batch: list[Delivery], *, lone_suspect: bool) -> None:
        if lone_suspect:
            started = Moment.now(self._settings.clock)
            self._session.start(batch[0].id, self._retry_for())
            self._lease.renewed(started)
        self._budget.note_batch()
        result = self._settings.performer.run(batch, self)
        if result.exit:
            self._exit = result.exit
            # Of several nobody knows which one it was: each may run alone first.
            self._exited_ids.update(result.exited_ids if len(result.exited_ids) == 1 else ())
        self._pending.add(batch, result, self._now)

    def _settle(self, next_step: Next) -> Window | None:
        pending, started = self._pending, Moment.now(self._settings.clock)
        outcomes = pending.records(partial=next_step == "part")
        settlement = Settlement(outcomes, next_step, self._settings.timing.dump(), pending.payloads)
        window = self._session.settle(settlement, self._limits(), retry_for=self._retry_for())
        self._lease.renewed(started)
        self._pending = PendingOutcomes(self._settings.worker, self._settings.texts)
        self._count(pending.counts(), pending.named)
        if pending.buried:
            self._settings.after_burial(pending.buried)
        return window

    def _count(self, counts: Counter[str], name_outcomes: Callable[[], Iterable[tuple[str, Outcome]]]) -> None:
        """Take in what Redis has just acknowledged."""
        counts = +counts
        self._counts += counts
        if counts:
            event = SettledEvent(
                queue_name=self._session.shard.queue_name,
                shard=self._session.shard.index,
                token=self._session.token,
                at=self._now(),
                counts=counts,
                took=self._took,
                waited=self._waited,
                name_outcomes=name_outcomes,
            )
            self._settings.after_settling(event)
        self._took, self._waited = [], []

    def _requested(self) -> StopReason | None:
        """Why an operator wants the visit to end, or None."""
        return "stopping" if self._session.stop_request == "quiet" else self._session.stop_request

    def _retry_for(self) -> float:
        """How long a call may be tried: as long as the lease lasts, and the time for the drain."""
        return min(self._lease.trust_left(), self._budget.remaining() + self._settings.lease_ttl / 3)

    def _limits(self) -> ClaimLimits:
        settings = self._settings
        ids = settings.timing.window(settings.worker.batch_size, settings.ack_interval)
        return ClaimLimits(ids, settings.claim_payloads, settings.claim_bytes)
