"""A visit whose batches run side by side, in slots, under its one lease.

The visit's own thread is the coordinator: it alone talks to Redis and keeps pending outcomes. Slots post calls to its
inbox, and it makes them one after the other. A slot that has ended a batch begins the next one by itself, as long as
nothing is against it; what is, the coordinator decides.
"""

import logging
import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from lowkiq_lambda.base.error_text import is_a
from lowkiq_lambda.base.errors import LeaseLost, LowkiqError
from lowkiq_lambda.engine.budget import Budget, StopReason
from lowkiq_lambda.engine.flight import FIRST_LOOK, Flight, Standing, low_mark, next_look, next_move, turn_of
from lowkiq_lambda.engine.inbox import Inbox, SlotSaves
from lowkiq_lambda.engine.leased_shard import Claim
from lowkiq_lambda.engine.perform import about
from lowkiq_lambda.engine.running import CancelWatch, RunningBatch
from lowkiq_lambda.engine.slots import Ended, LoopEnded, NoSlot, Slots
from lowkiq_lambda.engine.slots_in_use import SlotsInUse
from lowkiq_lambda.engine.visit import ShardVisit
from lowkiq_lambda.engine.visit_settings import VisitSettings
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.session import ClaimLimits, LeaseSession

if TYPE_CHECKING:
    from lowkiq_lambda.engine.admission import Admission
    from lowkiq_lambda.engine.iteration_run import IterationRun

logger = logging.getLogger(__name__)

LONGEST_WAIT: Final = 0.1
"""Seconds after which the coordinator looks up at the latest: whether to cancel what runs."""
SOONEST_LOOK: Final = 0.005
"""Seconds between two looks for more, at least, however often jobs are pushed."""


