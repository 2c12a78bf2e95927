"""A run of a job with a cursor in a visit: when its progress is saved, and when it has to stop."""

import logging
from collections.abc import Callable
from math import inf
from typing import Final, Protocol

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.declare.worker import in_seconds
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.iteration import Iteration
from lowkiq_lambda.engine.leased_shard import LeasedShard
from lowkiq_lambda.store.shard.lease_replies import Checkpoint

logger = logging.getLogger(__name__)

_SAVING: Final = 20
"""How many times as long as a save took the run goes on until the next: saves take a twentieth of the time at most."""


_REQUESTED: Final = {"cancel": "cancelled", "pause": "job paused"}
"""Why a run stops of which an operator wants this."""


class Save(Protocol):
    """Saves the progress of a job that runs."""

    def __call__(self, job_id: str, progress: bytes, *, clears: bool) -> Checkpoint:
        """As `LeasedShard.save`."""
        ...


class IterationRun:
    """The `Run` of a visit. Errors below the user's middlewares are kept in `broken`, and end the visit.

    `others_wait` gets the time when the shard's next other job is due (Unix seconds, or None).
    """

    def __init__(
        self,
        shard: LeasedShard,
        budget: Budget,
        job_id: str,
        others_wait: Callable[[float | None], bool],
        *,
        is_suspect: bool,
    ) -> None:
        self._shard = shard
        self.save: Save = shard.save
        """The function that writes the progress, unless another thread has to."""
        self._budget = budget
        self.job_id = job_id
        self._others_wait = others_wait
        self._is_suspect = is_suspect
        """Suspects that wait for it are not seen: it makes way for them in any case."""
        self._clears = is_suspect
        self._clock = shard.settings.clock
        worker = shard.settings.worker
        self._turn = worker.turn
        self._max_run_time = inf if worker.max_run_time is None else in_seconds(worker.max_run_time)
        self._items_left = inf if worker.max_run_items is None else worker.max_run_items
        self._interval = min(shard.settings.settle_interval, self._turn)
        self._turn_over_at: float | None = None
        self._has_answer = False
        self._other_due: float | None = None
        self._has_warned = False
        self._seconds_before = 0.0
        self._began_at = self._item_began_at = self._saved_at = self._clock.monotonic()
        self.broken: BaseException | None = None

    def begin(self, iteration: Iteration) -> bool:
        """Whether the run may begin: false if an earlier one of this visit broke off."""
        if self.broken is not None:
            return False
        self._seconds_before = iteration.progress.seconds
        self._began_at = self._item_began_at = self._clock.monotonic()
        try:
            iteration.progress.started_at = iteration.progress.started_at or self._shard.now()
        except LowkiqError as error:
            self.broken = error
        return self.broken is None

    def after_item(self, iteration: Iteration) -> str | None:
        """Save the progress if it is time; the reason to stop here, or None."""
        try:
            self._note_item()
            self._items_left -= 1
            now = self._item_began_at
            if self._turn_over_at is None:
                # The time for coming back to the cursor is not a part of the job's turn.
                self._turn_over_at = now + self._turn
            if now - self._saved_at >= self._interval and iteration.has_progress:
                self._save(iteration)
            return self._stop_reason()
        except LowkiqError as error:
            self.broken = error
            return "lease lost"

    def end(self, iteration: Iteration) -> None:
        """Note how long it took."""
        self._note_item(is_whole=False)
        iteration.progress.seconds = self._seconds_before + self._item_began_at - self._began_at

    def _note_item(self, *, is_whole: bool = True) -> None:
        """An item has ended, and the next one begins; or the run has, amid one or behind the last."""
        now, settings = self._clock.monotonic(), self._shard.settings
        took, self._item_began_at = now - self._item_began_at, now
        observe = settings.timing.observe_item if is_whole else settings.timing.observe_rest
        observe(took, self._clock.time())
        if took > settings.shutdown_timeout and not self._has_warned:
            self._has_warned = True
            text = "%s: an item took %.1f s, longer than shutdown_timeout: a process that stops does not wait for it"
            logger.warning(text, settings.worker.queue_name, took)

    def _save(self, iteration: Iteration) -> None:
        iteration.progress.seconds = self._seconds_before + self._item_began_at - self._began_at
        # Progress that cannot be dumped is a failure of its job: nothing has been sent.
        progress = iteration.progress.dump()
        # Only one that came further is cleared: else a job that saves, and then kills its process, would never end.
        clears = self._clears and iteration.has_advanced
        try:
            saved = self.save(self.job_id, progress, clears=clears)
        except BaseException as error:
            # After any exception it is unknown whether the call was applied: no other call may follow.
            self.broken = error
            raise
        now, interval = self._clock.monotonic(), self._shard.settings.settle_interval
        if interval:
            self._interval = max(min(interval, self._turn), _SAVING * (now - self._item_began_at))
        iteration.is_kept, self._clears = True, self._clears and not clears
        self._has_answer, self._other_due = True, saved.other_due
        self._saved_at = self._item_began_at = now

    def _stop_reason(self) -> str | None:
        shard = self._shard
        if shard.lease.trust_left() <= 0:
            return "lease lost"
        request = _REQUESTED.get(shard.session.requests.get(self.job_id, ""))
        if reason := self._budget.against_next(shard.settings.timing) or shard.requested() or request:
            return reason
        if self._items_left <= 0:
            return "run items over"
        if self._item_began_at - self._began_at >= self._max_run_time:
            return "run time over"
        if self._turn_over_at is None or self._item_began_at < self._turn_over_at:
            return None
        # Nobody has said whether others of the shard wait for a job that has nothing to save.
        others_wait = self._is_suspect or not self._has_answer or self._others_wait(self._other_due)
        return "turn over" if others_wait else None
