"""An app whose queue has as many shards as it needs, for daemons that die at arrows of its moves.

Its minutes are shorter, and so is all that the rule measures in them. At an arrow a process ends itself by SIGKILL
where a file has the arrow's name: it takes the file along, so that each file is one death.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda import Auto, Batch, Config, Lowkiq, Worker
from lowkiq_lambda.duties import runner
from lowkiq_lambda.operate.auto import duty, facts, forecast, memory, rule
from lowkiq_lambda.operate.auto import look as auto_look
from lowkiq_lambda.operate.inspect import sampling
from lowkiq_lambda.operate.lateness import at_it, look, samples
from lowkiq_lambda.operate.lateness.duty import WatchDuty
from lowkiq_lambda.reshard import duty as moves
from lowkiq_lambda.reshard.group import GroupMove
from lowkiq_lambda.reshard.resharding import Resharding
from tests.kit.acknowledged import Acknowledged
from tests.kit.trust import has_lost_its_lease
from tests.proof.history import Recorder

QUEUE_VARIABLE: Final = "GROWING_QUEUE"
HISTORY_VARIABLE: Final = "GROWING_HISTORY"
DEATHS_VARIABLE: Final = "GROWING_DEATHS"
MINUTE_VARIABLE: Final = "GROWING_MINUTE"
CALL_VARIABLE: Final = "GROWING_CALL"
SPREAD: Final = 0.5
"""Of the times of calls, as a sigma."""
BOUNDS: Final = Auto(least=2, most=8, lag=1.0, unreplicated=True)
TIMED: Final[tuple[tuple[object, tuple[str, ...]], ...]] = (
    (WatchDuty, ("every",)),
    (duty.AutoDuty, ("every",)),
    (moves.ReshardDuty, ("every",)),
    (moves, ("STANDS_STILL",)),
    (duty, ("POSTPONED",)),
    (rule, ("AFTER_FAILURES",)),
    (memory, ("BEFORE", "AFTER", "_LAGS_FOR")),
    (auto_look, ("FORECAST_FOR",)),
    (facts, ("WORK_OFF",)),
    (forecast, ("PAST",)),
    (sampling, ("SHORTEST", "LONGEST")),
    (samples, ("SHORTEST", "LONGEST")),
    (look, ("LONGEST",)),
    (runner, ("GRACE", "SHORTEST_RUN")),
)
"""What is as long as so many minutes."""
SOONER: Final[tuple[tuple[object, str, float], ...]] = (
    (rule, "BETWEEN", 12.0),
    (at_it, "ACTED", 6.0),
    (at_it, "BEGAN", 6.0),
)
"""What is awaited for fewer minutes than in life, where daemons begin and moves are made all the time."""
ARROWS: Final[dict[str, tuple[type, str, bool]]] = {
    "before its begin": (Resharding, "begin", False),
    "after its begin": (Resharding, "begin", True),
    "closing a shard": (GroupMove, "_seal", True),
    "in a group": (GroupMove, "_carry", True),
    "behind a group": (Resharding, "_note_moved", True),
    "at its end": (Resharding, "_arrive", False),
}
"""Where a process dies: before or after the call."""


FIRST: Final = "before its begin"
"""The arrow of each move: what was decided is kept, and nobody has begun it."""


def hasten(minute: float) -> None:
    """Let a minute be of so many seconds."""
    for owner, names in TIMED:
        for name in names:
            setattr(owner, name, getattr(owner, name) * minute / 60.0)
    for owner, name, minutes in SOONER:
        setattr(owner, name, minutes * minute)


def plant(folder: Path) -> None:
    """Let this process die at each arrow that a file of the folder names."""
    for arrow, (owner, name, is_after) in ARROWS.items():
        setattr(owner, name, _mortal(getattr(owner, name), folder / arrow, is_after=is_after))


def _mortal(call: Callable[..., Any], file: Path, *, is_after: bool) -> Callable[..., Any]:
    def die() -> None:
        with suppress(FileNotFoundError):
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    @wraps(call)
    def dying(*args: Any, **options: Any) -> Any:
        if not is_after:
            die()
        answer = call(*args, **options)
        if is_after:
            die()
        return answer

    return dying


def growing_worker(app: Lowkiq, name: str, history: Recorder, seconds: float) -> type[Worker]:
    """Declare the queue, whose handler notes what it is given, and waits for so many seconds in the mean."""
    app.observers.append(Acknowledged(history))
    rng, pause = random.Random(), threading.Event()

    @app.worker
    class Growing(Worker):
        queue_name = name
        shards_count = BOUNDS

        def perform(self, batch: Batch[Any]) -> None:
            for job_id, numbers in batch.items():
                history.write("begin", job_id, numbers, token=batch.token, repeated=batch.job(job_id).repeated)
                pause.wait(seconds * rng.lognormvariate(-(SPREAD**2) / 2, SPREAD))
                at = time.monotonic()
                outcome = "stale" if has_lost_its_lease(batch) else "done"
                history.write("end", job_id, at=at, outcome=outcome, token=batch.token)

    return Growing


if HISTORY_VARIABLE in os.environ:
    hasten(float(os.environ[MINUTE_VARIABLE]))
    plant(Path(os.environ[DEATHS_VARIABLE]))
    app = Lowkiq(Config.from_env(os.environ))
    worker = growing_worker(
        app,
        os.environ[QUEUE_VARIABLE],
        Recorder(Path(os.environ[HISTORY_VARIABLE])),
        float(os.environ[CALL_VARIABLE]),
    )
