"""An app with two queues for a task, for daemons in processes of their own; what an item does stands in its id."""

import os
import threading
import time
from pathlib import Path
from typing import Any

from lowkiq_lambda import Batch, BatchJob, Config, Lowkiq, Rejected, Worker
from tests.kit.acknowledged import Acknowledged
from tests.kit.trust import has_lost_its_lease
from tests.proof.history import Recorder

_pause = threading.Event()
_name = os.environ["STORM_QUEUE"]
_takes = float(os.environ.get("STORM_PAUSE", "0.004"))

app = Lowkiq(Config.from_env(os.environ))
history = Recorder(Path(os.environ["STORM_HISTORY"]))
app.observers.append(Acknowledged(history))


def perform(job_id: str, given: "Batch[Any] | BatchJob[Any]") -> Exception | None:
    """Take a moment, and end as the id says; what the job fails with."""
    history.write("begin", job_id, token=given.token)
    _pause.wait(_takes)
    error: Exception | None = None
    if job_id.startswith("failing"):
        error = Rejected("not qualified")
    if job_id.startswith("dying"):
        error = OSError("no connection")
    at = time.monotonic()
    outcome = "stale" if has_lost_its_lease(given) else "failed" if error else "done"
    history.write("end", job_id, at=at, token=given.token, outcome=outcome)
    return error


@app.worker
class InBatches(Worker):
    """Its items fail by name."""

    queue_name = f"{_name}-1"
    shards_count = 3
    batch_size = 20
    max_retry_count = 0

    def perform(self, batch: Batch[Any]) -> None:
        """Each of them."""
        for job_id in batch:
            if error := perform(job_id, batch):
                batch.fail(job_id, error)


@app.worker
class OneByOne(Worker):
    """Its items fail by what they raise."""

    queue_name = f"{_name}-2"
    shards_count = 2
    max_retry_count = 0

    def perform_job(self, job: BatchJob[Any]) -> None:
        """It."""
        if error := perform(job.id, job):
            raise error


@app.worker
class Finished(Worker):
    """The callback's: the storm performs its jobs, when all is over."""

    queue_name = f"{_name}-3"
    shards_count = 1

    def perform_job(self, job: BatchJob[Any]) -> None:
        """Note the task."""
        history.write("begin", job.id, token=job.token)
        history.write("completed", job.id)
        history.write("end", job.id, token=job.token, outcome="done")
