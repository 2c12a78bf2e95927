"""A visit whose batches run side by side, in slots, under its one lease.

The visit's own thread is the coordinator: it alone talks to Redis and keeps what is pending. What runs in slots posts
calls to its inbox, and it makes them one after the other.
"""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from itertools import chain
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Literal

from lowkiq_lambda.engine.batch import batches_of, parted
from lowkiq_lambda.engine.budget import Budget, StopReason
from lowkiq_lambda.engine.cancelling import CancelWatch
from lowkiq_lambda.engine.flight import Flight
from lowkiq_lambda.engine.leased_shard import DrainSettings
from lowkiq_lambda.engine.moves import Standing, next_look, next_move
from lowkiq_lambda.engine.running import RunningBatch
from lowkiq_lambda.engine.slots import Ended, Slots
from lowkiq_lambda.engine.visit import ShardVisit
from lowkiq_lambda.errors import LeaseLost
from lowkiq_lambda.job import Delivery
from lowkiq_lambda.store.shard.lease_replies import Checkpoint, Window
from lowkiq_lambda.store.shard.session import LeaseSession

if TYPE_CHECKING:
    from lowkiq_lambda.engine.iteration_run import IterationRun

LONGEST_WAIT: Final = 0.1
"""Seconds after which the coordinator looks up at the latest: whether to cancel what runs."""
TURN_BATCHES: Final = 20
LONGEST_TURN: Final = 5.0
"""A turn lasts so many times as long as a batch, but not longer than so many seconds: slots have to fill up first."""


