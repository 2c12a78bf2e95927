"""The app of the smoke run: it logs what it does, which is all that one sees of it from outside."""

import json
import sys
import time
from typing import Final

from lowkiq_lambda import Batch, Lowkiq, Worker, kill_on

MARK: Final = "smoke_runs"
"""The field of a log line with runs: rows of an id, the numbers of its payloads, and when they began and ended."""
SHARDS: Final = 4
MORE_SHARDS: Final = 8
WORK: Final = 0.002
"""Seconds that an id's payloads take."""

app = Lowkiq()


@app.worker
class Record(Worker):
    """Logs each run, in nanoseconds of the function's clock, with the token of its lease."""

    shards_count = SHARDS
    batch_size = 10

    def perform(self, batch: Batch) -> None:
        """Work, and log the payloads of each id."""
        runs = []
        for id, numbers in batch.items():
            began_at = time.time_ns()
            time.sleep(WORK)
            runs.append([id, numbers, began_at, time.time_ns()])
        sys.stdout.write(json.dumps({MARK: runs, "token": batch.token}) + "\n")
        sys.stdout.flush()


@app.worker
class Die(Worker):
    """Its jobs end in the morgue, which an alarm watches."""

    shards_count = 1
    on_error = (kill_on(ValueError),)

    def perform(self, batch: Batch) -> None:
        """Fail for good."""
        raise ValueError(f"{', '.join(batch)}: to let an alarm ring")
