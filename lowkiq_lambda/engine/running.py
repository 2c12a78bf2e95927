"""A batch that runs in a slot: what its handler may know, and what its visit keeps of it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from lowkiq_lambda.engine.batch import HandlerContext
from lowkiq_lambda.job import Delivery

if TYPE_CHECKING:
    from lowkiq_lambda.engine.cancelling import Cause
    from lowkiq_lambda.engine.iteration_run import IterationRun


class RunMaker(HandlerContext, Protocol):
    """A visit, as its batches know it."""

    def new_run(self, job_id: str, *, is_suspect: bool) -> "IterationRun":
        """A run of a job with a cursor."""
        ...


class RunningBatch:
    """One batch from its begin to its end; as a context it tells what the visit tells."""

    def __init__(self, visit: RunMaker, deliveries: Sequence[Delivery], waited: float, *, is_suspect: bool) -> None:
        self._visit = visit
        self._is_suspect = is_suspect
        self._run: IterationRun | None = None
        self.deliveries = deliveries
        self.waited = waited
        """Seconds for which its first id had been due when it began."""
        self.ask_to_end: Callable[[], object] = bool
        """Has it cancelled by its slot."""
        self.cancelled: Cause | None = None

    def cancel(self, cause: "Cause") -> None:
        """Cancel it, once, as far as it can be."""
        if self.cancelled is None:
            self.cancelled = cause
            self.ask_to_end()

    @property
    def token(self) -> int:
        """The fencing token."""
        return self._visit.token

    def remaining(self) -> float:
        """Seconds of the budget that are left."""
        return self._visit.remaining()

    def stopping(self) -> bool:
        """Whether the handler should come to an end."""
        return self._visit.stopping()

    def run_of(self, job_id: str) -> "IterationRun":
        """The run of this job, which has a cursor."""
        if self._run is None:
            self._run = self._visit.new_run(job_id, is_suspect=self._is_suspect)
        return self._run

    @property
    def ids(self) -> list[str]:
        """What it performs."""
        return [delivery.id for delivery in self.deliveries]

    @property
    def has_run(self) -> bool:
        """Whether its job has a cursor."""
        return self._run is not None

    @property
    def broken(self) -> BaseException | None:
        """What went wrong below the user's code."""
        return None if self._run is None else self._run.broken
