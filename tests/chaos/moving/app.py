"""An app whose queue moves, for daemons, movers and producers in processes of their own.

While payloads of an id are handled, a lock on its record is held, which the system takes back from a process that dies:
two executions of one id at once cannot escape.
"""

import fcntl
import os
import threading
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from lowkiq_lambda import Batch, Config, Lowkiq, Worker

QUEUE_VARIABLE: Final = "MOVING_QUEUE"
FOLDER_VARIABLE: Final = "MOVING_FOLDER"
SHARDS_VARIABLE: Final = "MOVING_SHARDS"
BAD: Final = "bad"
"""Ids that begin so always fail."""
RETRIES: Final = 1
_pause = threading.Event()


class Handled(msgspec.Struct, frozen=True):
    """What a handler was given of an id at once. `alone`: nobody else was at the id.

    `repeated`: it was told that an earlier delivery may have run.
    """

    numbers: list[int]
    alone: bool = True
    repeated: bool = False


def record_of(folder: Path, job_id: str) -> Path:
    """Where it is written down what was handled of an id."""
    return folder / sha256(job_id.encode()).hexdigest()


def handled_of(folder: Path, job_id: str) -> list[Handled]:
    """What was handled of an id, in order."""
    record = record_of(folder, job_id)
    lines = record.read_bytes().splitlines() if record.exists() else []
    return [msgspec.json.decode(line, type=Handled) for line in lines]


def moving_worker(app: Lowkiq, name: str, folder: Path, count: int) -> type[Worker]:
    """Declare the queue, with the number of shards that it has at first."""

    @app.worker
    class Moving(Worker):
        queue_name = name
        shards_count = count
        batch_size = 10
        max_retry_count = RETRIES

        def retry_in(self, retry_count: int) -> float:
            return 0.05 * (retry_count + 1)

        def perform(self, batch: Batch) -> None:
            for job_id, numbers in batch.items():
                with record_of(folder, job_id).open("ab", buffering=0) as record:
                    alone = True
                    try:
                        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        alone = False
                    _pause.wait(0.001)
                    line = Handled(msgspec.convert(numbers, list[int]), alone, batch.job(job_id).repeated)
                    record.write(msgspec.json.encode(line) + b"\n")
                if job_id.startswith(BAD):
                    batch.fail(job_id, "always")

    return Moving


app = Lowkiq(Config.from_env(os.environ))
worker = (
    moving_worker(app, os.environ[QUEUE_VARIABLE], Path(os.environ[FOLDER_VARIABLE]), int(os.environ[SHARDS_VARIABLE]))
    if QUEUE_VARIABLE in os.environ
    else None
)
