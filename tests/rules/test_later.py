"""Jobs that ask to go on later."""

import pickle
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Later, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import counters, left_behind, look
from tests.kit.workers import declare, jobs_of


@pytest.mark.parametrize(("delay", "waits"), [(30, 30.0), (timedelta(minutes=2), 120.0)])
def test_later_goes_on_from_the_last_cursor(
    app: Lowkiq, clock: ManualClock, queue_name: str, delay: float | timedelta, waits: float
) -> None:
    """J-12, J-15, J-34: a job may ask to go on later, from what it yielded last; that is no failure."""
    items = Items(6, once_behind(delay))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    began = clock.time()

    counts = app.drain()

    assert {"later": 1, "checkpointed": 1} == counts
    seen = look(app, worker, "a")
    assert seen is not None
    assert (-1, None) == (seen.retry_count, seen.error)
    assert waits == pytest.approx(seen.due_at - began, abs=0.1)
    clock.advance(waits)
    app.drain()
    assert ([None, 3], list(range(6))) == (items.cursors, items.of("a"))


def test_later_at_once_goes_behind_what_is_due(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-18: where the cursor has moved, a condition of the user's own stops the job without a delay."""
    items = Items(6, once_behind(0))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("ab"))
    clock.advance(1.0)

    assert {"later": 1, "checkpointed": 1, "done": 2} == app.drain()

    assert [("a", None), ("b", None), ("a", 3)] == [(run.id, run.cursor) for run in items.runs]


def once_behind(delay: float | timedelta) -> Callable[[BatchJob, int], None]:
    """At item 3, once, the database is behind."""
    asked = list[str]()

    def before(job: BatchJob, item: int) -> None:
        if item == 3 and not asked:
            asked.append(job.id)
            raise Later(delay, "the database is behind")

    return before


@pytest.mark.parametrize("kind", ["perform", "perform_job", "with a cursor", "middleware"])
def test_later_without_movement_waits_a_second(app: Lowkiq, clock: ManualClock, queue_name: str, kind: str) -> None:
    """Else it could spin. Any handler may raise it."""
    runs = list[float]()

    def ask(_self: object, _given: object, *_: object) -> None:
        runs.append(clock.time())
        if len(runs) < 3:
            raise Later(0)

    def iterating(self: Worker, job: BatchJob) -> Iterator[int]:
        if job.cursor is None:
            yield 1
        ask(self, job)
        yield 2

    def middleware(worker: object, batch: object, call_next: Callable[[], object]) -> object:
        ask(worker, batch)
        return call_next()

    handlers: dict[str, dict[str, Any]] = {
        "perform": {"perform": ask},
        "perform_job": {"perform_job": ask},
        "with a cursor": {"perform_job": iterating},
        "middleware": {},
    }
    if kind == "middleware":
        app.server_middlewares.append(middleware)
    worker = declare(app, queue_name, lambda _batch: None, **handlers[kind])
    worker.push_many(jobs_of("a"))

    for _ in range(4):
        app.drain()
        assert look(app, worker, "a") is None or -1 == app.operate(worker).waiting.fetch(["a"])[0].retry_count
        clock.advance(1.0)

    # With a cursor the first run moved it, so the second could follow at once.
    gaps = [later - sooner for sooner, later in pairwise(runs)]
    assert ([0.0, 1.0] if kind == "with a cursor" else [1.0, 1.0]) == [round(gap, 1) for gap in gaps]
    assert {} == left_behind(app, worker)


def nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    """The outcomes that there were."""
    return {outcome: n for outcome, n in counts.items() if n}


