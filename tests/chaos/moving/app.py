"""An app whose queue moves, for daemons, movers and producers in processes of their own."""

import os
import threading
import time
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from tests.kit.acknowledged import Acknowledged
from tests.kit.trust import has_lost_its_lease
from tests.proof.history import Recorder

QUEUE_VARIABLE: Final = "MOVING_QUEUE"
HISTORY_VARIABLE: Final = "MOVING_HISTORY"
SHARDS_VARIABLE: Final = "MOVING_SHARDS"
BAD: Final = "bad"
"""Ids that begin so always fail."""
RETRIES: Final = 1
_pause = threading.Event()


def moving_worker(app: Lowkiq, name: str, history: Recorder, count: int) -> type[Worker]:
    """Declare the queue, with the number of shards that it has at first; its handler notes what it is given."""
    app.observers.append(Acknowledged(history))

    @app.worker
    class Moving(Worker):
        queue_name = name
        shards_count = count
        batch_size = 10
        max_retry_count = RETRIES

        def retry_in(self, retry_count: int) -> float:
            return 0.05 * (retry_count + 1)

        def perform(self, batch: Batch[Any]) -> None:
            for job_id, numbers in batch.items():
                repeated = batch.job(job_id).repeated
                history.write("begin", job_id, numbers, token=batch.token, repeated=repeated)
                _pause.wait(0.001)
                outcome = "done"
                if job_id.startswith(BAD):
                    batch.fail(job_id, "always")
                    outcome = "failed"
                at = time.monotonic()
                outcome = "stale" if has_lost_its_lease(batch) else outcome
                history.write("end", job_id, at=at, outcome=outcome, token=batch.token)

    return Moving


app = Lowkiq(Config.from_env(os.environ))
history = Recorder(Path(os.environ[HISTORY_VARIABLE])) if HISTORY_VARIABLE in os.environ else None
worker = moving_worker(app, os.environ[QUEUE_VARIABLE], history, int(os.environ[SHARDS_VARIABLE])) if history else None
