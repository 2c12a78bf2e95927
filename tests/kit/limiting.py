"""Workers whose jobs ask a limiter, and periods of the clock."""

from collections.abc import Callable

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.workers import declare, jobs_of


class LimitedRuns:
    """A worker whose jobs take one point each, or what `ask` says."""

    def __init__(self, app: Lowkiq, queue_name: str, ask: Callable[[str], object]) -> None:
        self.app = app
        self.ran: list[str] = []

        def perform_job(_self: Worker, job: BatchJob) -> None:
            ask(job.id)
            self.ran.append(job.id)

        self.worker = declare(app, queue_name, not_called, perform_job=perform_job)

    def drain(self, ids: str = "") -> dict[str, int]:
        """Push these and drain; what came of them."""
        self.worker.push_many(jobs_of(ids))
        return self.app.drain()

    def due_in(self, job_id: str) -> float:
        """Seconds until the job is due."""
        (job,) = self.app.operate(self.worker).waiting.fetch([job_id])
        return job.due_at - self.app.core.clock.time()


def into_period(clock: ManualClock, per: float, seconds: float) -> None:
    """Go so far into a period of the clock."""
    clock.advance(per - clock.time() % per + seconds)


def not_called(_batch: Batch) -> None:
    """In the place of a `perform`, of a worker with a `perform_job`."""
    raise AssertionError
