"""Processes that drain one queue with many batches at once, disturbed at random, and judged by what they noted."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.race.actors import Track
from tests.chaos.race.course import KINDS, Race
from tests.chaos.race.mutants import CHANGES
from tests.kit.examples import mostly_nightly
from tests.kit.servers import Server
from tests.kit.waiting import eventually

MakeRace = Callable[..., Race]
SEED = int(os.environ.get("LOWKIQ_TEST_SEED") or random.SystemRandom().randrange(2**32))
"""Of the faults and of what is pushed; a failure tells it."""
SECONDS = 4.0


@pytest.fixture
def make_race(server: Server, queue_name: str, tmp_path: Path) -> Iterator[MakeRace]:
    """Makes races of three processes, on the server that other tests use, too."""

    def make(kind: str, mutant: str = "") -> Race:
        return Race(Track(server.url, queue_name, tmp_path / "notes", kind, 2.0, mutant), server, 3, SEED)

    yield make
    server.admin.delete(*server.admin.keys(f"*{queue_name}*") or ["none"])


@pytest.mark.parametrize("kind", mostly_nightly(KINDS, "threads"))
def test_p1_p2_p3_hold_in_a_race(make_race: MakeRace, kind: str) -> None:
    """P1, P2, P3: no id beside itself, none out of order, nothing lost, and nothing again that was acknowledged."""
    with make_race(kind) as race:
        race.run(SECONDS)
        verdict = race.finish(timeout=120.0)

    assert [] == verdict.words, f"seed {SEED}, {race.harm}"
    assert [] == race.missing
    assert verdict.runs > verdict.most > 1


@pytest.mark.unverified("the engine is broken")
@pytest.mark.parametrize("mutant", mostly_nightly(CHANGES, next(iter(CHANGES))))
def test_a_race_finds_a_broken_engine(make_race: MakeRace, mutant: str) -> None:
    """The checker sees each of these faults: what it does not find is not there."""
    with make_race("threads", mutant) as race:

        def is_found() -> bool:
            race.run(1.0)
            return bool(race.judge().words)

        eventually(is_found, timeout=60.0, what=f"a finding with seed {SEED}")