def test_a_run_that_came_no_further_is_no_checkpoint(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-33: a job that asks for time again and again gets nothing done, whatever it had done before."""

    def before(_job: BatchJob, item: int) -> None:
        if item == 3 and len(items.runs) < 4:
            raise Later(10)

    items = Items(6, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    counts = []
    for _ in range(4):
        counts.append(nonzero(app.drain()))
        clock.advance(10)

    assert [{"later": 1, "checkpointed": 1}, {"later": 1}, {"later": 1}, {"done": 1}] == counts
    assert 1 == counters(app, worker)["checkpointed"]


def test_movement_before_an_exit_counts_with_the_next_end(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: an exit leaves the retry_count as it was, so what it had come further is taken note of later."""

    def before(_job: BatchJob, item: int) -> None:
        if item == 1 and len(items.runs) == 1:
            raise Broken("item 1 is broken")
        if item == 3 and len(items.runs) == 2:
            raise SystemExit
        if item == 3 and len(items.runs) == 3:
            raise Later(10)

    items = Items(6, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(20)
    with pytest.raises(SystemExit):
        app.drain()
    (returned,) = app.operate(worker).waiting.fetch(["a"])
    counts = app.drain()
    (put_off,) = app.operate(worker).waiting.fetch(["a"])

    assert (0, -1, {"later": 1, "checkpointed": 1}) == (returned.retry_count, put_off.retry_count, nonzero(counts))
    assert [None, 1, 3] == items.cursors


def test_a_reason_may_be_any_text(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P2: the name of a file may hold what cannot be stored; the job goes on all the same."""
    asked = list[str]()

    def before(_job: BatchJob, item: int) -> None:
        if item == 3 and not asked:
            asked.append("once")
            raise Later(5, "waits for \udcff.csv")

    items = Items(6, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    app.drain()
    (job,) = app.operate(worker).waiting.fetch(["a"])
    clock.advance(5)
    app.drain()

    assert job.progress is not None
    assert (r"waits for \udcff.csv", [None, 3], ["a"]) == (job.progress.reason, items.cursors, items.ended)


class ImpossibleLater(Later):
    """Asks for what cannot be."""

    def __init__(self, **fields: object) -> None:
        """As `Later`, but for these fields."""
        super().__init__(1)
        vars(self).update(fields)


class LaterWithoutInit(Later):
    """Does not call what it inherits."""

    def __init__(self) -> None:
        """With nothing."""


@pytest.mark.parametrize(
    "later", [ImpossibleLater(seconds=10**400), ImpossibleLater(seconds=float("inf")), LaterWithoutInit()]
)
@pytest.mark.parametrize("kind", ["perform", "perform_job", "with a cursor"])
def test_a_later_that_cannot_be_is_the_failure_of_its_job(
    app: Lowkiq, queue_name: str, later: Later, kind: str
) -> None:
    """P7: it ends no visit, and the cursor is kept."""

    def ask(*_given: object) -> None:
        raise later

    def iterating(_self: Worker, _job: BatchJob) -> Iterator[int]:
        yield 7
        raise later

    fields: dict[str, Any] = {"perform_job": ask if kind == "perform_job" else iterating}
    worker = declare(app, queue_name, ask, **({} if kind == "perform" else fields))
    worker.push_many(jobs_of("a"))

    assert 1 == app.drain()["retried"]

    (job,) = app.operate(worker).waiting.fetch(["a"])
    assert 0 == job.retry_count
    assert (7 if kind == "with a cursor" else None) == (job.progress and job.progress.cursor)


@pytest.mark.parametrize("later", [ImpossibleLater(seconds=10**400), LaterWithoutInit()])
def test_p6_a_later_that_cannot_be_costs_the_others_of_its_batch_no_retry(
    app: Lowkiq, queue_name: str, later: Later
) -> None:
    """P6: each of the batch runs alone then, and only the one that raises it has failed."""

    def perform(batch: Batch) -> None:
        raise_if("bad" in batch, later)

    worker = declare(app, queue_name, perform, batch_size=10)
    worker.push_many(jobs_of(["a", "bad", "b"]))

    counts = app.drain()

    assert (2, 1) == (counts["done"], counts["retried"])
    assert ["bad"] == [job.id for job in app.operate(worker).waiting.fetch(["a", "b", "bad"])]


def test_a_reason_of_any_kind_and_length_is_cut(app: Lowkiq, queue_name: str) -> None:
    """It is for people, and is kept with each save."""
    items = Items(2, lambda _job, item: raise_if(item == 1, ImpossibleLater(reason=b"\xe4" * 100_000)))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))

    app.drain()

    (job,) = app.operate(worker).waiting.fetch(["a"])
    assert job.progress is not None
    assert (200, -1) == (len(job.progress.reason), job.retry_count)


def raise_if(condition: bool, error: Exception) -> None:  # noqa: FBT001 - a helper of one test
    """Raise it, or not."""
    if condition:
        raise error


def test_later_is_raised_across_processes() -> None:
    """A pool of processes hands exceptions over by pickle."""
    later = pickle.loads(pickle.dumps(Later(30, "the database is behind")))  # noqa: S301 - it is our own

    assert (30, "the database is behind", "the database is behind") == (later.seconds, later.reason, str(later))
