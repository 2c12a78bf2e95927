"""What a course has broken of what is promised, by what handlers have noted and what is left in the queue."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.chaos.moving.app import BAD, Handled
from tests.kit.order import is_in_order


class Sleeper(NamedTuple):
    """A job that is due long after the course."""

    id: str
    payloads: tuple[tuple[object, float], ...]
    due_at: float


class Evidence(NamedTuple):
    """`last`: of each id the number of its last payload. `dead`: payloads in the morgue, by id."""

    last: Mapping[str, int]
    handled: Mapping[str, Sequence[Handled]]
    dead: Mapping[str, Sequence[object]]
    put_to_sleep: Sequence[Sleeper]
    asleep: Sequence[Sleeper]


def faults(found: Evidence) -> list[str]:
    """A sentence for each."""
    return [
        *(fault for job_id, last in found.last.items() for fault in _of_id(job_id, last, found.handled[job_id])),
        *_of_the_morgue(found),
        *_of_sleepers(found),
    ]


def _of_id(job_id: str, last: int, handled: Sequence[Handled]) -> Iterator[str]:
    runs = [one.numbers for one in handled]
    numbers = {number for run in runs for number in run}
    if not all(one.alone for one in handled):
        yield f"P1: {job_id} was in two hands at once"
    if lost := {*range(1, last + 1)} - numbers:
        yield f"P2: payloads of {job_id} were not handled: {sorted(lost)[:20]}"
    elif not job_id.startswith(BAD) and (again := _settled_before(handled)):
        yield f"P2: payloads of {job_id} came again that were done: {again[:20]}"
    elif not job_id.startswith(BAD) and not (is_in_order(runs) and runs[-1][-1] == last):
        yield f"P3: payloads of {job_id} came in the order {runs[-20:]}"


def _settled_before(handled: Sequence[Handled]) -> list[int]:
    """What was handled twice though no death was in between: a copy of what was done."""
    seen: set[int] = set()
    again: list[int] = []
    for one in handled:
        if not one.repeated:
            again += seen & {*one.numbers}
        seen |= {*one.numbers}
    return again


def _of_the_morgue(found: Evidence) -> Iterator[str]:
    """Each payload of a bad id is there once, and no other."""
    expected = {job_id: list(range(1, last + 1)) for job_id, last in found.last.items() if job_id.startswith(BAD)}
    for job_id in {*found.dead, *expected}:
        if expected.get(job_id) != found.dead.get(job_id):
            yield f"P2: the morgue has {found.dead.get(job_id)} of {job_id}, not {expected.get(job_id)}"


def _of_sleepers(found: Evidence) -> Iterator[str]:
    expected, there = set(found.put_to_sleep), set(found.asleep)
    if expected != there or len(expected) != len(found.asleep):
        changed = sorted(expected ^ there)[:10]
        yield f"P2: {len(found.asleep)} jobs sleep that were {len(expected)}; not as they were: {changed}"
