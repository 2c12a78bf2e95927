"""A queue moves to other numbers of shards while it is pushed to, and daemons and movers are killed."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.moving.app import Handled
from tests.chaos.moving.course import Course, Size
from tests.chaos.moving.judge import Evidence, Sleeper, faults
from tests.kit.servers import Server

SIZE = Size(rate=300.0, ids=60, sleepers=1_200, kills=1)
ASLEEP = [Sleeper("sleeper", ((1, 1.0),), 5.0)]


@pytest.fixture
def course(server: Server, queue_name: str, tmp_path: Path) -> Iterator[Course]:
    """A queue with two daemons and two producers, one of which is frozen while the queue moves."""
    with Course(server, queue_name, tmp_path, SIZE, random.SystemRandom().randrange(2**32)) as made:
        yield made


@pytest.mark.nightly("test_replay moves a queue below a history in each check")
def test_e93_e94_a_queue_moves_whoever_dies_and_back(course: Course) -> None:
    """E-93, E-94, P1, P2, P3: from 5 to 12 shards, a part of the way to 3 and back, and to 3; and no push fails."""
    course.move(12)
    course.turn_round(3)
    course.move(3)
    course.finish()

    assert [] == faults(course.evidence())


def test_the_judge_of_a_course_finds_each_fault() -> None:
    """What it does not find is not there: two hands, a loss, a wrong order, a morgue and sleepers that changed."""
    good = Evidence({"a": 3, "bad-b": 1}, _handled([[1, 2], [2, 3]]), {"bad-b": [1]}, ASLEEP, ASLEEP)
    two_hands = [Handled([1, 2, 3], alone=False)]
    wrong = [
        good._replace(handled={**good.handled, "a": two_hands}),
        good._replace(handled=_handled([[1], [3]])),
        good._replace(handled={**good.handled, "a": [Handled([1, 2]), Handled([2, 3])]}),
        good._replace(handled=_handled([[1], [3], [2]])),
        good._replace(handled=_handled([[1, 2, 3], [1]])),
        good._replace(dead={}),
        good._replace(dead={"bad-b": [1, 1]}),
        good._replace(dead={"bad-b": [1], "a": [2]}),
        good._replace(asleep=[]),
        good._replace(asleep=ASLEEP * 2),
        good._replace(asleep=[ASLEEP[0]._replace(due_at=6.0)]),
    ]

    assert [] == faults(good)
    assert ["P1", "P2", "P2", "P3", "P3", "P2", "P2", "P2", "P2", "P2", "P2"] == [faults(one)[0][:2] for one in wrong]


def _handled(runs: list[list[int]]) -> dict[str, list[Handled]]:
    return {
        "a": [Handled(numbers, repeated=number > 0) for number, numbers in enumerate(runs)],
        "bad-b": [Handled([1])],
    }
