"""The app that `bench.cores` drains: jobs that compute for about a millisecond, and note when."""

import os
import time
from pathlib import Path
from typing import Final

from lowkiq_lambda import Batch, Config, Lowkiq

QUEUE: Final = "cores"
SHARDS: Final = 16
BATCH: Final = 10
TURNS: Final = "CORES_TURNS"
"""The environment variable that says how many turns of the loop a job is."""
NOTES: Final = "CORES_NOTES"
"""The one that names the file of the notes: a line for each batch, when it began and ended and its number of jobs."""

app = Lowkiq(Config.from_env(os.environ))


def compute(turns: int) -> int:
    """Pure Python that waits for nothing: a fixed number of turns, so that a slow core shows."""
    total = 0
    for number in range(turns):
        total += number * number % 7
    return total


@app.worker(queue_name=QUEUE, shards_count=SHARDS, batch_size=BATCH)
def cores(batch: Batch) -> None:
    """Compute for each job."""
    began_at = time.monotonic()
    turns = int(os.environ[TURNS])
    for _ in batch:
        compute(turns)
    with Path(os.environ[NOTES]).open("ab", buffering=0) as notes:
        notes.write(f"{began_at} {time.monotonic()} {len(batch)}\n".encode())
