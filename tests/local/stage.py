"""An app for daemons in processes of their own; what its handlers do stands in the payloads.

They tell the test what happened by lines in a file, and take orders from it through named pipes. While an id is
performed a lock on its file is held, which the system takes back from a process that ends: two executions at
once cannot escape, whatever kills what.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from lowkiq_lambda import Batch, Config, Lowkiq, Worker

FOLDER = Path(os.environ["STAGE_FOLDER"])


def tell(what: str, **fields: object) -> None:
    """Add a line to what the test reads."""
    line = json.dumps({"what": what, "pid": os.getpid(), "thread": threading.current_thread().name, **fields})
    with (FOLDER / "told").open("a") as told:
        told.write(f"{line}\n")


@contextmanager
def alone(job_id: str) -> Iterator[None]:
    """Tells where another execution of the id is under way."""
    with (FOLDER / f"{job_id}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("overlap", id=job_id)
        yield


def perform(batch: Batch) -> None:
    """Do with each id what its payload says."""
    for job_id, payloads in batch.items():
        with alone(job_id):
            tell("begin", id=job_id, token=batch.token)
            for payload in payloads:
                ACTS[payload["do"]](job_id, batch)
            tell("end", id=job_id)


def wait(job_id: str, _batch: Batch) -> None:
    """Until the test writes into the id's pipe."""
    (FOLDER / f"{job_id}.pipe").read_text()


def await_stop(_job_id: str, batch: Batch) -> None:
    """Until the batch is told to stop."""
    while not batch.stopping:
        threading.Event().wait(0.005)


def leave(_job_id: str, _batch: Batch) -> None:
    """End the thread, as a library that calls sys.exit does."""
    raise SystemExit(3)


ACTS = {"note": lambda *_: None, "wait": wait, "await stop": await_stop, "leave": leave}


def hook(name: str) -> None:
    """Tells that it was called, and then fails."""
    tell(name)
    if name == os.environ.get("STAGE_ENDED_BY"):
        raise SystemExit(f"{name} wants to end")
    raise RuntimeError(f"{name} is broken")


app = Lowkiq(
    Config.from_env(
        os.environ,
        on_server_init=partial(hook, "on_server_init"),
        on_startup=partial(hook, "on_startup"),
        on_heartbeat=partial(hook, "on_heartbeat"),
        on_quiet=partial(hook, "on_quiet"),
        on_shutdown=partial(hook, "on_shutdown"),
        last_words=lambda error: tell("last words", error=str(error)),
    )
)


@app.worker
class Perform(Worker):
    """Its queue and shards are the test's choice."""

    queue_name = os.environ["STAGE_QUEUE"]
    shards_count = int(os.environ.get("STAGE_SHARDS", "1"))

    def perform(self, batch: Batch) -> None:
        """Do what the payloads say."""
        perform(batch)


not_an_app = 3
