"""An app for functions in processes of their own; what its handler does with an id stands in the payload."""

import os
import signal
import threading
from pathlib import Path

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from tests.kit.telling import FOLDER, declare_stage_worker, tell

CLOCK = Path(os.environ["STAGE_CLOCK"])


class MovedClock(SystemClock):
    """Its wall clock can be moved by the test while the monotonic one goes on, as a long freeze does it."""

    def time(self) -> float:
        """Unix seconds, and what the test adds."""
        ahead = float(CLOCK.read_text()) if CLOCK.exists() else 0.0
        return super().time() + ahead


def is_first(job_id: str) -> bool:
    """Whether nobody asked this for the id before, in any process."""
    try:
        (FOLDER / f"{job_id}.first").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


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


def interrupt(_job_id: str, _batch: Batch) -> None:
    """Raise what Ctrl-C raises, though nobody has pressed it."""
    raise KeyboardInterrupt


def take_a_tenth(_job_id: str, _batch: Batch) -> None:
    """Work for a tenth of a second."""
    threading.Event().wait(0.1)


def leave(_job_id: str, _batch: Batch) -> None:
    """End the process at once."""
    os._exit(3)


def shoot(_job_id: str, _batch: Batch) -> None:
    """End the process as the kernel does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


app = Lowkiq(Config.from_env(os.environ))
app.core.connections.clock = MovedClock()
declare_stage_worker(
    app,
    {
        "hang once": hang_once,
        "await stop once": await_stop_once,
        "exit once": exit_once,
        "interrupt": interrupt,
        "take a tenth": take_a_tenth,
        "leave": leave,
        "shoot": shoot,
    },
)
