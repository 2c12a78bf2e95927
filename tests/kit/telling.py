"""The handler's side of a stage: workers in processes of their own, and how they tell the test.

They tell of each event by a line in a file, and take orders through named pipes. While an id is performed a lock on
its file is held, which the system takes back from a process that ends: two executions at once cannot escape,
whichever process dies.
"""

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from lowkiq_lambda import Batch, Lowkiq, Worker

FOLDER: Final = Path(os.environ["STAGE_FOLDER"])

Act: TypeAlias = Callable[[str, Batch], None]
"""Something that a handler does with an id of its batch."""


def tell(what: str, **fields: object) -> None:
    """Add a line to the file that the test reads; it is there even if the process dies right after."""
    line = {"what": what, "pid": os.getpid(), "thread": threading.current_thread().name, **fields}
    with (FOLDER / "told").open("ab", buffering=0) as told:
        told.write(json.dumps(line).encode() + b"\n")


@contextmanager
def alone(job_id: str) -> Iterator[None]:
    """Tells that another execution of the id is under way, if one is."""
    with (FOLDER / f"{job_id}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("overlap", id=job_id)
        yield


def note(_job_id: str, _batch: Batch) -> None:
    """Nothing beside the lines that are told anyhow."""


def wait(job_id: str, _batch: Batch) -> None:
    """Until the test writes into the id's pipe."""
    (FOLDER / f"{job_id}.pipe").read_text()


def await_stop(_job_id: str, batch: Batch) -> None:
    """Until the batch is told to stop."""
    while not batch.stopping:
        threading.Event().wait(0.005)


ACTS: Final[Mapping[str, Act]] = {"note": note, "wait": wait, "await stop": await_stop}


def declare_stage_worker(app: Lowkiq, acts: Mapping[str, Act]) -> None:
    """The worker of the stage's queue; each payload names one of `acts`, or a common one."""
    known = {**ACTS, **acts}

    def perform(_worker: Worker, batch: Batch) -> None:
        for job_id, payloads in batch.items():
            with alone(job_id):
                numbers = [payload.get("number") for payload in payloads]
                tell("begin", id=job_id, token=batch.token, numbers=numbers)
                for payload in payloads:
                    known[payload["do"]](job_id, batch)
                tell("end", id=job_id, token=batch.token, numbers=numbers)

    fields = {
        "queue_name": os.environ["STAGE_QUEUE"],
        "shards_count": int(os.environ["STAGE_SHARDS"]),
        "batch_size": int(os.environ["STAGE_BATCH_SIZE"]),
        "concurrency": int(os.environ.get("STAGE_CONCURRENCY", "1")),
        "perform": perform,
    }
    app.worker(type("Perform", (Worker,), fields))
