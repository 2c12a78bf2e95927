"""An app for daemons that are killed: each id is a file of a repository, each payload one change of it.

While a file's changes are applied, a lock on its record is held, which the system takes back from a process that
dies: two executions of one id at once cannot escape, whatever kills what.
"""

import fcntl
import os
import threading
from hashlib import sha256
from pathlib import Path

import msgspec

from lowkiq_lambda import Batch, Config, Lowkiq, Worker

FOLDER_VARIABLE = "REPLAY_FOLDER"
QUEUE_VARIABLE = "REPLAY_QUEUE"
SHARDS_VARIABLE = "REPLAY_SHARDS"
SHARDS = 6
SECONDS_PER_CHANGE = 0.0015


class Change(msgspec.Struct, frozen=True):
    """Change number `number`, from 1, of a file: its new content's hash, or None for a deletion."""

    number: int
    seq: int
    blob: str | None


class Applied(msgspec.Struct, frozen=True):
    """A change as it was applied. `alone`: nobody else was at the file."""

    change: Change
    token: int
    alone: bool


def record_of(folder: Path, path: str) -> Path:
    """Where it is written down what was done to a file."""
    return folder / sha256(path.encode()).hexdigest()


def applied_to(folder: Path, path: str) -> list[Applied]:
    """What was done to a file, in order."""
    record = record_of(folder, path)
    lines = record.read_bytes().splitlines() if record.exists() else []
    return [msgspec.json.decode(line, type=Applied) for line in lines]


def replay_worker(app: Lowkiq, queue_name: str, folder: Path, shards_count: int = SHARDS) -> type[Worker]:
    """Declare the queue of the replay."""
    name, count = queue_name, shards_count
    work = threading.Event()

    @app.worker
    class Replay(Worker):
        queue_name = name
        shards_count = count
        batch_size = 10

        def perform(self, batch: Batch) -> None:
            for path, changes in batch.items():
                with record_of(folder, path).open("ab", buffering=0) as record:
                    alone = True
                    try:
                        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        alone = False
                    for change in msgspec.convert(changes, list[Change]):
                        work.wait(SECONDS_PER_CHANGE)
                        record.write(msgspec.json.encode(Applied(change, batch.token, alone)) + b"\n")

    return Replay


app = Lowkiq(Config.from_env(os.environ))
if QUEUE_VARIABLE in os.environ:
    shards = int(os.environ.get(SHARDS_VARIABLE, SHARDS))
    replay_worker(app, os.environ[QUEUE_VARIABLE], Path(os.environ[FOLDER_VARIABLE]), shards)
