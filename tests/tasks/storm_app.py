"""An app with two queues for a task, for daemons in processes of their own; what an item does stands in its id."""

import os
import threading
from typing import Any

from lowkiq_lambda import Batch, Config, Lowkiq, Rejected, Worker

_pause = threading.Event()
_name = os.environ["STORM_QUEUE"]
_takes = float(os.environ.get("STORM_PAUSE", "0.004"))

app = Lowkiq(Config.from_env(os.environ))


def outcome(job_id: str) -> None:
    """Take a moment, and end as the id says."""
    _pause.wait(_takes)
    if job_id.startswith("failing"):
        raise Rejected("not qualified")
    if job_id.startswith("dying"):
        raise OSError("no connection")


@app.worker
class InBatches(Worker):
    """Its items fail by name."""

    queue_name = f"{_name}-1"
    shards_count = 3
    batch_size = 20
    max_retry_count = 0

    def perform(self, batch: Batch) -> None:
        """Each of them."""
        for job_id in batch:
            try:
                outcome(job_id)
            except (Rejected, OSError) as error:
                batch.fail(job_id, error)


@app.worker
class OneByOne(Worker):
    """Its items fail by what they raise."""

    queue_name = f"{_name}-2"
    shards_count = 2
    max_retry_count = 0

    def perform_job(self, job: Any) -> None:
        """It."""
        outcome(job.id)


@app.worker
class Finished(Worker):
    """The callback's: a test performs its jobs, when all is over."""

    queue_name = f"{_name}-3"
    shards_count = 1
    performed: list[str] = []  # noqa: RUF012 - what the process has seen

    def perform_job(self, job: Any) -> None:
        """Note the task."""
        self.performed.append(job.id)
