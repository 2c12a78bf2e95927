"""An app for daemons that are killed: each id is a file of a repository, each payload one change of it."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from tests.kit.acknowledged import Acknowledged
from tests.kit.trust import has_lost_its_lease
from tests.proof.history import Recorder

HISTORY_VARIABLE = "REPLAY_HISTORY"
QUEUE_VARIABLE = "REPLAY_QUEUE"
SHARDS_VARIABLE = "REPLAY_SHARDS"
SHARDS = 6
SECONDS_PER_CHANGE = 0.0015


class Change(msgspec.Struct, frozen=True):
    """Change number `number`, from 1, of a file: its new content's hash, or None for a deletion."""

    number: int
    seq: int
    blob: str | None


def replay_worker(app: Lowkiq, queue_name: str, history: Recorder, shards_count: int = SHARDS) -> type[Worker]:
    """Declare the queue of the replay. Its handler writes each change down, with the content's hash as outcome."""
    name, count = queue_name, shards_count
    work = threading.Event()
    app.observers.append(Acknowledged(history))

    @app.worker
    class Replay(Worker):
        queue_name = name
        shards_count = count
        batch_size = 10

        def perform(self, batch: Batch[Any]) -> None:
            for path, payloads in batch.items():
                changes, token = msgspec.convert(payloads, list[Change]), batch.token
                numbers = [change.number for change in changes]
                history.write("begin", path, numbers, token=token, repeated=batch.job(path).repeated)
                for change in changes:
                    work.wait(SECONDS_PER_CHANGE)
                    history.write("write", path, [change.number], token=token, outcome=change.blob or "")
                at = time.monotonic()
                outcome = "stale" if has_lost_its_lease(batch) else "done"
                history.write("end", path, at=at, token=token, outcome=outcome)

    return Replay


app = Lowkiq(Config.from_env(os.environ))
if QUEUE_VARIABLE in os.environ:
    shards = int(os.environ.get(SHARDS_VARIABLE, SHARDS))
    replay_worker(app, os.environ[QUEUE_VARIABLE], Recorder(Path(os.environ[HISTORY_VARIABLE])), shards)
