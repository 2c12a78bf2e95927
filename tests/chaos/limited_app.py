"""An app with a limited queue, for daemons in processes of their own; its handlers note for how long they may run.

A run counts from its begin to the last moment at which it was not told to stop. So a process that was frozen, or waited
for the machine, is judged by what it may believe.
"""

import os
import threading
import time
from pathlib import Path
from typing import Final

from lowkiq_lambda import Batch, Config, Lowkiq
from tests.proof.history import Recorder

MOMENTS: Final = 5
_pause = threading.Event()
_history = Recorder(Path(os.environ["LIMITED_HISTORY"]))

app = Lowkiq(Config.from_env(os.environ))


@app.worker(
    queue_name=os.environ["LIMITED_QUEUE"],
    shards_count=int(os.environ["LIMITED_SHARDS"]),
    batch_size=1,
    max_running=int(os.environ["LIMITED_RUNNING"]),
    max_retry_count=1_000,
)
def note_the_run(batch: Batch) -> None:
    """Note each moment at which it may run."""
    ((job_id, payloads),) = batch.items()
    _history.write("begin", job_id, payloads, token=batch.token)
    for _ in range(MOMENTS):
        at = time.monotonic()
        if not batch.stopping:
            _history.write("holds", job_id, at=at, token=batch.token)
        _pause.wait(0.004)
    at = time.monotonic()
    _history.write("end", job_id, at=at, outcome="stale" if batch.stopping else "done", token=batch.token)
