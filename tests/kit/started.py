"""Started jobs, as a holder leaves them that a test plays."""

from uuid import uuid4

from lowkiq_lambda import Lowkiq, MorgueLimits, Worker
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.store.shard.session import LeaseSession, LeaseSettings, OutcomeRecord, Settlement
from tests.kit.holders import LIMITS, RETRY_FOR


class Starter:
    """A holder of the shard of an id, which has claimed what is due there. The id's progress is saved at once."""

    def __init__(self, app: Lowkiq, worker: type[Worker], job_id: str, progress: JobProgress | bytes) -> None:
        shard = app.core.queues.agreed(worker).shards[shard_for(job_id, count_of(worker))]
        terms = LeaseSettings(60.0, worker.merge, MorgueLimits(100, 10_000_000, 1_000.0), b"crashed")
        self._session = LeaseSession(app.core.backend, shard, uuid4().hex, terms)
        self._session.acquire("starter:1", LIMITS, RETRY_FOR)
        self._id = job_id
        saved = progress if isinstance(progress, bytes) else progress.dump()
        self._session.checkpoint(job_id, saved, clears=False, retry_for=RETRY_FOR)

    def put_off(self, when: float | None = None, *, moved: bool = True) -> None:
        """The job goes on then (Unix seconds), or behind what is due now."""
        self.settle((self._id, "later", "" if when is None else repr(when), int(moved)))

    def fail(self, due_at: float, retry_count: float = 0) -> None:
        """The job failed, and is tried again then."""
        self.settle((self._id, "retried", retry_count, due_at, b"no", "s", False, b"no"))

    def settle(self, *outcomes: OutcomeRecord) -> None:
        """The end of the visit, with these outcomes."""
        self._session.settle(Settlement(outcomes, "release", "0 0 0 0", 0), LIMITS, retry_for=RETRY_FOR)


def put_off(
    app: Lowkiq, worker: type[Worker], job_id: str, progress: JobProgress | bytes, when: float | None = None
) -> None:
    """A job that is due starts, and waits to go on."""
    Starter(app, worker, job_id, progress).put_off(when)