class ConcurrentVisit(ShardVisit):
    """One visit to one shard, with up to `concurrency` batches at once."""

    def __init__(
        self, settings: DrainSettings, session: LeaseSession, budget: Budget, now: Callable[[], float], slots: Slots
    ) -> None:
        super().__init__(settings, session, budget, now)
        slots.check()
        self._slots = slots
        self._variables = copy_context()
        self._inbox: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._running: set[RunningBatch] = set()
        self._flight = Flight()
        self._exited: list[Delivery] = []
        self._began_at = settings.clock.monotonic()
        self._cancel_watch = CancelWatch(budget, self._shard.lease, settings.clock, settings.shutdown_timeout)
        self._unsettled_since: float | None = None
        self._may_claim = True
        self._look_at = 0.0
        self._empty_looks = 0
        self._is_closing = False

    def stopping(self) -> bool:
        """Whether handlers should come to an end."""
        return self._is_closing or isinstance(self._exit, KeyboardInterrupt) or super().stopping()

    def new_run(self, job_id: str, *, is_suspect: bool) -> "IterationRun":
        """A run of a job with a cursor, in a slot; what it saves, the coordinator writes."""
        from lowkiq_lambda.engine.iteration_run import IterationRun  # noqa: PLC0415 - imported lazily: cold start

        run = IterationRun(self._shard, self._budget, job_id, self._others_wait_for_slot, is_suspect=is_suspect)
        run.save = self._save_from_slot
        return run

    def _against_claim(self) -> StopReason | None:
        timing, clock = self._settings.timing, self._settings.clock
        reason = super()._against_claim()
        turn = min(LONGEST_TURN, TURN_BATCHES * (timing.mean or 0.0))
        return None if reason == "turn over" and clock.monotonic() - self._began_at < turn else reason

    def _seconds_until_free(self) -> float:
        # What could not be waited for still runs: nobody else may have the shard before the lease ends.
        return self._settings.lease.ttl if self._running else super()._seconds_until_free()

    def _run_batches(self, window: Window) -> None:
        self._runs_alone, self._may_claim = window.lone_suspect, not window.lone_suspect
        self._unsettled_since, self._look_at, self._empty_looks = None, 0.0, 0
        self._take(window.deliveries)
        try:
            self._move_until_end()
        except BaseException as error:
            self._close(error)
            raise
        self._give_back(self._exited)
        if self._exited or isinstance(self._exit, KeyboardInterrupt):
            self._reason = self._reason or "exited"
        self._exited = []

    def _move_until_end(self) -> None:
        clock, interval = self._settings.clock, self._settings.ack_interval
        while True:
            move, until = next_move(self._standing(), clock.monotonic(), interval)
            if move == "end":
                return
            if move == "begin":
                self._begin_next()
            elif move == "wait":
                self._wait(until - clock.monotonic())
            else:
                self._settle_beside(move)

    def _standing(self) -> Standing:
        return Standing(
            waiting=len(self._left),
            running=len(self._running),
            concurrency=self._settings.worker.concurrency,
            unsettled_since=self._unsettled_since,
            look_at=self._look_at,
            may_claim=self._may_claim and self._reason is None,
        )

    def _take(self, deliveries: Sequence[Delivery]) -> None:
        """These have just come into flight; what exited in this visit waits for its end."""
        self._flight.add(deliveries)
        fresh, exited = parted(deliveries, self._exited_ids)
        self._exited += exited
        self._may_claim = self._may_claim and not exited
        self._left.extend(batches_of(fresh, self._settings.worker.batch_size))

    def _begin_next(self) -> None:
        batch = None if isinstance(self._exit, KeyboardInterrupt) else self._next_batch(self._left)
        if not batch:
            self._give_back([*chain.from_iterable(self._left)])
            self._left.clear()
            return
        if self._runs_alone:
            self._shard.start(batch[0].id)
        self._budget.note_batch()
        running = RunningBatch(self, batch, self._shard.now() - batch[0].perform_in, is_suspect=self._runs_alone)
        on_end = partial(self._post_end, running)
        running.ask_to_end = self._slots.begin(batch, running, self._variables.copy(), on_end)
        self._running.add(running)

    def _give_back(self, deliveries: Sequence[Delivery]) -> None:
        self._shard.pending.give_back(deliveries)
        self._flight.remove(deliveries)

    def _wait(self, seconds: float) -> None:
        """Make the calls that slots have posted; wait for the first."""
        if cause := self._cancel_watch.cause():
            for running in self._running:
                running.cancel(cause)
        try:
            self._inbox.get(timeout=max(0.0, min(seconds, LONGEST_WAIT)))()
            while True:
                self._inbox.get_nowait()()
        except Empty:
            pass
        except KeyboardInterrupt as error:
            # It came to this thread, and no handler knows of it: they are let end.
            self._exit = error

    def _post_end(self, running: RunningBatch, ended: Ended | BaseException) -> None:
        """In the slot."""
        self._inbox.put(partial(self._note_end, running, ended))

    def _note_end(self, running: RunningBatch, ended: Ended | BaseException) -> None:
        self._running.discard(running)
        if self._is_closing:
            return
        if isinstance(ended, BaseException):
            raise ended
        if error := running.broken:
            self._cut_short += running.ids
            raise error
        result, took = ended.result, ended.ended_at - ended.began_at
        if running.has_run:
            self._settings.timing.observe_run(took)
        else:
            self._settings.timing.observe_beside(took, self._settings.worker.concurrency)
        self._shard.note_batch(took, running.waited)
        self._note_exit(running, result.exit, result.exited_ids)
        if running.cancelled == "others":
            # That it was cancelled says nothing of the id.
            result.exited_ids = ()
        self._shard.pending.add(running.deliveries, result, self._shard.now)
        self._flight.remove(running.deliveries)
        if self._unsettled_since is None:
            self._unsettled_since = ended.ended_at

    def _note_exit(self, running: RunningBatch, error: BaseException | None, ids: Sequence[str]) -> None:
        if error is None or running.cancelled:
            return
        self._exit = self._exit if isinstance(self._exit, KeyboardInterrupt) else error
        self._exited_ids.update(ids if len(ids) == 1 else ())

    def _settle_beside(self, move: Literal["more", "part"]) -> None:
        """Write what has ended, while others run; claim more beside them where that is the move."""
        if move == "more" and self._against_claim():
            # What is in flight already still begins, unless there is more against it.
            self._may_claim = False
            return
        limits = self._flight.room(self._shard.limits())
        window = self._shard.settle(move, limits if move == "more" else None, self._flight.since)
        self._unsettled_since = None
        if window:
            self._empty_looks, self._look_at = 0, 0.0
            self._take(window.deliveries)
        elif move == "more":
            self._empty_looks += 1
            due_at = self._shard.session.due_at
            due_in = None if due_at is None else due_at - self._shard.now()
            self._look_at = next_look(self._empty_looks, self._settings.clock.monotonic(), due_in)

    def _save_from_slot(self, job_id: str, progress: bytes, *, clears: bool) -> Checkpoint:
        """In the slot: have the coordinator save it, and wait for the answer."""
        answers: SimpleQueue[Checkpoint | BaseException] = SimpleQueue()
        self._inbox.put(partial(self._save, answers, job_id, progress, clears=clears))
        answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _save(
        self, answers: "SimpleQueue[Checkpoint | BaseException]", job_id: str, progress: bytes, *, clears: bool
    ) -> None:
        if self._is_closing:
            answers.put(LeaseLost("The visit ends: nothing more is saved."))
            return
        try:
            saved = self._shard.save(job_id, progress, clears=clears, left_since=self._flight.oldest_without(job_id))
            self._flight.since[job_id] = self._shard.now()
        except BaseException as error:
            answers.put(error)
            raise
        answers.put(saved)

    def _others_wait_for_slot(self, other_due: float | None) -> bool:
        """In the slot: whether others wait for a job to make way, here where no slot is free, or in other shards."""
        is_full = len(self._running) >= self._settings.worker.concurrency
        return (is_full and self._others_wait(other_due)) or self._budget.turn_over()

    def _close(self, error: BaseException) -> None:
        """Wait for all that runs: the process may take the shard again only then. What comes of it is dropped."""
        self._is_closing = True
        if isinstance(error, LeaseLost):
            self._shard.lease.lose()
        self._left.clear()
        for running in self._running:
            self._cut_short += running.ids
            running.cancel("others")
        while self._running:
            self._inbox.get()()
