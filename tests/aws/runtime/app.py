"""An app for functions in processes of their own; what its handler does with an id stands in the payload.

It tells the test what happened by lines in a file. While an id is performed a lock on its file is held, which the
system takes back from a process that dies: two executions at once cannot escape, whatever kills what.
"""

import fcntl
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.clock import SystemClock

FOLDER = Path(os.environ["STAGE_FOLDER"])
CLOCK = Path(os.environ["STAGE_CLOCK"])


class MovedClock(SystemClock):
    """Its wall clock can be moved by the test while the monotonic one goes on, as a long freeze does it."""

    def time(self) -> float:
        """Unix seconds, and what the test adds."""
        ahead = float(CLOCK.read_text()) if CLOCK.exists() else 0.0
        return super().time() + ahead


def tell(what: str, **fields: object) -> None:
    """Add a line to what the test reads; it is there when this returns."""
    with (FOLDER / "told").open("ab", buffering=0) as told:
        told.write(json.dumps({"what": what, "pid": os.getpid(), **fields}).encode() + b"\n")


@contextmanager
def alone(job_id: str) -> Iterator[None]:
    """Tells where another execution of the id is under way."""
    with (FOLDER / f"{job_id}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("overlap", id=job_id)
        yield


def is_first(job_id: str) -> bool:
    """Whether nobody asked this for the id before, in any process."""
    try:
        (FOLDER / f"{job_id}.first").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def note(_job_id: str, _batch: Batch) -> None:
    """Nothing but what is told anyhow."""


def hang_once(job_id: str, _batch: Batch) -> None:
    """The first time, never come back."""
    if is_first(job_id):
        threading.Event().wait()


def await_stop_once(job_id: str, batch: Batch) -> None:
    """The first time, go on until the batch is told to stop."""
    if is_first(job_id):
        while not batch.stopping:
            threading.Event().wait(0.005)
        tell("stopping", id=job_id)


def exit_once(job_id: str, _batch: Batch) -> None:
    """The first time, as a library does that calls sys.exit."""
    if is_first(job_id):
        raise SystemExit(3)


def wait(job_id: str, _batch: Batch) -> None:
    """Until the test writes into the id's pipe."""
    (FOLDER / f"{job_id}.pipe").read_text()


def take_a_tenth(_job_id: str, _batch: Batch) -> None:
    """Work for a tenth of a second."""
    threading.Event().wait(0.1)


def leave(_job_id: str, _batch: Batch) -> None:
    """End the process at once."""
    os._exit(3)


def shoot(_job_id: str, _batch: Batch) -> None:
    """End the process as the kernel does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


ACTS: Final[dict[str, Callable[[str, Batch], None]]] = {
    "note": note,
    "hang once": hang_once,
    "await stop once": await_stop_once,
    "exit once": exit_once,
    "wait": wait,
    "take a tenth": take_a_tenth,
    "leave": leave,
    "shoot": shoot,
}

app = Lowkiq(Config.from_env(os.environ))
app._clock = MovedClock()


@app.worker
class Perform(Worker):
    """Its queue and shards are the test's choice."""

    queue_name = os.environ["STAGE_QUEUE"]
    shards_count = int(os.environ["STAGE_SHARDS"])
    batch_size = int(os.environ["STAGE_BATCH_SIZE"])

    def perform(self, batch: Batch) -> None:
        """Do what the payloads say."""
        for job_id, payloads in batch.items():
            with alone(job_id):
                numbers = [payload["number"] for payload in payloads]
                tell("begin", id=job_id, token=batch.token, numbers=numbers)
                for payload in payloads:
                    ACTS[payload["do"]](job_id, batch)
                tell("end", id=job_id, token=batch.token, numbers=numbers)
