"""A queue moves to other numbers of shards while it is pushed to, and daemons and movers are killed."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.chaos.moving.app import BAD
from tests.chaos.moving.course import Course, Size
from tests.kit.servers import Server
from tests.proof.history import Event, Terms, check

SIZE = Size(rate=300.0, ids=60, sleepers=1_200, kills=1)


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

    assert [] == course.judge().words


def test_the_judge_of_a_course_finds_each_fault() -> None:
    """What it does not find is not there: two hands, a loss, a wrong order, a morgue and sleepers that changed."""
    good = story(runs("a", [1, 2], [2, 3]))
    wrong = [
        (story([*runs("a", [1, 2, 3])[:1], *runs("a", [1, 2, 3], token=2)]), "P1"),
        (story(runs("a", [1], [3])), "P2"),
        (story([*runs("a", [1, 2]), *runs("a", [2, 3], repeated=False)]), "P2"),
        (story(runs("a", [1], [3], [2])), "P3"),
        (story(runs("a", [1, 2, 3], [1])), "P3"),
        (story(runs("a", [1, 2, 3]), dead=[]), "P2"),
        (story(runs("a", [1, 2, 3]), dead=[1, 1]), "P2"),
        (story(runs("a", [1, 2, 3]), left=[left("a", [2], "dead")]), "P2"),
        (story(runs("a", [1, 2, 3]), asleep=0), "P2"),
        (story(runs("a", [1, 2, 3]), asleep=2), "P2"),
        (story(runs("a", [1, 2, 3]), due=6.0), "P2"),
        (story(runs("a", [1, 2, 3]), left=[left("sleeper", [-1], "waiting", due=5.0)]), "P2"),
    ]

    assert [] == broken(good)
    assert [] == [(number, claim) for number, (events, claim) in enumerate(wrong) if claim not in broken(events)]


def broken(events: list[Event]) -> list[str]:
    """The claims that a course like that breaks."""
    verdict = check(events, Terms(looked=True, failing=BAD, retries=0, settling=1.0, acknowledged=True))
    return [claim for claim, found in verdict.violations.items() if found]


def story(
    handled: list[Event], *, dead: Sequence[int] = (1,), asleep: int = 1, due: float = 5.0, left: Sequence[Event] = ()
) -> list[Event]:
    """Three payloads of one id that are handled so, a bad one that fails, and one that sleeps until 5.0."""
    bad = f"{BAD}-b"
    return [
        *pushed("a", [1, 2, 3]),
        *pushed(bad, [1]),
        *pushed("sleeper", [1], due=5.0),
        *handled,
        Event(50.0, "begin", 9, bad, [1], token=9),
        Event(51.0, "end", 9, bad, token=9, outcome="failed"),
        *[Event(90.0, "left", id=bad, numbers=[number], outcome="dead") for number in dead],
        *[Event(90.0, "left", id="sleeper", numbers=[1], outcome="waiting", due=due)] * asleep,
        *left,
    ]


def left(job_id: str, numbers: list[int], outcome: str, due: float | None = None) -> Event:
    """One more that lies in the queue or in the morgue."""
    return Event(90.0, "left", id=job_id, numbers=numbers, outcome=outcome, due=due)


def pushed(job_id: str, numbers: list[int], due: float | None = None) -> list[Event]:
    """A push that was answered."""
    answered = Event(1.0, "push-end", 8, job_id, numbers, outcome="ok")
    return [Event(0.0, "push-begin", 8, job_id, numbers, due=due), answered]


def runs(job_id: str, *numbers: list[int], token: int = 1, repeated: bool = True) -> list[Event]:
    """One after the other, by one process."""
    found = []
    for at, each in enumerate(numbers):
        again = repeated and at > 0
        found.append(Event(2.0 + at + token / 10, "begin", token, job_id, each, token=token, repeated=again))
        found.append(Event(2.7 + at + token / 10, "end", token, job_id, token=token, outcome="done"))
    return found
