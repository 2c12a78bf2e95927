"""Processes that are killed in the middle of a tick: each planned time is pushed once all the same."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.kit.apps import close_app
from tests.kit.firing import NOON
from tests.kit.servers import Server
from tests.schedules.ticking import ticking_app

ROOT: Final = Path(__file__).parents[2]
DEATHS: Final = [(number, answered) for number in (1, 2, 3, 9) for answered in ("unsent", "answered")]
"""At which message to Redis a process dies: before it looks, before it fires, before it fires again, and later."""


@pytest.mark.timeout(300)
def test_x4_each_planned_time_is_pushed_once_by_processes_that_die(server: Server, queue_name: str) -> None:
    """X-4, C-6: four at a time are killed at each arrow of a tick; what they began the next one ends, or finds done."""
    began_at = time.monotonic()
    app, worker = ticking_app(server.url, queue_name, began_at)
    app.schedules.tick()
    first = app.operate(worker)

    def live(death: tuple[int, str]) -> int:
        arguments = [server.url, queue_name, str(began_at), *map(str, death)]
        command = [sys.executable, "-m", "tests.schedules.ticking", *arguments]
        return subprocess.run(command, cwd=ROOT, check=False).returncode

    with ThreadPoolExecutor(4) as pool:
        codes = [*pool.map(live, DEATHS)]
    assert [-signal.SIGKILL] * len(DEATHS) == codes
    last = app.schedules.tick()
    while last.next_in == 0.0:
        last = app.schedules.tick()

    (job,) = first.waiting.fetch(["poll"])
    scores = [payload.score for payload in job.payloads]
    planned = [scores[0] + number for number in range(len(scores))]
    assert planned == scores
    assert len(scores) > len(DEATHS)
    assert NOON < scores[0]
    close_app(app)
