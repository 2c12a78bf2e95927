"""`app.operate(worker).auto`: what is said of the shards of a queue, and what people answer."""

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.base.errors import DeclarationError, LowkiqError
from lowkiq_lambda.jobs.auto import Auto
from lowkiq_lambda.operate.auto.kept import Hold, KeptAuto, KeptByAnother, KeptChange, read_kept, write_kept
from lowkiq_lambda.operate.auto.look import AutoLook
from lowkiq_lambda.operate.auto.memory import DAY
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.operate.inspect.processes import Processes
from lowkiq_lambda.reshard.duty import resharding_of
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.auto import AutoDecision, AutoState

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.declare.pushable import AnyWorker
    from lowkiq_lambda.engine.queue import Queue
    from lowkiq_lambda.operate.auto.duty import ShardSchedules
    from lowkiq_lambda.reshard.group import Report

FOR_EVER: Final = 100 * 365 * DAY
"""Seconds of a hold without an end."""


class QueueAuto:
    """The shards of one queue with a count of its own. Each method raises QueueMismatch and BackendError."""

    def __init__(self, core: "Core", worker: "AnyWorker") -> None:
        self._core = core
        self._worker = worker

    @property
    def name(self) -> str:
        """The queue's."""
        return self._core.queues.of(self._worker).worker.queue_name

    @property
    def bounds(self) -> Auto:
        """Those that its code declares. Raises DeclarationError if code declares a number."""
        declared = self._core.queues.of(self._worker).auto
        if declared is None:
            name = self._core.queues.of(self._worker).worker.__name__
            raise DeclarationError(f'{name} declares its number of shards: write shards_count = "auto" for a proposal.')
        return declared

    def state(self) -> AutoState:
        """The last decision of housekeeping, holds, and the moves of the last day: one round trip."""
        bounds, backend = self.bounds, self._core.backend
        queue = self._core.queues.current(self._worker)
        now = backend.now(queue.shards[0])
        kept = self._kept(queue)
        narrowest = kept.bounds_with(bounds, now) or bounds
        hold = kept.hold if kept.is_held(now) else None
        return AutoState(
            queue=queue.worker.queue_name,
            mode=self._core.config.auto,
            least=narrowest.least,
            most=narrowest.most,
            lag=narrowest.lag,
            decision=kept.decision,
            held_until=hold.until if hold else None,
            held_by=hold.by if hold else "",
            moves=tuple(reversed(kept.memory.moves_since(now - DAY))),
        )

    def decide(self) -> AutoDecision:
        """Decide now, by the minutes that housekeeping has kept; nothing is written."""
        return self._look().decided().decision

    def do(self, decision: AutoDecision, report: "Report", schedules: "ShardSchedules | None" = None) -> None:
        """Carry out a proposal, to its end. It counts as a move of the rule, and answers what speaks against one.

        `schedules` of shards are made before it. Raises LowkiqError if these cannot be made, another move is under way,
        the queue has moved since the decision, or nothing is proposed.
        """
        if decision.to is None:
            raise LowkiqError(f"Nothing is proposed for {decision.queue}: it {decision.says}.")
        queue = self._core.queues.current(self._worker)
        layout, now = queue.shards.layout, self._core.backend.now(queue.shards[0])
        if layout.after != decision.shards:
            raise LowkiqError(f"{decision.queue} has {layout.after} shards, not {decision.shards}: decide again.")
        if schedules is not None and decision.to > decision.shards:
            schedules.before(decision.queue, decision.to)
        kept = self._kept(queue)
        memory = kept.remembered.sees(layout, now).begins(now, layout.before, decision.to)
        stored = self._write(queue, KeptChange(memory=memory, answered_at=now), kept.stored)
        bounds = kept.bounds_with(self.bounds, now) or self.bounds
        resharding = resharding_of(self._core, self._worker, unreplicated=bounds.unreplicated)
        try:
            resharding.begin(decision.to, epoch=layout.epoch)
        except LowkiqError:
            with suppress(KeptByAnother):
                self._write(queue, KeptChange(memory=memory.forgets_begin()), stored)
            raise
        resharding.go_on(report)
        queue.doubt()

    def hold(self, seconds: float | None = None, *, by: str = "") -> float:
        """Stop proposals and moves for so long (None: until `release`); until when. Raises ValueError."""
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"seconds of a hold must be above 0, not {seconds!r}.")
        queue = self._core.queues.current(self._worker)
        until = self._core.backend.now(queue.shards[0]) + (FOR_EVER if seconds is None else seconds)
        self._write(queue, KeptChange(hold=Hold(until, by)))
        return until

    def release(self) -> None:
        """End a hold, and answer what keeps proposals from being carried out: a move that did not help, a rest."""
        queue = self._core.queues.current(self._worker)
        now = self._core.backend.now(queue.shards[0])
        self._write(queue, KeptChange(answered_at=now, gone=("hold",)))

    def _write(self, queue: "Queue", change: KeptChange, stored: bytes = b"") -> bytes:
        return write_kept(
            self._core.backend, queue.worker.queue_name, self._core.config.redis_retry_for, change, stored
        )

    def _kept(self, queue: "Queue") -> KeptAuto:
        return read_kept(self._core.backend, queue.worker.queue_name, self._core.config.redis_retry_for)

    def _look(self) -> AutoLook:
        _ = self.bounds
        core = self._core
        queue = core.queues.current(self._worker)
        reader = ShardReader(core.backend, core.config.redis_retry_for, queue.shards)
        metrics = next(iter(apart(reader, [queue.worker], queue_metrics(reader, [queue.shards]))))
        processes = Processes(core.backend, core.config.redis_retry_for)
        return AutoLook(core, queue, metrics, processes, self._kept(queue), any_hour=True)
