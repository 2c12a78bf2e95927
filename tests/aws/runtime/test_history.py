"""The history of a real repository, replayed by ten functions on ten shards that are killed again and again."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aws.runtime.fleet import SHARDS, Fleet
from tests.kit.apps import closing_app
from tests.kit.replay.history import final_state, history, written_state
from tests.kit.servers import Server
from tests.kit.stored import stored
from tests.kit.waiting import eventually
from tests.proof.history import Terms, check

KILLS = 10
FEWEST_KILLS = 6
LEASE_TTL = 6.0
"""Seconds, a sixth of which a call may take: with less a slow machine has errors of its own."""


@pytest.fixture
def fleet(server: Server, queue_name: str, tmp_path: Path) -> Iterator[Fleet]:
    """Environments that wait for their first events."""
    made = Fleet(server, queue_name, tmp_path, LEASE_TTL)
    with closing_app(made.app):
        yield made
        made.close()


@pytest.mark.nightly("daemons replay it in each check, and test_killed_visits kills functions")
def test_p1_p2_p3_ten_functions_killed_again_and_again_replay_a_history(fleet: Fleet) -> None:
    """What is left is exactly what git says; no file was in two hands at once, no order reversed, nothing is dead."""
    jobs, rng = history(), random.Random(1)
    fleet.begin_pushing(jobs, KILLS)
    kill_at = 0.0

    def is_done() -> bool:
        nonlocal kill_at
        fleet.tick(rng)
        if fleet.kills < KILLS and time.monotonic() >= kill_at and fleet.kill_one(rng):
            kill_at = time.monotonic() + rng.uniform(0.2, 0.6)
        return fleet.is_done()

    eventually(is_done, timeout=100.0)

    assert fleet.kills >= FEWEST_KILLS
    assert [] == fleet.errors
    events = fleet.history.read()
    assert [] == check(events, Terms(looked=True, acknowledged=True)).words
    assert final_state() == written_state(events)
    states = [stored(fleet.app.core.backend.client, shard) for shard in fleet.shards]  # type: ignore[arg-type]  # no Cluster
    assert SHARDS == len(states)
    for state in states:
        assert {} == state["morgue"] == state["trouble"] == state["errors"]
        assert 0 == state["counters"]["retried"]
