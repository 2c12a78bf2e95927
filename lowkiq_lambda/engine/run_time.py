"""The time that a call of a handler may take (`Worker.max_run_time`): what the handler sees of it, and a warning.

A thread cannot be ended from outside: so a plain function is asked to stop, and goes on if it does not look.
"""

import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from lowkiq_lambda.declare.worker import Worker, in_seconds, is_coroutine, is_generator
from lowkiq_lambda.engine.lease import HandlerContext
from lowkiq_lambda.engine.perform import about
from lowkiq_lambda.store.shard.lease_replies import Requests

logger = logging.getLogger(__name__)


class LimitedContext:
    """The context of a batch, with the time that is left of its run. `perform_job` begins a new one for each job."""

    def __init__(self, limits: "RunLimits", context: HandlerContext, ids: Sequence[str]) -> None:
        self._limits = limits
        self._context = context
        self._ids = ids
        self._has_warned = False
        self._until = limits.now() + limits.seconds

    def begin(self, job_id: str) -> None:
        """A handler is about to be called with this job."""
        self.warn()
        self._ids, self._has_warned = [job_id], False
        self._until = self._limits.now() + self._limits.seconds

    def end(self) -> None:
        """The batch has ended."""
        self.warn()
        self._limits.forget(self)

    @property
    def token(self) -> int:
        """The fencing token."""
        return self._context.token

    def remaining(self) -> float:
        """Seconds that are left, of the run or of the drain's budget."""
        return min(self._context.remaining(), self._until - self._limits.now())

    def stopping(self) -> bool:
        """Whether the handler should come to an end."""
        return self._context.stopping() or self._limits.now() >= self._until

    @property
    def requests(self) -> Requests:
        """What operators want of ids that run."""
        return self._context.requests

    def warn(self) -> None:
        """Log, once, that the handler has run too long."""
        if self._limits.warns and not self._has_warned and self._limits.now() > self._until:
            self._has_warned = True
            text = "%s: a handler has run longer than max_run_time = %g s"
            worker = self._limits.worker
            logger.warning(text, worker.queue_name, self._limits.seconds, extra=about(worker, self._ids))


class RunLimits:
    """The runs of one worker that are under way. `now`: monotonic seconds."""

    def __init__(self, worker: type[Worker[Any]], now: Callable[[], float]) -> None:
        self.worker = worker
        self.now = now
        self.seconds = 0.0 if worker.max_run_time is None else in_seconds(worker.max_run_time)
        # The others end in time, or fail.
        self.warns = not (is_coroutine(worker) or is_generator(worker))
        self._running = set[LimitedContext]()
        self._lock = Lock()

    def begin(self, context: HandlerContext, ids: Sequence[str]) -> LimitedContext:
        """A batch begins."""
        limited = LimitedContext(self, context, ids)
        with self._lock:
            self._running.add(limited)
        return limited

    def forget(self, limited: LimitedContext) -> None:
        """A batch has ended."""
        with self._lock:
            self._running.discard(limited)

    def look(self) -> None:
        """From the thread that renews leases: warn of what runs too long."""
        with self._lock:
            running = [*self._running]
        for limited in running:
            limited.warn()
