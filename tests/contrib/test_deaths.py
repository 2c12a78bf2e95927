"""A process is killed between any two steps: what committed takes effect once and in order, what did not never does."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda.contrib.outbox.outbox import SWEEP_EVERY
from lowkiq_lambda.testing import ManualClock
from tests.contrib.dying import JOBS, RELAY, REQUEST
from tests.contrib.shop import OrderShop
from tests.kit.deaths import outlive
from tests.kit.examples import mostly_nightly

ROOT: Final = Path(__file__).parents[2]


def die_behind(point: str, *arguments: str) -> None:
    """Run the process to its death."""
    program = [sys.executable, "-m", "tests.contrib.dying", point, *arguments]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)

    assert -signal.SIGKILL == ended.returncode, ended.stderr


@pytest.mark.parametrize("point", mostly_nightly([*REQUEST, *RELAY], REQUEST[-1], RELAY[0], RELAY[-1]))
def test_p2_a_kill_behind_any_step_loses_nothing_and_repeats_nothing(
    point: str, shop: OrderShop, server_url: str, sqlite_url: str, clock: ManualClock
) -> None:
    """Insert, commit, wake, read, push, delete, commit of delete: the next run of the schedule ends what was begun."""
    shop.app.schedules.tick()
    if point in RELAY:
        shop.push(*JOBS)
    die_behind(point, server_url, sqlite_url, shop.worker.queue_name)
    outlive(shop.app, clock, shop.outbox.worker)
    clock.advance(SWEEP_EVERY)

    shop.app.schedules.tick()
    shop.app.drain()
    # The job of a process that died runs alone, behind what is due.
    shop.app.drain()

    assert ({} if point == "insert" else {"a": [1, 3], "b": [2]}) == shop.payloads
    assert 0 == shop.rows
