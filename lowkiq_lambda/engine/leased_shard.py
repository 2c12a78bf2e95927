"""A shard under a visit's lease: its claims, the calls that renew the lease, and the events of settlings."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.engine.budget import MOMENT, Budget, StopReason
from lowkiq_lambda.engine.failure import Death
from lowkiq_lambda.engine.lease import Lease, Moment
from lowkiq_lambda.engine.outcomes import PendingOutcomes
from lowkiq_lambda.engine.perform import BatchResult, about
from lowkiq_lambda.engine.visit_settings import VisitSettings, batches_of
from lowkiq_lambda.jobs.job import Delivery, Outcome
from lowkiq_lambda.settings.protocols import CursorRun, SettledEvent
from lowkiq_lambda.store.shard.history import SAMPLES
from lowkiq_lambda.store.shard.lease_replies import Acquired, Checkpoint, NotAcquired, StoredClaim
from lowkiq_lambda.store.shard.session import ClaimLimits, LeaseSession, Next, Settlement

if TYPE_CHECKING:
    from lowkiq_lambda.engine.admission import Admission
    from lowkiq_lambda.engine.iteration_run import IterationRun
    from lowkiq_lambda.engine.outage import AlikeFailures
    from lowkiq_lambda.engine.tuning import Tuning

logger = logging.getLogger(__name__)

_PARTIAL: Final = ("part", "more")
"""The steps that leave ids in flight."""
_CLAIMING: Final = ("claim", "more")
_NOTHING: Final[Mapping[str, float]] = MappingProxyType({})


class Claim(msgspec.Struct, eq=False):
    """The ids that one claim has put into flight, until they are settled. Only the thread of its visit changes it.

    `charge`, `is_rest`: as in the store's `StoredClaim`.
    """

    deliveries: Sequence[Delivery] = ()
    lone_suspect: bool = False
    charge: bytes | None = None
    is_rest: bool = False
    left: deque[list[Delivery]] = msgspec.field(default_factory=deque)
    """The batches that have not begun."""
    exited: list[Delivery] = msgspec.field(default_factory=list)
    """The ids whose handlers exited in this visit: they wait for another one."""
    batch: Sequence[Delivery] = ()
    """The one that was begun last, in the visit's own thread."""
    begun_at: float = 0.0
    """When that was (monotonic)."""
    settled_at: float = 0.0
    """When something of the claim was settled last, or it came (monotonic)."""
    ahead: float = 0.0
    """By how much the time of the shard's server is ahead of the monotonic clock."""
    run: "IterationRun | None" = None
    """Of the job in that batch, while it runs, if it has a cursor."""

    @classmethod
    def of(cls, claim: StoredClaim | None) -> "Claim | None":
        """As the store has told it."""
        if claim is None:
            return None
        return cls(claim.deliveries, claim.lone_suspect, claim.charge, claim.is_rest)

    def divide(self, deliveries: Sequence[Delivery], batch_size: int, exited_ids: Collection[str]) -> None:
        """Line these up in batches; ids that exited in this visit are set apart."""
        fresh = deliveries
        if exited_ids:
            self.exited += [delivery for delivery in deliveries if delivery.id in exited_ids]
            fresh = [delivery for delivery in deliveries if delivery.id not in exited_ids]
        self.left.extend(batches_of(fresh, batch_size))

    def drop(self, ids: Collection[str]) -> list[Delivery]:
        """Take these ids out of what has not begun."""
        dropped = [delivery for batch in self.left for delivery in batch if delivery.id in ids] if ids else []
        if dropped:
            left = [[delivery for delivery in batch if delivery.id not in ids] for batch in self.left]
            self.left = deque(batch for batch in left if batch)
        return dropped

    def first_ids(self, ids: int) -> list[Delivery]:
        """So many ids of the first batch; the others of it come next."""
        if not ids:
            return []
        batch = self.left.popleft()
        if ids < len(batch):
            self.left.appendleft(batch[ids:])
            return batch[:ids]
        return batch


