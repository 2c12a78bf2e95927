"""A visit to a shard: acquire, recover, [claim, perform, settle] while the budget allows, release.

Everything else hangs off this: `visit` is one shard under one lease, `run_claim` what one claim has brought, and
`run_batch` the calls of the handler. Recovery travels with acquiring, the next claim or the release with settling: one
call each.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from functools import partial
from itertools import chain
from time import thread_time
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from lowkiq_lambda.base.error_text import headline, is_a, loggable
from lowkiq_lambda.base.errors import BackendError, LeaseLost, LowkiqError
from lowkiq_lambda.engine.budget import Budget, StopReason, VisitResult
from lowkiq_lambda.engine.leased_shard import Claim, LeasedShard
from lowkiq_lambda.engine.perform import ALL_DONE, BatchResult, about, interruptions
from lowkiq_lambda.engine.visit_settings import VisitSettings
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.lease_replies import Acquired, NotAcquired, Requests
from lowkiq_lambda.store.shard.session import LeaseSession

if TYPE_CHECKING:
    from lowkiq_lambda.engine.admission import Admission
    from lowkiq_lambda.engine.iteration_run import IterationRun

logger = logging.getLogger(__name__)

_UNLIMITED: Final = nullcontext()
"""In place of a permit."""


class Ending(msgspec.Struct, eq=False):
    """How a visit comes to its end, as far as is known."""

    reason: StopReason | None = None
    """Why it claims nothing more; None while it goes on."""
    exit: BaseException | None = None
    """The exit of a handler, the last one."""
    exited_ids: set[str] = msgspec.field(default_factory=set)
    """They wait for another visit: they go behind all others, so that all others were performed by now."""
    cut_short: list[str] = msgspec.field(default_factory=list)
    """Ids whose run was lost with the lease, or with Redis."""

    @property
    def is_interrupted(self) -> bool:
        """Whether a handler ended by Ctrl-C."""
        return self.exit is not None and is_a(self.exit, KeyboardInterrupt)


class ShardVisit:
    """One visit to one shard; also its handlers' view of their time and lease."""

    _no_faults: ClassVar[tuple[type[BaseException], ...]] = (LowkiqError,)
    """The exceptions that end a visit and are not evidence against the jobs that it has in flight."""

    def __init__(
        self,
        settings: VisitSettings,
        session: LeaseSession,
        budget: Budget,
        now: Callable[[], float],
        admission: "Admission | None",
    ) -> None:
        self.session = session
        self.admission = admission
        """Its permit of a limited queue; None if it has asked for none."""
        self._settings = settings
        self._budget = budget
        self._shard = LeasedShard(settings, session, budget, now, admission)
        self._variables = copy_context()
        self._ending = Ending()
        self._claim = Claim()
        """The one under way."""

    @property
    def ref(self) -> ShardRef:
        """The shard."""
        return self.session.shard

    @property
    def token(self) -> int:
        """The fencing token."""
        return self.session.token

    def remaining(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget.remaining()

    def stopping(self) -> bool:
        """Whether handlers should come to an end."""
        return bool(self.session.stop_request) or self._budget.stopping() or self._shard.trust_left() <= 0

    @property
    def requests(self) -> Requests:
        """What operators want of ids in flight."""
        return self.session.requests

    def now(self) -> float:
        """Unix seconds by the shard's server. Raises BackendError if it has to be asked and can't."""
        return self._shard.now()

    def run_of(self, job_id: str) -> "IterationRun":
        """The run of this job, which has a cursor, in the batch that is running."""
        claim = self._claim
        if claim.run is None:
            from lowkiq_lambda.engine.iteration_run import IterationRun  # noqa: PLC0415 - imported lazily: cold start

            suspect = claim.lone_suspect
            claim.run = IterationRun(self._shard, self._budget, job_id, self._others_wait, is_suspect=suspect)
        return claim.run

    def running_jobs(self) -> dict[str, object]:
        """For a line of the log, from another thread: the ids of the batch that was begun last; empty without one."""
        batch = self._claim.batch
        return about(self._settings.worker, [delivery.id for delivery in batch]) if batch else {}

    def running_since(self) -> float:
        """When what `running_jobs` tells of began (monotonic)."""
        return self._claim.begun_at

    def ring(self) -> None:
        """Jobs were pushed to the shard; any thread may say so. One batch at a time: the next claim finds them."""

    def abandon(self, seconds: float) -> None:
        """From another thread, before the process exits: give back what is running, free after `seconds`."""
        self._shard.abandon(seconds)

    def visit(self) -> VisitResult:
        """Work the shard off as far as the budget allows.

        Raises BackendError if Redis is unreachable for longer than the lease can be trusted, and KeyboardInterrupt if
        that ended a handler. The result has the other ends of a visit that are not failures (SystemExit).
        """
        if reason := self._budget.against_batch(0.0):
            return VisitResult(reason)
        permit, renewers = self.admission, self._settings.renewers
        with _UNLIMITED if permit is None else permit.taken(self.ref, renewers, self._may_still_run) as full_for:
            if full_for is not None:
                return VisitResult("limited", until=self._shard.now() + full_for)
            granted = self._shard.acquire()
            if isinstance(granted, NotAcquired):
                return VisitResult(granted.reason, until=granted.until)
            with self._under_lease():
                claim = Claim.of(granted.claim)
                while claim:
                    claim = self.run_claim(claim)
        return self._result(granted)

    def run_claim(self, claim: Claim) -> Claim | None:
        """Perform what was claimed, settle it, and claim more; None if the visit ends."""
        self._claim, shard, ending, alone = claim, self._shard, self._ending, self._settings.alone
        if claim.lone_suspect and not alone.acquire(blocking=False):
            # Were two to run alone in one process, its death would be held against both.
            shard.pending.give_back(claim.deliveries)
            ending.reason = "held"
            return self.settle()
        try:
            if claim.is_rest:
                shard.pending.follow_heads(claim.deliveries)
            elif claim.charge is not None:
                shard.pending.charge(claim.deliveries, claim.charge, shard.now())
            else:
                self._take(claim, claim.deliveries)
                while batch := self._next_batch(claim):
                    self.run_batch(claim, batch)
                self._end_trials(claim)
                self._give_back([*claim.exited, *chain.from_iterable(claim.left)])
                if claim.exited or ending.is_interrupted:
                    ending.reason = ending.reason or "exited"
            return self.settle()
        except BaseException as error:
            self._break_off(claim, error)
            raise
        finally:
            if claim.lone_suspect:
                alone.release()

    def run_batch(self, claim: Claim, batch: list[Delivery]) -> None:
        """Perform a batch, and those behind it for which its look at the time holds; settle them if that is due."""
        settings, shard, session, stopping = self._settings, self._shard, self.session, self._budget.stopping
        clock, perform, runs, tuning = settings.clock, settings.performer.run, shard.runs, settings.tuning
        begun, since, holds_for = clock.monotonic(), clock.time(), shard.look_holds_for(claim)
        claim.batch, claim.begun_at, until = batch, begun, begun + holds_for
        if claim.lone_suspect:
            shard.start(batch[0].id)
        self._budget.note_batch()
        computing, computed, has_run = thread_time() if shard.samples_more else None, None, False
        done, took, waited = list[Delivery](), list[float](), list[float]()
        try:
            while True:
                result = self._variables.copy().run(perform, batch, self)
                if computing is not None:
                    computed, computing = thread_time() - computing, None
                if is_done := result is ALL_DONE and claim.run is None and shard.outage is None:
                    done += batch
                else:
                    has_run = self._note_result(claim, batch, result)
                ended, wall = clock.monotonic(), clock.time()
                took.append(ended - begun)
                waited.append(claim.ahead + begun - batch[0].due_at)
                if runs is not None:
                    runs.note(claim.ahead + begun, took[-1], batch)
                if tuning is not None and is_done:
                    tuning.note(len(batch), took[-1])
                holds = is_done and claim.left and ended < until and since <= wall < since + holds_for
                if not holds or session.stop_request or session.requests or shard.lease.is_lost or stopping():
                    break
                batch, begun = claim.left.popleft(), ended
                claim.batch, claim.begun_at = batch, begun
        finally:
            shard.pending.add(done, ALL_DONE, shard.now)
        if has_run:
            settings.timing.observe_run(took[0])
        else:
            settings.timing.observe_each(took, wall)
        shard.note_batches(took, waited, computed)
        self._settle_if_due(claim, ended)

    def _settle_if_due(self, claim: Claim, now: float) -> None:
        """Write the outcomes that have waited for long enough, if more of the claim is to run."""
        is_due = now - claim.settled_at >= self._settings.settle_interval
        if is_due and claim.left and not self._ending.is_interrupted:
            self._shard.hand_over()
            self._shard.settle("part")
            claim.settled_at = now

    def _note_result(self, claim: Claim, batch: list[Delivery], result: BatchResult) -> bool:
        """Note a result that has more to tell than that all ids are done; whether it is of a job with a cursor."""
        run, claim.run = claim.run, None
        if run is not None and run.broken is not None:
            self._ending.cut_short.append(run.job_id)
            raise run.broken
        if result.exit is not None:
            self._note_exit(batch, result, result.exit)
        self._shard.add(claim, batch, result)
        return run is not None

    def settle(self) -> Claim | None:
        """Write the outcomes of the claim, and claim more, or release the shard if there is a reason to stop."""
        ending, timing = self._ending, self._settings.timing
        ending.reason = ending.reason or self._against_claim()
        if ending.reason == "out of time" and (hindrances := self._budget.misled_by(timing)) is not None:
            from lowkiq_lambda.engine.hindrances import tell_of_unused  # noqa: PLC0415 - imported lazily: cold start

            tell_of_unused(hindrances, timing, self.ref, self._settings.clock.time())
        self._budget.before_claim()
        return self._shard.settle("release" if ending.reason else "claim")

    @contextmanager
    def _under_lease(self) -> Iterator[None]:
        """Keep the lease until the block ends; if that is by an error, see to what is in flight."""
        session = self.session
        renew = self._renew if self._settings.performer.limits else partial(session.renew, retry_for=0.0)
        try:
            with self._settings.renewers.of(session.shard).keep(session.shard, self._shard.lease, renew):
                yield
        except LeaseLost:
            self._shard.lease.lose()
            self._ending.reason = "lease lost"
            self._warn_of_repeats("a lease was lost: its outcomes are refused, and these jobs will be performed again")
        except BackendError:
            self._warn_of_repeats("Redis acknowledged no outcome: these jobs may be performed again")
            raise
        except BaseException as error:
            if is_a(error, (*self._no_faults, *interruptions())):
                # No handler runs any more: what is in flight is returned, and others need not wait for the lease.
                self.abandon(self._settings.lease.ttl if self._may_still_run() else 0.05)
            else:
                self._leave_as_dead(error)
            raise
        finally:
            self._shard.note_stall()
            self._shard.warn_of_trimmed()

    def _renew(self) -> object:
        """Prolong the lease, from the thread that renews leases, and look for handlers that run too long."""
        if (limits := self._settings.performer.limits) is not None:
            limits.look()
        return self.session.renew(retry_for=0.0)

    def _result(self, granted: Acquired) -> VisitResult:
        """How the visit has ended. Raises the KeyboardInterrupt of a handler."""
        shard, ending = self._shard, self._ending
        if ending.exit is not None and ending.is_interrupted:
            raise ending.exit
        reason = ending.reason or shard.requested() or "empty"
        until = None if reason == "held" else self.session.due_at
        if reason == "limited" and self.admission is not None:
            until = shard.now() + self.admission.more_in
        predicted = self._predicted() if reason == "out of time" else None
        return VisitResult(reason, shard.counts, granted.token, until, ending.exit, predicted)

    def _leave_as_dead(self, error: BaseException) -> None:
        """A fault of ours, which the same job may cause each time: what is in flight is suspected, as after a death.

        Were it only given back, it would be performed again and again, with all that is claimed beside it.
        """
        text = "a drain has met a fault of its own: what is in flight runs again, each id alone"
        logger.error(text, extra=self.running_jobs() or None, exc_info=loggable(error))
        if self._may_still_run():
            # No other holder may have the shard before the lease ends.
            self.session.at_risk = None
            return
        with suppress(LowkiqError):
            self.session.leave_as_dead(retry_for=0.0)

    def _warn_of_repeats(self, message: str) -> None:
        if ids := [*self._shard.pending.performed(), *self._ending.cut_short]:
            logger.warning(message, extra=about(self._settings.worker, ids))

    def _against_claim(self) -> StopReason | None:
        reason = self._budget.against_claim(self._predicted())
        return reason or (None if self.admission is None else self.admission.against_claim())

    def _predicted(self) -> float:
        return self._budget.prediction(self._settings.timing)

    def _may_still_run(self) -> bool:
        """Whether handlers may run though the visit has ended."""
        return False

    def _take(self, claim: Claim, deliveries: Sequence[Delivery]) -> None:
        """These have just come into flight: line them up."""
        claim.divide(deliveries, self._settings.batch_size, self._ending.exited_ids)
        claim.settled_at = self._settings.clock.monotonic()
        claim.ahead = self._shard.now() - claim.settled_at

    def _give_back(self, deliveries: Sequence[Delivery]) -> None:
        """These were not performed to their end."""
        self._shard.pending.give_back(deliveries)

    def _end_trials(self, claim: Claim) -> None:
        """In an outage: what would be tried next does not begin. What waits behind it begins without it."""
        self._shard.end_trials(claim)

    def _break_off(self, claim: Claim, error: BaseException) -> None:
        """The claim ends by an error. Its handlers run in this thread, so none of them runs any more."""

    def _next_batch(self, claim: Claim) -> list[Delivery]:
        """The next batch if it may start; its first id if no batch ran yet and more is not predicted to fit."""
        ending, ids = self._ending, None
        if self._shard.has_expiries and self._drop_expired(claim):
            self._end_trials(claim)
        if dropped := claim.drop(self.session.requests):
            # Operators have cancelled or paused these before they began.
            self._give_back(dropped)
            self._end_trials(claim)
        if not claim.left or (ending.exit is not None and ending.is_interrupted):
            return []
        if self._shard.lease.trust_left() <= 0:
            ending.reason = "lease lost"
        elif self.admission is not None and self.admission.is_lost:
            ending.reason = "limited"
        else:
            ending.reason = self._shard.requested() or self._budget.against_next(self._settings.timing)
        if ending.reason == "out of time" and self._budget.try_one():
            text = "%s: a batch takes %.1f s by experience and %.1f s are left: one id is tried"
            logger.warning(text, self._settings.worker.queue_name, self._predicted(), self._budget.remaining())
            ending.reason, ids = None, 1
        if ending.reason:
            return []
        if self.admission is not None:
            # As many as may begin now.
            ids = self.admission.begin(ids or len(claim.left[0]))
        return claim.left.popleft() if ids is None else claim.first_ids(ids)

    def _drop_expired(self, claim: Claim) -> list[Delivery]:
        """Note what is over of the next batch; the ids of which nothing is left."""
        from lowkiq_lambda.engine.overdue import drop_expired  # noqa: PLC0415 - only for jobs that expire

        return drop_expired(claim.left, self._shard)

    def _note_exit(self, batch: Sequence[Delivery], result: BatchResult, error: BaseException) -> None:
        """A handler ended without having failed, and not as one that is through."""
        ending, ids = self._ending, result.exited_ids
        ending.exit = result.exit = self._budget.exit_of(error)
        exited = about(self._settings.worker, ids or [delivery.id for delivery in batch])
        logger.warning("a handler exited with %s", headline(ending.exit), extra=exited)
        # If several ids ran, it is unknown which one exited: each may run alone first.
        ending.exited_ids.update(ids if len(ids) == 1 else ())

    def _others_wait(self, other_due: float | None) -> bool:
        """Whether others wait for a job to make way: in this claim, in the shard, or in other shards.

        Those that ran before it wait too: for their acknowledgement.
        """
        in_shard = other_due is not None and other_due <= self._shard.now()
        for_permit = self.admission is not None and self.admission.others_wait
        in_visit = bool(self._claim.left) or not self._shard.pending.is_empty
        return in_visit or in_shard or for_permit or self._budget.turn_over()
