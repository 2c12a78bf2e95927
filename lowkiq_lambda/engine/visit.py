"""A visit to a shard: acquire, recover, [claim, perform, settle] while the budget allows, release.

Everything else hangs off this. Recovery travels with acquiring, the next claim or the release with settling:
one call each.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from lowkiq_lambda.base.error_text import headline, is_a, loggable
from lowkiq_lambda.base.errors import BackendError, LeaseLost, LowkiqError
from lowkiq_lambda.engine.batch import batches_of, parted
from lowkiq_lambda.engine.budget import Budget, StopReason
from lowkiq_lambda.engine.leased_shard import LeasedShard, VisitSettings
from lowkiq_lambda.engine.perform import about, interruptions
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.lease_replies import NotAcquired, Window
from lowkiq_lambda.store.shard.session import LeaseSession

if TYPE_CHECKING:
    from lowkiq_lambda.engine.admission import Admission
    from lowkiq_lambda.engine.iteration_run import IterationRun

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VisitResult:
    """How a visit ended: why, ids by outcome, the lease's token, when the shard is worth another look.

    `exit`: what a handler exited with, at last; its jobs were given back. `predicted`, with "out of time": for how many
    seconds a further batch was expected to run.
    """

    reason: StopReason
    counts: Counter[str] = field(default_factory=Counter)
    token: int | None = None
    until: float | None = None
    exit: BaseException | None = None
    predicted: float | None = None

    def after(self, earlier: "VisitResult") -> "VisitResult":
        """Two visits as one: how this one ended, and what both did."""
        counts, token = earlier.counts + self.counts, self.token or earlier.token
        return replace(self, counts=counts, token=token, exit=earlier.exit if self.exit is None else self.exit)


class ShardVisit:
    """One visit to one shard; also what its handlers may know about their time and lease."""

    _no_faults: ClassVar[tuple[type[BaseException], ...]] = (LowkiqError,)
    """What ends a visit and says nothing of the jobs that it has in flight."""

    def __init__(
        self,
        settings: VisitSettings,
        session: LeaseSession,
        budget: Budget,
        now: Callable[[], float],
        admission: "Admission | None",
    ) -> None:
        self._settings = settings
        self._budget = budget
        self._admission = admission
        self._shard = LeasedShard(settings, session, budget, now, admission)
        self._variables = copy_context()
        self._reason: StopReason | None = None
        self._exit: BaseException | None = None
        # These wait for another visit: they go behind all others, so that all others were performed by now.
        self._exited_ids: set[str] = set()
        self._batches: Sequence[list[Delivery]] = ()
        """Those of the window, and those of them that have not begun."""
        self._left: deque[list[Delivery]] = deque()
        self._begun_at = 0.0
        self._runs_alone = False
        self._run: IterationRun | None = None
        self._cut_short: list[str] = []
        """Ids whose run was lost with the lease, or with Redis."""

    @property
    def ref(self) -> ShardRef:
        """The shard."""
        return self._shard.session.shard

    @property
    def token(self) -> int:
        """The fencing token."""
        return self._shard.session.token

    def remaining(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget.remaining()

    def stopping(self) -> bool:
        """Whether handlers should come to an end."""
        shard = self._shard
        return bool(shard.session.stop_request) or self._budget.stopping() or shard.trust_left() <= 0

    def run_of(self, job_id: str) -> "IterationRun":
        """The run of this job, which has a cursor, in the batch that is running."""
        if self._run is None:
            from lowkiq_lambda.engine.iteration_run import IterationRun  # noqa: PLC0415 - imported lazily: cold start

            self._run = IterationRun(self._shard, self._budget, job_id, self._others_wait, is_suspect=self._runs_alone)
        return self._run

    def running_jobs(self) -> dict[str, object]:
        """For a line of the log, from another thread: the ids of the batch that was begun last; empty without one."""
        begun = self._batches[: len(self._batches) - len(self._left)]
        return about(self._settings.worker, [delivery.id for delivery in begun[-1]]) if begun else {}

    def running_since(self) -> float:
        """When what `running_jobs` tells of began (monotonic)."""
        return self._begun_at

    def ring(self) -> None:
        """Jobs were pushed to the shard; any thread may say so. One batch at a time: the next claim finds them."""

    def abandon(self, seconds: float) -> None:
        """From another thread, before the process exits: give back what is running, free after `seconds`."""
        self._shard.abandon(seconds)

    def drain(self) -> VisitResult:
        """Work the shard off as far as the budget allows.

        Raises BackendError where Redis is out of reach for longer than the lease can be trusted, and KeyboardInterrupt
        where that ended a handler. What else ends one without being a failure (SystemExit) is told by the result.
        """
        if reason := self._budget.against_batch(0.0):
            return VisitResult(reason)
        return self._drain() if self._admission is None else self._drain_limited(self._admission)

    def _drain_limited(self, admission: "Admission") -> VisitResult:
        if (seconds := admission.enter()) is not None:
            return VisitResult("limited", until=self._shard.now() + seconds)
        place, shard = admission.session, self._shard.session.shard
        try:
            with self._settings.renewers.of(place.queue).keep(shard, admission.lease, admission.keep):
                result = self._drain()
        finally:
            if not self._may_still_run():
                admission.leave()
        if result.reason != "limited":
            return result
        return replace(result, until=self._shard.now() + admission.more_in)

    def _drain(self) -> VisitResult:
        shard = self._shard
        granted = shard.acquire()
        if isinstance(granted, NotAcquired):
            return VisitResult(granted.reason, until=granted.until)
        try:
            self._run_windows(granted.window)
        finally:
            shard.warn_of_trimmed()
        if is_a(self._exit, KeyboardInterrupt):
            raise self._exit
        reason = self._reason or shard.requested() or "empty"
        until = None if reason == "held" else shard.session.due_at
        predicted = self._predicted() if reason == "out of time" else None
        return VisitResult(reason, shard.counts, granted.token, until, self._exit, predicted)

    def _run_windows(self, window: Window | None) -> None:
        session = self._shard.session
        renew = partial(session.renew, retry_for=0.0)
        try:
            with self._settings.renewers.of(session.shard).keep(session.shard, self._shard.lease, renew):
                while window:
                    window = self._run_window(window)
        except LeaseLost:
            self._shard.lease.lose()
            self._reason = "lease lost"
            self._warn_of_repeats("a lease was lost: its outcomes are refused, and these jobs will be performed again")
        except BackendError:
            self._warn_of_repeats("Redis acknowledged no outcome: these jobs may be performed again")
            raise
        except BaseException as error:
            if is_a(error, (*self._no_faults, *interruptions())):
                # No handler runs any more: what is in flight is returned, and others need not wait for the lease.
                self.abandon(self._seconds_until_free())
            else:
                self._leave_as_dead(error)
            raise

    def _leave_as_dead(self, error: BaseException) -> None:
        """A fault of ours, which the same job may cause each time: what is in flight is suspected, as after a death.

        Were it only given back, it would be performed again and again, with all that is claimed beside it.
        """
        text = "a drain has met a fault of its own: what is in flight runs again, each id alone"
        logger.error(text, extra=self.running_jobs() or None, exc_info=loggable(error))
        session = self._shard.session
        if self._may_still_run():
            # Nobody else may have the shard before the lease ends.
            session.at_risk = None
            return
        with suppress(LowkiqError):
            session.leave_as_dead(retry_for=0.0)

    def _warn_of_repeats(self, message: str) -> None:
        if ids := [*self._shard.pending.performed(), *self._cut_short]:
            logger.warning(message, extra=about(self._settings.worker, ids))

    def _run_window(self, window: Window) -> Window | None:
        """Perform a window, settle it, and claim the next; None where the visit ends."""
        if not window.lone_suspect:
            return self._perform_and_settle(window)
        # Were two to run alone in one process, its death would be held against both.
        if not self._settings.alone.acquire(blocking=False):
            self._shard.pending.give_back(window.deliveries)
            self._reason = "held"
            return self._shard.settle("release")
        try:
            return self._perform_and_settle(window)
        finally:
            self._settings.alone.release()

    def _perform_and_settle(self, window: Window) -> Window | None:
        if window.is_rest:
            self._shard.pending.follow_heads(window.deliveries)
        elif window.charge is None:
            self._run_batches(window)
        else:
            self._shard.pending.charge(window.deliveries, window.charge, self._shard.now())
        self._reason = self._reason or self._against_claim()
        return self._shard.settle("release" if self._reason else "claim")

    def _against_claim(self) -> StopReason | None:
        reason = self._budget.against_claim(self._predicted())
        return reason or (None if self._admission is None else self._admission.against_claim())

    def _predicted(self) -> float:
        return self._budget.prediction(self._settings.timing)

    def _may_still_run(self) -> bool:
        """Whether handlers may run though the visit has ended."""
        return False

    def _seconds_until_free(self) -> float:
        return self._settings.lease.ttl if self._may_still_run() else 0.05

    def _run_batches(self, window: Window) -> None:
        clock = self._settings.clock
        fresh, exited = parted(window.deliveries, self._exited_ids)
        self._batches = batches_of(fresh, self._settings.worker.batch_size)
        self._left = left = deque(self._batches)
        settled = clock.monotonic()
        ahead = self._shard.now() - settled
        while left and (batch := self._next_batch(left)):
            self._begun_at = begun = clock.monotonic()
            self._run_batch(batch, lone_suspect=window.lone_suspect)
            ended = clock.monotonic()
            if self._run is None:
                self._settings.timing.observe(ended - begun, clock.time())
            else:
                self._settings.timing.observe_run(ended - begun)
            self._shard.note_batch(ended - begun, ahead + begun - batch[0].perform_in)
            if self._exit is not None and is_a(self._exit, KeyboardInterrupt):
                break
            if left and ended - settled >= self._settings.ack_interval:
                self._shard.settle("part")
                settled = ended
        self._shard.pending.give_back([*exited, *chain.from_iterable(left)])
        if exited or is_a(self._exit, KeyboardInterrupt):
            self._reason = self._reason or "exited"

    def _next_batch(self, left: deque[list[Delivery]]) -> list[Delivery]:
        """The next batch if it may start; its first id where nothing ran yet and more is not predicted to fit."""
        if self._shard.lease.trust_left() <= 0:
            self._reason = "lease lost"
        elif self._admission is not None and self._admission.is_lost:
            self._reason = "limited"
        elif requested := self._shard.requested():
            self._reason = requested
        else:
            self._reason = self._budget.against_next(self._settings.timing)
        if self._reason is None:
            return left.popleft() if self._admission is None else self._admitted(left, self._admission, len(left[0]))
        if self._reason == "out of time" and self._budget.try_one():
            text = "%s: a batch takes %.1f s by experience and %.1f s are left: one id is tried"
            logger.warning(text, self._settings.worker.queue_name, self._predicted(), self._budget.remaining())
            self._reason = None
            return _first_ids(left, 1) if self._admission is None else self._admitted(left, self._admission, 1)
        return []

    def _admitted(self, left: deque[list[Delivery]], admission: "Admission", ids: int) -> list[Delivery]:
        """So many ids of the next batch, or as many as may begin now."""
        return _first_ids(left, begun) if (begun := admission.begin(ids)) else []

    def _run_batch(self, batch: list[Delivery], *, lone_suspect: bool) -> None:
        if lone_suspect:
            self._shard.start(batch[0].id)
        self._runs_alone, self._run = lone_suspect, None
        self._budget.note_batch()
        result = self._variables.copy().run(self._settings.performer.run, batch, self)
        self._raise_what_broke()
        if result.exit is not None:
            self._exit = result.exit = self._budget.exit_of(result.exit)
            exited = about(self._settings.worker, result.exited_ids or [delivery.id for delivery in batch])
            logger.warning("a handler exited with %s", headline(result.exit), extra=exited)
            # Of several nobody knows which one it was: each may run alone first.
            self._exited_ids.update(result.exited_ids if len(result.exited_ids) == 1 else ())
        self._shard.pending.add(batch, result, self._shard.now)

    def _raise_what_broke(self) -> None:
        if self._run is not None and self._run.broken is not None:
            self._cut_short.append(self._run.job_id)
            raise self._run.broken

    def _others_wait(self, other_due: float | None) -> bool:
        """Whether others wait for a job to make way: in this window, in the shard, or in other shards.

        Those that ran before it wait too: for their acknowledgement.
        """
        in_shard = other_due is not None and other_due <= self._shard.now()
        for_place = self._admission is not None and self._admission.others_wait
        in_visit = bool(self._left) or not self._shard.pending.is_empty
        return in_visit or in_shard or for_place or self._budget.turn_over()


def _first_ids(left: deque[list[Delivery]], ids: int) -> list[Delivery]:
    """So many ids of the first batch; the others of it come next."""
    batch = left.popleft()
    if batch[ids:]:
        left.appendleft(batch[ids:])
    return batch[:ids]