class LeasedShard:
    """One shard for the time of a visit."""

    def __init__(
        self,
        settings: VisitSettings,
        session: LeaseSession,
        budget: Budget,
        now: Callable[[], float],
        admission: "Admission | None",
    ) -> None:
        self.settings = settings
        self.admission = admission
        """The visit's permit of a limited queue; None if the queue is not limited."""
        self.session = session
        self.now = now
        """Unix seconds by the shard's server. Raises BackendError if it has to be asked and can't."""
        self.lease = Lease(settings.clock, settings.lease.ttl, Moment.now(settings.clock))
        self.pending = PendingOutcomes(settings.worker, settings.texts)
        self.outage: AlikeFailures | None = None
        """While batches fail."""
        self.counts: Counter[str] = Counter()
        """Ids by outcome, as Redis has acknowledged them."""
        self._budget = budget
        self._ahead = 0.0
        """Seconds by which the clock of the shard's server is ahead of this process's, as of the acquisition."""
        self.runs = None if settings.runs is None else settings.runs.begin(session)
        """Those that the next settlings keep; None if the queue keeps none."""
        self.has_expiries = False
        """Whether a claim of this visit had a payload with an expiry."""
        self._took: list[float] = []
        self._waited: list[float] = []
        self._sampled = 0.0
        self._computed = 0.0
        self._tuned_at = settings.clock.monotonic()
        self._cancelled: set[str] = set()
        """The ids that the calls of this settling have cancelled."""

    def requested(self) -> StopReason | None:
        """Why an operator wants the visit to end, or None."""
        return "stopping" if self.session.stop_request == "quiet" else self.session.stop_request

    def abandon(self, seconds: float) -> None:
        """From another thread, before the process exits: give back what is running, free after `seconds`."""
        with suppress(LowkiqError):
            self.session.abandon(seconds, retry_for=0.0)
        if self.admission is not None:
            self.admission.end_in(seconds)

    def trust_left(self) -> float:
        """Seconds for which handlers may go on: while the lease is trusted, and the permit of a limited queue."""
        left = self.lease.trust_left()
        return left if self.admission is None else min(left, self.admission.lease.trust_left())

    def look_holds_for(self, claim: Claim) -> float:
        """Seconds for which a look at the time stands for those before further batches: 0 if they need their own.

        Nothing is taken from the lease's margin. Until then, by both clocks, the lease is trusted, a batch that takes
        less than MOMENT fits into the budget, and what is done need not be settled; one that takes longer uses it up.
        Permits, expiries and jobs with a cursor, which ask who waits, have times of their own.
        """
        settings, now = self.settings, self.settings.clock.monotonic()
        own_times = self.admission is not None or self.has_expiries or settings.performer.iterate is not None
        if claim.lone_suspect or own_times:
            return 0.0
        unsettled_for = claim.settled_at + settings.settle_interval - now
        return min(MOMENT, self.lease.trust_left(), unsettled_for, self._budget.fits_for(settings.timing))

    def acquire(self) -> Acquired | NotAcquired:
        """Take the lease, with what a dead holder left."""
        started = Moment.now(self.settings.clock)
        retry_for = min(self.settings.lease.ttl / 3, self._budget.remaining())
        granted = self.session.acquire(self.settings.owner, self._claim_limits(), retry_for)
        self.lease.renewed(started)
        if isinstance(granted, Acquired):
            self.has_expiries = granted.claim is not None and granted.claim.expires
            self._ahead = self.now() - self.settings.clock.time()
            self._note_recovery(granted)
        return granted

    def start(self, job_id: str) -> None:
        """Note that the handler of a lone suspect is about to run."""
        started = Moment.now(self.settings.clock)
        self.session.start(job_id, self._retry_for())
        self.lease.renewed(started)

    def save(self, job_id: str, progress: bytes, *, clears: bool, left_since: float | None = None) -> Checkpoint:
        """Save how far a job has come that is running. If it raises, the visit has to end.

        `left_since`: since when the oldest of what else is in flight counts for the lag.
        """
        started = Moment.now(self.settings.clock)
        retry_for = self._retry_for()
        saved = self.session.checkpoint(job_id, progress, clears=clears, retry_for=retry_for, left_since=left_since)
        self.lease.renewed(started)
        return saved

    def add(self, claim: Claim, batch: Sequence[Delivery], result: BatchResult) -> Sequence[Delivery]:
        """Note the result of a batch; the ids that have an outcome now."""
        if self.outage is None and result.error is None:
            self.pending.add(batch, result, self.now)
            return batch
        from lowkiq_lambda.engine.outage import AlikeFailures  # noqa: PLC0415 - a drain in which nothing fails needs none

        self.outage = self.outage or AlikeFailures(self)
        return self.outage.note(claim.left, batch, result)

    def end_trials(self, claim: Claim) -> Sequence[Delivery]:
        """No batch of the claim begins any more; the ids that have an outcome now."""
        return () if self.outage is None else self.outage.end_trials(claim.left)

    def hand_over(self) -> Sequence[Delivery]:
        """The next settling takes along what is tried in an outage; the ids that have an outcome now."""
        return () if self.outage is None else self.outage.hand_over()

    @property
    def samples_more(self) -> bool:
        """Whether it is to be measured how long a processor works in the next batch."""
        return len(self._took) < SAMPLES

    def note_batch(self, took: float, lag: float, computed: float | None = None) -> None:
        """A batch ran so many seconds; its first id had been due for so many when it began.

        `computed`: for how many of these a processor worked, if that was measured.
        """
        self.note_batches([took], [lag], computed)

    def note_batches(self, took: Sequence[float], lags: Sequence[float], computed: float | None) -> None:
        """The same for several that ran one after the other; it was measured of the first of them."""
        self._took += took
        self._waited += lags
        if computed is not None:
            self._sampled += took[0]
            self._computed += computed

    def _work(self) -> tuple[int, int, int]:
        """The calls since the last settling, the milliseconds that they took, and those of computing in them."""
        busy = sum(self._took) * 1_000
        share = min(1.0, self._computed / self._sampled) if self._sampled > 0 else 0.0
        return len(self._took), round(busy), round(share * busy)

    def settle(
        self, next_step: Next, limits: ClaimLimits | None = None, left: Mapping[str, float] = _NOTHING
    ) -> Claim | None:
        """Write what is pending, and go on; the next claim, if any.

        `left`, with "more": what stays in flight, and since when each counts for the lag.
        """
        self.note_stall()
        pending, pace = self.pending, self.settings.timing.dump(self._ahead)
        *ahead, outcomes = pending.parts(partial=next_step in _PARTIAL)
        for part in ahead:
            kept = None if self.runs is None else self.runs.ended(part)
            self._write(Settlement(part, "part", pace, 0, runs=kept, begins_expiry=pending.begins_expiry), limits)
        kept = None if self.runs is None else self.runs.ended(outcomes, is_last=True)
        begins = pending.begins_expiry
        last = Settlement(outcomes, next_step, pace, pending.payloads, left, kept, begins, self._work())
        claim = self._write(last, limits)
        if self.settings.tuning is not None:
            room = 0 if next_step not in _CLAIMING else (limits or self.limits()).ids
            self._tune(self.settings.tuning, room, claim)
        if self._cancelled:
            pending.cancel(self._cancelled)
            self._cancelled = set()
        self.pending = PendingOutcomes(self.settings.worker, self.settings.texts)
        self._count(pending.counts(), pending.named, pending.cursor_runs)
        if pending.dead:
            self.settings.after_death(pending.dead)
        self.has_expiries = self.has_expiries or (claim is not None and claim.expires)
        return Claim.of(claim)

    def _write(self, settlement: Settlement, limits: ClaimLimits | None) -> StoredClaim | None:
        started = Moment.now(self.settings.clock)
        claim = self.session.settle(settlement, limits or self._claim_limits(), retry_for=self._retry_for())
        self.lease.renewed(started)
        self._cancelled.update(self.session.cancelled)
        return claim

    def _tune(self, tuning: "Tuning", room: int, claim: StoredClaim | None) -> None:
        """Tell what was settled, and whether more was due than there was `room` for; 0: no claim."""
        from lowkiq_lambda.engine.settled import Settled  # noqa: PLC0415 - only for workers with "auto"

        counts, now = self.pending.counts(), self.settings.clock.monotonic()
        failed = counts["failed"] + counts["suspected"]
        settled = Settled(
            at=now,
            busy=sum(self._took),
            room=(now - self._tuned_at) * self.settings.concurrency,
            ended=failed + counts["done"] + counts["rejected"],
            failed=failed,
            is_short=(claim is not None and len(claim.deliveries) >= room) if room else None,
            computing=self._computed / self._sampled if self._sampled > 0 else None,
        )
        tuning.settled(settled)
        self._tuned_at = now

    def note_stall(self) -> None:
        """Note for later settlings that the process did not renew this lease in time."""
        if self.lease.stalled:
            self.settings.timing.hinder().note_stall(self.lease.stalled, self.lease.stalled_at)
            self.lease.stalled = 0.0

    def warn_of_trimmed(self) -> None:
        """Log what the morgue had no room for, once for a visit."""
        session = self.session
        if session.trimmed:
            fields = {"queue": session.shard.queue_name, "shard": session.shard.number, "count": session.trimmed}
            logger.warning("the morgue of a shard is full: it has lost %d payloads", session.trimmed, extra=fields)

    def _note_recovery(self, acquired: Acquired) -> None:
        if acquired.pace:
            self.settings.timing.adopt(acquired.pace, self._ahead)
        if (tuning := self.settings.tuning) is not None:
            self._tuned_at = self.settings.clock.monotonic()
            tuning.acquired(self._tuned_at, is_recovery=acquired.recovered > 0 or bool(acquired.dead))
        if not (acquired.recovered or acquired.dead):
            return
        if acquired.recovered:
            fields = {**about(self.settings.worker, acquired.recovered_ids), "count": acquired.recovered}
            left_by = {"shard": self.session.shard.number, "owner": acquired.recovered_from}
            logger.warning("took over what another holder left in flight", extra=fields | left_by)
        outcome: Outcome = "blocked" if self.settings.worker.dead_head == "block" else "dead"
        failed = len(acquired.dead)
        counts = Counter({"recovered": acquired.recovered, outcome: failed, "failed": failed})
        self._count(counts, lambda: [(job_id, outcome) for job_id, _ in acquired.dead])
        if acquired.dead:
            crashed = self.session.crashed
            self.settings.after_death([Death(job_id, entry, crashed, "crashed") for job_id, entry in acquired.dead])

    def _count(
        self,
        counts: Counter[str],
        name_outcomes: Callable[[], Iterable[tuple[str, Outcome]]],
        name_cursor_runs: Callable[[], Mapping[str, CursorRun]] = dict,
    ) -> None:
        """Take in what Redis has just acknowledged."""
        counts = +counts
        self.counts += counts
        if counts:
            event = SettledEvent(
                queue_name=self.session.shard.queue_name,
                shard=self.session.shard.number,
                token=self.session.token,
                at=self.now(),
                counts=counts,
                took=self._took,
                waited=self._waited,
                name_outcomes=name_outcomes,
                name_cursor_runs=name_cursor_runs,
            )
            self.settings.after_settling(event)
        self._took, self._waited, self._sampled, self._computed = [], [], 0.0, 0.0

    def _retry_for(self) -> float:
        """How long a call may be tried: as long as the lease lasts, and the time for the drain."""
        return min(self.lease.trust_left(), self._budget.remaining() + self.settings.lease.ttl / 3)

    def limits(self) -> ClaimLimits:
        """How much to have in flight."""
        settings, worker = self.settings, self.settings.worker
        most = settings.claim_payloads, settings.claim_bytes
        ids = settings.ids_in(settings.settle_interval)
        rate = worker.tenant_rate
        tenant_rate = None if rate is None else (rate.ids, rate.per)
        return ClaimLimits(ids, *most, worker.payloads_at_once, settings.concurrency, tenant_rate)

    def _claim_limits(self) -> ClaimLimits:
        """The size of a claim while no id is in flight."""
        limits = self.limits()
        if self.admission is None:
            return limits
        # One at least: the first is asked for again before it begins.
        return msgspec.structs.replace(limits, ids=max(1, self.admission.room(limits.ids)))
