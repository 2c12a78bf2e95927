"""A limiter inside a handler: what comes of each event."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lowkiq_lambda import (
    Batch,
    BatchJob,
    Bucket,
    Concurrent,
    DeclarationError,
    Grant,
    Leaky,
    Lowkiq,
    Rate,
    Refusal,
    Worker,
)
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.limiting import LimitedRuns, into_period, not_called
from tests.kit.workers import declare, jobs_of


def test_a_refused_job_goes_on_when_it_is_its_turn(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Refused: outcome `later`, no failure and no retry_count; it comes back when a point is free, and why says so."""
    limiter = app.limiter("stripe", Rate(2, per=10))
    runs = LimitedRuns(app, queue_name, lambda _: limiter.acquire(queue_name))

    assert {"done": 2, "later": 3} == runs.drain("abcde")
    assert [10.0, 10.0, 20.0] == [pytest.approx(runs.due_in(job_id), abs=2.0) for job_id in "cde"]
    why = app.operate(runs.worker).explain("e")
    assert (f"limit stripe/{queue_name}, number 3 in line", -1.0) == (why.put_off, why.retry_count)
    clock.advance(11.0)
    assert {"done": 2} == runs.drain()
    clock.advance(11.0)
    assert {"done": 1} == runs.drain()
    assert list("abcde") == runs.ran


