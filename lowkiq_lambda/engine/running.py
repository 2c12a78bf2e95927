"""Batches in slots: their handlers' view of the visit, the visit's record of them, and when it cancels them."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.lease import HandlerContext
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.lease_replies import Requests

if TYPE_CHECKING:
    from lowkiq_lambda.engine.iteration_run import IterationRun
    from lowkiq_lambda.engine.slots import SlotCall

Cause: TypeAlias = Literal["too long", "others", "request"]
"""Why: it takes too long, which may be said of it next time too; for reasons that are none of its own; or because an
operator has cancelled all of its ids."""

LEAST_REST: Final = 1.0
"""Seconds before the process ends, at least, in which what was cancelled cleans up, and its outcome is written."""


class RunMaker(HandlerContext, Protocol):
    """The visit of a batch, as the batch uses it."""

    def now(self) -> float:
        """Unix seconds by the shard's server. Raises BackendError if it has to be asked and can't."""
        ...

    def new_run(self, job_id: str, *, is_suspect: bool) -> "IterationRun":
        """A run of a job with a cursor."""
        ...


class RunningBatch:
    """One batch from its begin to its end; as a context it gives the same answers as its visit."""

    def __init__(self, visit: RunMaker, deliveries: Sequence[Delivery], lag: float, *, is_suspect: bool) -> None:
        self._visit = visit
        self._is_suspect = is_suspect
        self._run: IterationRun | None = None
        self.deliveries = deliveries
        self.waited = lag
        """Seconds for which its first id had been due when it began."""
        self.begun_at = 0.0
        """When it was given to its slot (monotonic)."""
        self.call: SlotCall | None = None
        """Its slot's, set before it may begin."""
        # Taken once: by its slot, which performs it then, or by its visit, so that it never begins.
        self._fate = Lock()
        self.cancelled: Cause | None = None

    def begin(self) -> bool:
        """In its slot, before all else: whether to perform it. False if it was withdrawn."""
        return self._fate.acquire(blocking=False)

    def withdraw(self) -> bool:
        """Whether it has not begun, and never will."""
        return self._fate.acquire(blocking=False)

    def cancel(self, cause: Cause) -> None:
        """Cancel it, once, as far as it can be."""
        if self.cancelled is None:
            self.cancelled = cause
            if self.call is not None:
                self.call.cancel()

    @property
    def token(self) -> int:
        """The fencing token."""
        return self._visit.token

    def remaining(self) -> float:
        """Seconds of the budget that are left."""
        return self._visit.remaining()

    def stopping(self) -> bool:
        """Whether the handler should come to an end: also if it went on after its cancellation."""
        return self.cancelled is not None or self._visit.stopping()

    @property
    def requests(self) -> Requests:
        """What operators want of ids that run."""
        return self._visit.requests

    def now(self) -> float:
        """Unix seconds by the shard's server. Raises BackendError if it has to be asked and can't."""
        return self._visit.now()

    def run_of(self, job_id: str) -> "IterationRun":
        """The run of this job, which has a cursor."""
        if self._run is None:
            self._run = self._visit.new_run(job_id, is_suspect=self._is_suspect)
        return self._run

    @property
    def ids(self) -> list[str]:
        """The ids of the batch."""
        return [delivery.id for delivery in self.deliveries]

    @property
    def has_run(self) -> bool:
        """Whether its job has a cursor."""
        return self._run is not None

    @property
    def broken(self) -> BaseException | None:
        """The error below the user's code, if there was one."""
        return None if self._run is None else self._run.broken


class RunningBatches:
    """Those of a visit. Slots add what they begin, and its coordinator removes it; any thread may ask for the ids."""

    def __init__(self) -> None:
        self._batches: set[RunningBatch] = set()

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, running: RunningBatch) -> None:
        """It is about to begin."""
        self._batches.add(running)

    def remove(self, running: RunningBatch) -> None:
        """It has ended, or never began."""
        self._batches.discard(running)

    def ids(self) -> list[str]:
        """Of all of them."""
        return [job_id for running in list(self._batches) for job_id in running.ids]

    def since(self) -> float:
        """When the first of them began."""
        return min((running.begun_at for running in list(self._batches)), default=0.0)

    def withdraw(self) -> None:
        """Remove those that have not begun: they never will."""
        self._batches = {running for running in self._batches if not running.withdraw()}

    def cancel(self, cause: Cause) -> None:
        """Cancel each, as far as it can be."""
        for running in list(self._batches):
            running.cancel(cause)

    def cancel_requested(self, requests: Requests) -> None:
        """Cancel those of which operators have cancelled each id."""
        for running in list(self._batches):
            if all(requests.get(job_id) == "cancel" for job_id in running.ids):
                running.cancel("request")

    def fault(self) -> str | None:
        """Why one of them may never end, or None."""
        return next(
            (fault for running in list(self._batches) if running.call and (fault := running.call.fault())), None
        )

    def have_ended(self) -> bool:
        """Whether none is left that may come to its end."""
        return all(running.call and running.call.fault() for running in list(self._batches))


class CancelWatch:
    """Looks at time, stop signal and trust while batches run."""

    def __init__(self, budget: Budget, trust_left: Callable[[], float], clock: Clock, shutdown_timeout: float) -> None:
        self._budget = budget
        self._trust_left = trust_left
        self._clock = clock
        self._patience = shutdown_timeout - max(LEAST_REST, shutdown_timeout / 10)
        self._stopped_at: float | None = None

    def cause(self) -> Cause | None:
        """Why to cancel now, or None."""
        if self._budget.is_hard and self._budget.remaining() <= 0:
            return "too long"
        if self._budget.is_cancelled() or self._trust_left() <= 0 or self._is_stop_over():
            return "others"
        return None

    def _is_stop_over(self) -> bool:
        if not self._budget.stopping():
            return False
        now = self._clock.monotonic()
        self._stopped_at = now if self._stopped_at is None else self._stopped_at
        return now >= self._stopped_at + self._patience
