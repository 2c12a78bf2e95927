"""An app whose daemon is killed, and whose bursts are a program of their own; its handler notes what it holds."""

import os
import threading
from pathlib import Path

from lowkiq_lambda import Batch, Config, Lowkiq
from tests.proof.history import Recorder

_pause = threading.Event()
_history = Recorder(Path(os.environ["BURST_HISTORY"]))

app = Lowkiq(Config.from_env(os.environ))


@app.worker(
    queue_name=os.environ["BURST_QUEUE"],
    shards_count=int(os.environ["BURST_SHARDS"]),
    batch_size=1,
    max_retry_count=1_000,
)
def note_the_run(batch: Batch) -> None:
    """Note the run, and that it holds its shard in the middle of it."""
    ((job_id, payloads),) = batch.items()
    _history.write("begin", job_id, payloads, token=batch.token)
    _pause.wait(0.002)
    if not batch.stopping:
        _history.write("holds", job_id, token=batch.token)
    _history.write("end", job_id, outcome="stale" if batch.stopping else "done", token=batch.token)


if __name__ == "__main__":
    while True:
        app.drain()
        _pause.wait(0.1)
