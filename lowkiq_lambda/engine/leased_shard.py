"""A shard under a visit's lease: the calls that renew the lease, and what is counted and told of each settling."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.budget import BatchTiming, Budget, StopReason
from lowkiq_lambda.engine.failure import ErrorText
from lowkiq_lambda.engine.lease import Lease, LeaseRenewers, Moment
from lowkiq_lambda.engine.outcomes import PendingOutcomes
from lowkiq_lambda.engine.perform import Performer, about
from lowkiq_lambda.jobs.job import Outcome
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.store.shard.lease_replies import Acquired, Checkpoint, NotAcquired, Window
from lowkiq_lambda.store.shard.session import ClaimLimits, LeaseSession, LeaseSettings, Next, Settlement

if TYPE_CHECKING:
    from lowkiq_lambda.engine.admission import Admission
    from lowkiq_lambda.engine.slots import Slots
    from lowkiq_lambda.store.shard.admitting import Limits

logger = logging.getLogger(__name__)

_PARTIAL: Final = ("part", "more")
"""The steps that leave ids in flight."""
_NOTHING: Final[Mapping[str, float]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class VisitSettings:
    """What is the same for every visit to the shards of one worker."""

    worker: type[Worker[Any]]
    performer: Performer
    texts: ErrorText
    timing: BatchTiming
    renewers: LeaseRenewers
    clock: Clock
    owner: str
    lease: LeaseSettings
    ack_interval: float
    claim_payloads: int
    claim_bytes: int
    shutdown_timeout: float
    alone: threading.Lock
    """Of the process: held while a suspect runs, from its start to its settling."""
    after_burial: Callable[[Sequence[tuple[str, bytes, bytes]]], None]
    """Told of (id, entry, error) that just failed for the last time."""
    slots: "Slots | None"
    """Where batches run side by side; None where each runs in the visit's own thread."""
    limits: "Limits | None"
    """What the queue allows; None where it is not limited."""
    after_settling: Callable[[SettledEvent], None]
    """Told what Redis has acknowledged."""

    def ids_in(self, seconds: float) -> int:
        """How many ids begin in so many seconds, by experience; a batch at least."""
        worker = self.worker
        if self.slots is None:
            return self.timing.window(worker.batch_size, seconds)
        return self.timing.beside(worker.batch_size, seconds, worker.concurrency)


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
        """The visit's place in a limited queue; None where the queue is not limited."""
        self.session = session
        self.now = now
        """Unix seconds by the shard's server. Raises BackendError where it has to be asked and can't."""
        self.lease = Lease(settings.clock, settings.lease.ttl, Moment.now(settings.clock))
        self.pending = PendingOutcomes(settings.worker, settings.texts)
        self.counts: Counter[str] = Counter()
        """Ids by outcome, as Redis has acknowledged them."""
        self._budget = budget
        self._took: list[float] = []
        self._waited: list[float] = []

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
        """Seconds for which handlers may go on: while the lease is believed in, and the place in a limited queue."""
        left = self.lease.trust_left()
        return left if self.admission is None else min(left, self.admission.lease.trust_left())

    def acquire(self) -> Acquired | NotAcquired:
        """Take the lease, with what a dead holder left."""
        started = Moment.now(self.settings.clock)
        retry_for = min(self.settings.lease.ttl / 3, self._budget.remaining())
        granted = self.session.acquire(self.settings.owner, self._claim_limits(), retry_for)
        self.lease.renewed(started)
        if isinstance(granted, Acquired):
            self._note_recovery(granted)
        return granted

    def start(self, job_id: str) -> None:
        """Note that the handler of a lone suspect is about to run."""
        started = Moment.now(self.settings.clock)
        self.session.start(job_id, self._retry_for())
        self.lease.renewed(started)

    def save(self, job_id: str, progress: bytes, *, clears: bool, left_since: float | None = None) -> Checkpoint:
        """Save how far a job has come that is running. Where it raises, the visit has to end.

        `left_since`: since when the oldest of what else is in flight counts for the lag.
        """
        started = Moment.now(self.settings.clock)
        retry_for = self._retry_for()
        saved = self.session.checkpoint(job_id, progress, clears=clears, retry_for=retry_for, left_since=left_since)
        self.lease.renewed(started)
        return saved

    def note_batch(self, took: float, waited: float) -> None:
        """A batch ran so many seconds; its first id had been due for so many when it began."""
        self._took.append(took)
        self._waited.append(waited)

    def settle(
        self, next_step: Next, limits: ClaimLimits | None = None, left: Mapping[str, float] = _NOTHING
    ) -> Window | None:
        """Write what is pending, and go on; the next window, if any.

        `left`, with "more": what stays in flight, and since when each counts for the lag.
        """
        pending, started = self.pending, Moment.now(self.settings.clock)
        outcomes = pending.records(partial=next_step in _PARTIAL)
        settlement = Settlement(outcomes, next_step, self.settings.timing.dump(), pending.payloads, left)
        window = self.session.settle(settlement, limits or self._claim_limits(), retry_for=self._retry_for())
        self.lease.renewed(started)
        self.pending = PendingOutcomes(self.settings.worker, self.settings.texts)
        self._count(pending.counts(), pending.named)
        if pending.buried:
            self.settings.after_burial(pending.buried)
        return window

    def warn_of_trimmed(self) -> None:
        """Log what the morgue had no room for, once for a visit."""
        session = self.session
        if session.trimmed:
            fields = {"queue": session.shard.queue_name, "shard": session.shard.number, "count": session.trimmed}
            logger.warning("the morgue of a shard is full: it has lost %d payloads", session.trimmed, extra=fields)

    def _note_recovery(self, acquired: Acquired) -> None:
        if acquired.pace:
            self.settings.timing.adopt(acquired.pace)
        if not (acquired.recovered or acquired.buried):
            return
        if acquired.recovered:
            fields = {**about(self.settings.worker, acquired.recovered_ids), "count": acquired.recovered}
            left_by = {"shard": self.session.shard.number, "owner": acquired.recovered_from}
            logger.warning("took over what another holder left in flight", extra=fields | left_by)
        outcome: Outcome = "held" if self.settings.worker.dead_head == "hold" else "buried"
        failed = len(acquired.buried)
        counts = Counter({"recovered": acquired.recovered, outcome: failed, "failed": failed})
        self._count(counts, lambda: [(job_id, outcome) for job_id, _ in acquired.buried])
        if acquired.buried:
            self.settings.after_burial([(job_id, entry, self.session.crashed) for job_id, entry in acquired.buried])

    def _count(self, counts: Counter[str], name_outcomes: Callable[[], Iterable[tuple[str, Outcome]]]) -> None:
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
            )
            self.settings.after_settling(event)
        self._took, self._waited = [], []

    def _retry_for(self) -> float:
        """How long a call may be tried: as long as the lease lasts, and the time for the drain."""
        return min(self.lease.trust_left(), self._budget.remaining() + self.settings.lease.ttl / 3)

    def limits(self) -> ClaimLimits:
        """How much to have in flight."""
        settings, worker = self.settings, self.settings.worker
        most = settings.claim_payloads, settings.claim_bytes
        ids = settings.ids_in(settings.ack_interval)
        rate = worker.tenant_rate
        tenant_rate = None if rate is None else (rate.ids, rate.per)
        return ClaimLimits(ids, *most, worker.payloads_at_once, worker.concurrency, tenant_rate)

    def _claim_limits(self) -> ClaimLimits:
        """How much to claim where nothing is in flight."""
        limits = self.limits()
        if self.admission is None:
            return limits
        # One at least: the first is asked for again before it begins.
        return msgspec.structs.replace(limits, ids=max(1, self.admission.room(limits.ids)))