def test_a_generator_keeps_its_cursor(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Behind a cursor it goes on from there; before the first yield it waits for a second at least."""
    limiter, items = app.limiter(queue_name, Bucket(2, per=1)), list[int]()

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        for item in range(job.cursor or 0, 4):
            limiter.acquire()
            items.append(item)
            yield item + 1

    worker = declare(app, queue_name, not_called, perform_job=perform_job)
    into_period(clock, 1.0, 0.1)
    limiter.acquire(points=2)
    worker.push("a")
    assert {"later": 1} == app.drain()
    (job,) = app.operate(worker).waiting.fetch(["a"])
    assert 1.0 == pytest.approx(job.due_at - clock.time(), abs=0.01)
    clock.advance(1.1)
    assert {"later": 1, "checkpointed": 1} == app.drain()
    clock.advance(1.1)
    assert {"done": 1} == app.drain()
    assert [0, 1, 2, 3] == items


def test_a_late_job_keeps_its_ticket_for_a_minute(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It is served before a newcomer as long as its ticket stands; a minute after its moment that lapses."""
    limiter = app.limiter(queue_name, Rate(1, per=10))
    runs = LimitedRuns(app, queue_name, lambda _: limiter.acquire())
    runs.drain("ab")
    assert 1 == limiter.explain().waiting
    clock.advance(40.0)
    # Somebody who came later stands behind the ticket, though a point is free.
    assert not limiter.try_acquire()
    assert {"done": 1} == runs.drain()

    runs.drain("c")
    app.operate(runs.worker).waiting.delete(["c"])
    clock.advance(10.0 + 59.0)
    assert not limiter.try_acquire()
    clock.advance(2.0)
    assert isinstance(limiter.try_acquire(), Grant)


def test_limits_of_the_code_change_by_the_next_call(make_app: MakeApp, queue_name: str) -> None:
    """What is spent stays, and two versions with different numbers each keep their own."""
    older, newer = (make_app().limiter(queue_name, Rate(most, per=10)) for most in (3, 5))
    for _ in range(3):
        assert older.try_acquire()

    assert not older.try_acquire()
    assert [True, True, False] == [isinstance(newer.try_acquire(), Grant) for _ in range(3)]


def test_an_operator_sets_resets_and_explains(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """What is set counts in all processes within a second, for all keys, until it is reset."""
    here, there = (make_app().limiter(queue_name, Rate(5, per=10)) for _ in range(2))
    assert there.try_acquire("a")
    here.set(Rate(1, per=10))
    clock.advance(1.0)

    assert not there.try_acquire("a")
    view = there.explain("a")
    assert (Rate(1, per=10), True, 0, 0, 1) == (view.limit, view.is_set, view.left, view.waiting, view.put_off)
    assert f"{queue_name}/a: Rate(ids=1, per=10), set by an operator. 0 left" in str(view)
    with pytest.raises(DeclarationError, match="is a Rate"):
        here.set(Bucket(1, per=10))
    here.reset()
    clock.advance(1.0)
    assert there.try_acquire("a")


def test_no_ticket_waits_for_points_above_what_an_operator_has_set(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """They would never be granted: the job looks again once a period, and holds up nobody."""
    limiter = app.limiter(queue_name, Rate(10, per=30))
    runs = LimitedRuns(app, queue_name, lambda _: limiter.acquire(points=4))
    limiter.set(Rate(3, per=30))

    assert {"later": 1} == runs.drain("a")

    assert 30.0 == pytest.approx(runs.due_in("a"), abs=0.1)
    assert 0 == limiter.explain().waiting
    limiter.reset()
    clock.advance(31.0)
    assert {"done": 1} == runs.drain()


def test_points_are_spent_and_given_back(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """More may be used than was asked for, or less: what is left is right, and never more than the limit."""
    for limit in (Rate(10, per=60), Leaky(capacity=10, per=60), Bucket(10, per=60)):
        limiter = app.limiter(f"{queue_name}-{type(limit).__name__}", limit)
        into_period(clock, 60.0, 1.0)
        grant = limiter.acquire(points=4)
        # A drip is counted from the last moment at which the grant may be used.
        clock.advance(1.1)
        grant.spend(3)
        assert (7, 3) == (grant.points, limiter.explain().left)
        grant.give_back(2)
        assert (5, 5) == (grant.points, limiter.explain().left)
        grant.give_back()
        assert (0, 10) == (grant.points, limiter.explain().left)
        with pytest.raises(ValueError, match="has 0 points"):
            grant.give_back(1)
        limiter.acquire(points=10).spend(30)
        assert not limiter.try_acquire()


def test_points_that_no_limit_remembers_are_given_back_in_vain(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """A grant of an earlier time gives nothing to the present one."""
    for limit in (Rate(10, per=10), Leaky(capacity=10, per=10), Bucket(10, per=10)):
        limiter = app.limiter(f"{queue_name}-{type(limit).__name__}", limit)
        old = limiter.acquire(points=5)
        clock.advance(25.0)
        limiter.acquire(points=10)

        old.give_back()

        assert 0 == limiter.explain().left


def test_a_place_is_given_back_at_the_end_of_the_block(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Also if the block raises; without a block it ends after `hold` seconds, or when it is given back."""
    limiter = app.limiter(queue_name, Concurrent(2, hold=30))
    seen: list[tuple[bool, bool]] = []
    places: list[Grant] = []

    def use_both() -> None:
        with limiter.acquire() as place, limiter.acquire():
            places.append(place)
            seen.append((place.is_held, bool(limiter.try_acquire())))
            raise KeyError

    with pytest.raises(KeyError):
        use_both()
    assert [(True, False)] == seen
    assert not places[0].is_held
    first, second = limiter.acquire(), limiter.acquire()
    first.give_back()
    assert 1 == limiter.explain().left
    clock.advance(31.0)
    assert not second.is_held
    assert 2 == limiter.explain().left
    with pytest.raises(ValueError, match="A place is one"):
        second.spend(1)


def test_a_batch_takes_as_many_points_as_it_has_ids(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Or each id asks by itself, and those that are refused are put off."""
    whole, single = app.limiter(f"{queue_name}-1", Rate(3, per=10)), app.limiter(f"{queue_name}-2", Rate(3, per=10))
    refused: list[Refusal] = []

    def each(batch: Batch) -> None:
        whole.acquire(points=len(batch))
        for job_id in batch:
            if isinstance(answer := single.try_acquire(id=job_id), Refusal):
                refused.append(answer)
                batch.put_off(job_id, answer.later())

    worker = declare(app, queue_name, each, batch_size=2)
    worker.push_many(jobs_of("ab"))
    assert {"done": 2} == app.drain()
    worker.push_many(jobs_of("cd"))
    assert {"later": 2} == app.drain()
    assert 1 == whole.explain().waiting
    clock.advance(11.0)
    for _ in range(2):
        single.acquire()
    assert {"done": 1, "later": 1} == app.drain()
    assert [(1, False)] == [(answer.position, bool(answer)) for answer in refused]
    assert 10.0 == pytest.approx(refused[0].seconds, abs=1.0)


def test_a_limiter_is_declared_once(app: Lowkiq, queue_name: str) -> None:
    """Its name finds it; another limit under that name, or none at all, is refused."""
    limiter = app.limiter(queue_name, Rate(1, per=1))

    assert limiter is app.limiter(queue_name) is app.limiter(queue_name, Rate(1, per=1))
    for name, limit in ((queue_name, Rate(2, per=1)), ("unknown", None), ("", Rate(1, per=1)), ("x" * 201, Rate(1, 1))):
        with pytest.raises(DeclarationError):
            app.limiter(name, limit)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        (Leaky, (0, 1)),
        (Leaky, (1, 0.5)),
        (Bucket, (True, 1)),
        (Bucket, (1, float("nan"))),
        (Concurrent, (100_001, 1)),
        (Concurrent, (1, 0)),
        (Concurrent, (1.5, 1)),
    ],
)
def test_a_limit_that_cannot_work_is_refused(kind: Callable[..., object], numbers: tuple[Any, Any]) -> None:
    """At the declaration, by a sentence that names the field."""
    with pytest.raises(DeclarationError, match=r"of a (Leaky|Bucket|Concurrent) must be"):
        kind(*numbers)