class ConcurrentVisit(ShardVisit):
    """One visit to one shard, with up to `concurrency` batches at once."""

    _no_faults = (LowkiqError, NoSlot, LoopEnded)

    def __init__(  # noqa: PLR0913, PLR0917 - what a visit is made of, and the slots
        self,
        settings: VisitSettings,
        session: LeaseSession,
        budget: Budget,
        now: Callable[[], float],
        admission: "Admission | None",
        slots: Slots,
    ) -> None:
        super().__init__(settings, session, budget, now, admission)
        slots.check()
        self._inbox = Inbox()
        self._slots = SlotsInUse(self, slots, settings.worker, self._inbox, settings.concurrency)
        self._flight = Flight()
        self._claim_took = 0.0
        self._saves = SlotSaves(self._shard, self._flight, self._inbox)
        self._began_at = settings.clock.monotonic()
        self._cancel_watch = CancelWatch(budget, self._shard.trust_left, settings.clock, settings.shutdown_timeout)
        self._has_lost_loop = False
        self._may_claim = True
        self._look_at, self._empty_looks = 0.0, 0
        self._looked_at = -math.inf
        self._is_rung = self._is_awaited = False

    def stopping(self) -> bool:
        """Whether handlers should come to an end."""
        return self._saves.is_closed or self._ending.is_interrupted or super().stopping()

    def ring(self) -> None:
        """Jobs were pushed to the shard: with a slot free, the visit looks for them."""
        if not self._is_rung:
            self._is_rung = True
            self._inbox.post(self._look_soon)

    def running_jobs(self) -> dict[str, object]:
        """The ids of all batches that run."""
        return about(self._settings.worker, ids) if (ids := self._slots.running.ids()) else {}

    def running_since(self) -> float:
        """When the first of those began (monotonic)."""
        return self._slots.running.since()

    def new_run(self, job_id: str, *, is_suspect: bool) -> "IterationRun":
        """A run of a job with a cursor, in a slot; what it saves, the coordinator writes."""
        from lowkiq_lambda.engine.iteration_run import IterationRun  # noqa: PLC0415 - imported lazily: cold start

        run = IterationRun(self._shard, self._budget, job_id, self._others_wait_for_slot, is_suspect=is_suspect)
        run.save = self._saves.save
        return run

    def _against_claim(self) -> StopReason | None:
        reason, took = super()._against_claim(), self._settings.clock.monotonic() - self._began_at
        return None if reason == "turn over" and took < turn_of(self._settings.timing.mean) else reason

    def _may_still_run(self) -> bool:
        # Batches that could not be waited for still run: no other holder may have the shard before the lease ends.
        return bool(self._slots.running) or self._has_lost_loop

    def run_claim(self, claim: Claim) -> Claim | None:
        """Perform what was claimed, and what is claimed beside it; None if the visit ends."""
        self._may_claim = not claim.lone_suspect
        self._slots.unsettled_since, self._look_at, self._empty_looks = None, 0.0, 0
        return super().run_claim(claim)

    def _next_batch(self, claim: Claim) -> list[Delivery]:
        """The next batch, once there is a slot for it; empty once all have ended.

        Until then what has ended is settled, and more is claimed beside what runs.
        """
        clock, interval = self._settings.clock, self._settings.settle_interval
        while True:
            move, until = next_move(self._standing(claim), clock.monotonic(), interval)
            if move == "end":
                return []
            if move == "begin":
                self._slots.take_back(claim.left)
                if batch := super()._next_batch(claim):
                    return batch
                self._give_back([*chain.from_iterable(claim.left)])
                claim.left.clear()
                continue
            self._offer(claim)
            if move == "wait":
                self._wait(until - clock.monotonic())
            else:
                self._settle_beside(claim, move)

    def _standing(self, claim: Claim) -> Standing:
        settings = self._settings
        if settings.tuning is not None:
            self._slots.resize(settings.concurrency)
        spare = settings.ids_in(settings.settle_interval) // settings.batch_size - self._slots.most
        may_claim = self._may_claim and self._ending.reason is None
        # No later push is told while that one waits: with all slots full, the first that becomes free looks for it.
        if self._is_awaited and not self._slots.are_full:
            self._is_awaited = False
            self._look_at = min(self._look_at, self._looked_at + SOONEST_LOOK)
        # Before it is looked how many are ready: a slot that takes one from now on rings.
        self._slots.low = low_mark(self._claim_took, settings.timing.mean, self._slots.most, spare) if may_claim else 0
        return Standing(
            waiting=len(claim.left) + len(self._slots),
            running=self._slots.count,
            concurrency=self._slots.most,
            unsettled_since=self._slots.unsettled_since,
            look_at=self._look_at,
            may_claim=may_claim,
            low=self._slots.low,
        )

    def _take(self, claim: Claim, deliveries: Sequence[Delivery]) -> None:
        self._flight.add(deliveries)
        claim.divide(deliveries, self._settings.batch_size, self._ending.exited_ids)
        self._may_claim = self._may_claim and not claim.exited
        claim.ahead = self._shard.now() - self._settings.clock.monotonic()

    def run_batch(self, claim: Claim, batch: list[Delivery]) -> None:
        """Start the batch in a slot, and those that may begin in the other free ones: all at once."""
        if claim.lone_suspect:
            self._shard.start(batch[0].id)
        batches = [batch]
        while claim.left and self._slots.count + len(batches) < self._slots.most:
            if not (batch := super()._next_batch(claim)):
                break
            batches.append(batch)
        self._offer(claim)
        if left := self._slots.begin(batches, self._variables):
            # They wait for one of the slots that there are, before all others.
            self._slots.take_back(claim.left)
            claim.left.extendleft(reversed(left))
        self._budget.note_batch()

    def _offer(self, claim: Claim) -> None:
        """Slots may begin what waits, unless each has to be asked about first, or the order in which they begin."""
        if not (self._shard.has_expiries or self.admission or self._shard.outage):
            self._slots.offer(claim.left)

    def may_go_on(self) -> bool:
        """In a slot: whether the next may begin there; `_next_batch` tells the coordinator what is against it."""
        session = self.session
        if self._saves.is_closed or self._ending.is_interrupted or session.requests or session.stop_request:
            return False
        return self._shard.lease.trust_left() > 0 and self._budget.against_next(self._settings.timing) is None

    def new_batch(self, deliveries: Sequence[Delivery]) -> RunningBatch:
        """In a slot, or for one: the batch, which begins now."""
        begun_at = self._settings.clock.monotonic()
        lag = self._claim.ahead + begun_at - deliveries[0].due_at
        running = RunningBatch(self, deliveries, lag, is_suspect=self._claim.lone_suspect)
        running.begun_at = begun_at
        return running

    def _give_back(self, deliveries: Sequence[Delivery]) -> None:
        super()._give_back(deliveries)
        self._flight.remove(deliveries)

    def _end_trials(self, claim: Claim) -> None:
        self._flight.remove(self._shard.end_trials(claim))

    def _wait(self, seconds: float) -> None:
        """Make the calls that slots have posted; wait for the first."""
        if cause := self._cancel_watch.cause():
            self._slots.running.cancel(cause)
        if self.session.requests:
            self._slots.running.cancel_requested(self.session.requests)
        try:
            has_calls = self._inbox.wait(max(0.0, min(seconds, LONGEST_WAIT)))
        except KeyboardInterrupt as error:
            if self._ending.is_interrupted:
                raise
            # The exception came to this thread, and handlers do not notice it: they may end by themselves.
            self._interrupt(error)
            return
        # An exception of a call ends the visit, because it is unknown how far the call got.
        self._inbox.make_calls()
        if not has_calls and (fault := self._slots.running.fault()) is not None:
            raise LoopEnded(fault)

    def _drop_expired(self, claim: Claim) -> list[Delivery]:
        ended = super()._drop_expired(claim)
        self._flight.remove(ended)
        if ended and self._slots.unsettled_since is None:
            self._slots.unsettled_since = self._settings.clock.monotonic()
        return ended

    def note_end(self, running: RunningBatch, ended: Ended | BaseException, *, is_free: bool) -> None:
        """A batch has ended, or there was a fault of the library, which is raised; whether its slot is free."""
        self._slots.note_end(running, is_free=is_free)
        if self._saves.is_closed:
            return
        if isinstance(ended, BaseException):
            raise ended
        if (error := running.broken) is not None:
            self._ending.cut_short += running.ids
            raise error
        self._note_times(running, ended)
        if (result := ended.result).exit is not None:
            result.exit = self._budget.exit_of(result.exit)
            self._note_slot_exit(running, result.exit, result.exited_ids)
        if running.cancelled in {"others", "request"}:
            # A cancellation for the sake of others, or by an operator, is not evidence against the id.
            result.exited_ids = ()
        if result.error is not None:
            # The ids of an outage are tried before what waits.
            self._slots.take_back(self._claim.left)
        self._flight.remove(self._shard.add(self._claim, running.deliveries, result))
        if ended.is_bad:
            self._slots.release()
        if self._slots.unsettled_since is None:
            self._slots.unsettled_since = ended.ended_at

    def _note_times(self, running: RunningBatch, ended: Ended) -> None:
        took = ended.ended_at - ended.began_at
        # A cancelled run has used all the time that there was: that is not a measure of the next one.
        if running.has_run:
            self._settings.timing.observe_run(took)
        elif running.cancelled is None:
            self._settings.timing.observe(took, self._settings.clock.time())
        if self._settings.tuning is not None and not (ended.is_bad or ended.result.failed or running.cancelled):
            self._settings.tuning.note(len(running.deliveries), took)
        self._shard.note_batch(took, running.waited, ended.computed)
        if self._shard.runs is not None:
            self._shard.runs.note(self._claim.ahead + ended.began_at, took, running.deliveries)

    def _note_slot_exit(self, running: RunningBatch, error: BaseException, ids: Sequence[str]) -> None:
        if running.cancelled:
            return
        if is_a(error, KeyboardInterrupt):
            self._interrupt(error)
        elif not self._ending.is_interrupted:
            self._ending.exit = error
        self._ending.exited_ids.update(ids if len(ids) == 1 else ())

    def _interrupt(self, error: KeyboardInterrupt) -> None:
        self._ending.exit = error
        self._ending.reason = self._ending.reason or "exited"
        # A batch that a slot begins just now is cancelled, too.
        self._slots.take_back(self._claim.left)
        self._slots.running.cancel("others")

    def _settle_beside(self, claim: Claim, move: Literal["more", "part"]) -> None:
        """Write the outcomes of ended ids while others run; claim more beside them if that is the move."""
        if move == "more" and (reason := self._against_claim()):
            # Claimed ids still begin, unless there is more against it.
            self._may_claim = reason == "limited" and self._puts_off_claim()
            if not self._may_claim or self._slots.unsettled_since is None:
                return
            move = "part"
        self._is_awaited = self._is_awaited and move == "part"
        self._flight.remove(self._shard.hand_over())
        limits = self._room()
        self._looked_at = self._settings.clock.monotonic()
        more = self._shard.settle(move, limits if move == "more" else None, self._flight.since)
        self._claim_took = self._settings.clock.monotonic() - self._looked_at
        self._slots.unsettled_since = None
        if move == "part":
            return
        due_at = self._shard.session.due_at
        due_in = None if due_at is None else due_at - self._shard.now()
        if more:
            self._empty_looks, self._look_at = 0, 0.0
            self._take(claim, more.deliveries)
        # Nothing more is due than the claim has brought, so another look brings nothing before a push.
        if not more or (self.admission is None and (due_in is None or due_in > 0)):
            self._empty_looks += 1
            self._look_at = next_look(self._empty_looks, self._settings.clock.monotonic(), due_in)
        if not more and self.admission:
            self.admission.hand_back()

    def _look_soon(self) -> None:
        self._is_rung, self._is_awaited = False, True

    def _room(self) -> ClaimLimits:
        """How much may be claimed beside what is in flight."""
        limits = self._flight.room(self._shard.limits())
        if self.admission is None:
            return limits
        waiting = sum(map(len, self._claim.left))
        return msgspec.structs.replace(limits, ids=self.admission.room(limits.ids, waiting))

    def _puts_off_claim(self) -> bool:
        """Look again when ids may begin: what runs may go on for long. False if nothing is to be claimed again."""
        if self.admission is None or self.admission.is_lost:
            return False
        self._look_at = self._settings.clock.monotonic() + max(FIRST_LOOK, self.admission.more_in)
        return True

    def _others_wait_for_slot(self, other_due: float | None) -> bool:
        """In the slot: whether others wait for a job to make way, in this shard if slots are full, or in others."""
        is_full = self._slots.are_full
        return (is_full and (bool(self._slots) or self._others_wait(other_due))) or self._budget.turn_over()

    def _break_off(self, claim: Claim, error: BaseException) -> None:
        """Wait for all that can end, and drop what comes of it: the process may take the shard again only then.

        A second Ctrl-C waits for nothing: what still runs keeps the shard as long as the lease would have lasted.
        """
        self._saves.is_closed = True
        self._has_lost_loop = isinstance(error, LoopEnded)
        if isinstance(error, LeaseLost):
            self._shard.lease.lose()
        self._slots.take_back(claim.left)
        claim.left.clear()
        self._slots.running.withdraw()
        self._ending.cut_short += self._slots.running.ids()
        self._slots.running.cancel("others")
        # Handlers that wait for a save get their answer.
        self._inbox.make_calls()
        if is_a(error, KeyboardInterrupt) and self._ending.is_interrupted:
            return
        while not self._slots.running.have_ended():
            self._inbox.wait(LONGEST_WAIT)
            self._inbox.make_calls()
