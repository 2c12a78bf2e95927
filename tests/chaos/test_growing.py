"""A queue gets the shards that it lacks while it is pushed to, and the daemons that make them are killed."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.growing.course import GROWTHS, Growth, GrowthCourse
from tests.kit.servers import Server

BRIEF = Growth(minute=0.6, sleepers=200, kills=2, excess=1.5)
FULL = Growth()
WRONG = 0.25
"""By so much of what came the line may be wrong, or by so many seconds of a busy machine."""
NOISE = 0.03


@pytest.fixture
def course(request: pytest.FixtureRequest, server: Server, queue_name: str, tmp_path: Path) -> Iterator[GrowthCourse]:
    """A queue of two shards with two daemons, of the size that the test names."""
    seed = random.SystemRandom().randrange(2**32)
    with GrowthCourse(server, queue_name, tmp_path, request.param, seed) as made:
        yield made


@pytest.mark.parametrize("course", [BRIEF], indirect=True)
def test_shards_are_made_whoever_dies(course: GrowthCourse) -> None:
    """E-93, P1, P2, P3: within seconds, as minutes are short; two movers die, and the move is told once."""
    course.push(2)
    course.grow(8)
    course.finish()

    assert ([], 2) == (course.judge().words, course.daemons.killed)
    assert ["2 → 8 shards"] == [line.partition(":")[0] for line in course.lines]


@pytest.mark.nightly("shards are made below a shorter load in each check")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("course", [FULL], indirect=True)
def test_shards_are_made_twice_and_waits_are_as_expected(course: GrowthCourse) -> None:
    """E-93, P1, P2, P3: 2 → 4 → 8 whoever dies; with the load of the line the waits are what it said."""
    expected, came = [], []
    for shards, past in GROWTHS:
        course.push(shards // 2, whole_minutes=True)
        course.grow(shards)
        expected.append(course.expected(shards)[1])
        course.settle()
        came.append(course.measure(*past))
    course.finish()

    assert ([], 2 * FULL.kills) == (course.judge().words, course.daemons.killed)
    assert ["4 → 8 shards", "2 → 4 shards"] == [line.partition(":")[0] for line in course.lines]
    assert expected == [pytest.approx(p95, rel=WRONG, abs=NOISE) for p95 in came]
