"""What a push, a worker and a schedule entry may say of an expiry, and how what cannot be is refused."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lowkiq_lambda import DeclarationError, Job, JobError, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.expiring import expiries
from tests.kit.handlers import Notes
from tests.kit.workers import declare

YEAR = 366 * 86_400


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"expires_in": 0.5}, "expires_in: must be seconds from now, at least 1, or a timedelta, not 0.5"),
        ({"expires_in": -5}, "expires_in: must be seconds from now, at least 1, or a timedelta, not -5"),
        ({"expires_in": "600"}, "expires_in: must be seconds from now, at least 1, or a timedelta, not '600'"),
        ({"expires_in": True}, "expires_in: must be seconds from now, at least 1, or a timedelta, not True"),
        ({"expires_in": float("nan")}, "expires_in: must be seconds from now, at least 1, or a timedelta, not nan"),
        ({"expires_in": timedelta(milliseconds=5)}, "expires_in: must be seconds from now, at least 1, or a timedelta"),
        ({"expires_in": timedelta.max}, "expires_in: lies beyond the year 9999"),
        ({"expires_in": 252_500_000_000.0}, "expires_in: lies beyond the year 9999"),
        ({"expires_at": 600}, "expires_at: 600 lies before 2001: it is an absolute time in Unix seconds; for seconds "),
        ({"expires_at": datetime(2030, 1, 1)}, "expires_at: a datetime needs a time zone"),  # noqa: DTZ001 - wrong on purpose
        ({"expires_at": "2030-01-01"}, "expires_at: must be Unix seconds or an aware datetime, not '2030-01-01'"),
        ({"expires_at": 2e12}, "expires_at: 2000000000000.0 looks like milliseconds: give seconds"),
        ({"expires_in": 60, "expires_at": 1.9e9}, "expires_in: give expires_at (a time) or expires_in (from when the "),
        ({"expires_at": 1.9e9, "due_at": 1.9e9 + 1}, "expires_at: would expire before it is due"),
        ({"expires_at": datetime(2027, 1, 15, 9, tzinfo=UTC), "delay": 3_601}, "expires_at: would expire before it is"),
        ({"expire_in": 60}, "expire_in: no such field: did you mean expires_in?"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    app: Lowkiq, queue_name: str, fields: dict[str, Any], why: str
) -> None:
    """With the position and the field, as for other fields."""
    worker = declare(app, queue_name, Notes())
    with pytest.raises(JobError, match=f"^job 1: {re.escape(why)}"):
        worker.push_many([{"id": "a", "expires_in": 60}, {"id": "b", **fields}])
    assert {} == expiries(app, worker)


def test_each_form_says_the_same(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A dict, a Job, the options of `push`; a number, a timedelta, a datetime."""
    worker = declare(app, queue_name, Notes())
    at = clock.time() + 3_600
    worker.push_many(
        [
            {"id": 1, "expires_in": 3_600},
            Job("2", expires_in=timedelta(hours=1)),
            Job("3", expires_at=datetime.fromtimestamp(at, UTC)),
            {"id": 4, "delay": 1_800, "expires_in": 1_800, "headers": {"trace": "1"}, "key": "k"},
            {"id": 5, "due_at": at - 10_000, "expires_in": 3_600},
        ]
    )
    worker.push("6", None, expires_at=at)
    worker.push("7", None, expires_in=None, expires_at=None)

    assert [at] * 6 == [*expiries(app, worker).values()]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"expires_in": 0}, "expires_in must be seconds, at least 1, or a timedelta, not 0"),
        ({"expires_in": "600"}, "expires_in must be seconds, at least 1, or a timedelta, not '600'"),
        (
            {"retry_for": timedelta(0)},
            "retry_for must be seconds, at least 1, or a timedelta, not datetime.timedelta(0)",
        ),
        ({"retry_for": float("inf")}, "retry_for must be seconds, at least 1, or a timedelta, not inf"),
        ({"max_run_time": -1}, "max_run_time must be seconds, at least 0.001, or a timedelta, not -1"),
        ({"max_run_time": True}, "max_run_time must be seconds, at least 0.001, or a timedelta, not True"),
        ({"max_run_items": 10}, "max_run_items is for a perform_job that yields a cursor"),
        ({"max_run_items": 0}, "max_run_items must be a whole number from 1 to 9,007,199,254,740,992, not 0"),
        ({"expired": "drop"}, "expired must be one of discard, kill, not 'drop'"),
    ],
)
def test_a_worker_that_cannot_be_is_refused(app: Lowkiq, queue_name: str, fields: dict[str, Any], why: str) -> None:
    """At the declaration."""
    with pytest.raises(DeclarationError, match=re.escape(f"Noting.{why}")):
        declare(app, queue_name, Notes(), **fields)


def test_fields_are_inherited_and_a_function_has_them_as_options(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """As all fields of a worker are."""
    parent = declare(app, queue_name, Notes(), expires_in=60, retry_for=timedelta(hours=1), max_run_time=5)
    child: type[Worker] = app.worker(type("Child", (parent,), {"queue_name": f"{queue_name}-2"}))
    function = app.worker(queue_name=f"{queue_name}-3", expires_in=timedelta(minutes=1), expired="kill")(print)
    for worker in (child, function.worker):
        worker.push_many([{"id": "a"}])
        assert [clock.time() + 60] == [*expiries(app, worker).values()]
    assert (timedelta(hours=1), 5) == (child.retry_for, child.max_run_time)


def test_an_entry_of_a_schedule_says_it_for_its_jobs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """From when the job starts; else the worker does."""
    worker = declare(app, queue_name, Notes(), expires_in=600)
    app.every(3_600, worker, id="own", expires_in=timedelta(minutes=1))
    app.every(3_600, worker, id="the worker's")
    app.schedules.tick()
    clock.advance(3_600)
    app.schedules.tick()
    planned = clock.time() // 3_600 * 3_600

    assert {planned + 60, planned + 600} == {*expiries(app, worker).values()}
    clock.advance(120)
    assert {"expired": 1, "done": 1} == app.drain()


@pytest.mark.parametrize("expires_in", [0, -5, "60", YEAR + 1, True])
def test_an_entry_that_cannot_be_is_refused(app: Lowkiq, queue_name: str, expires_in: Any) -> None:
    """With its name."""
    worker = declare(app, queue_name, Notes())
    with pytest.raises(DeclarationError, match=r"Entry 'poll' of '.*': expires_in must be "):
        app.every(3_600, worker, id="poll", expires_in=expires_in)


def test_an_entry_of_run_time_keeps_it(app: Lowkiq, queue_name: str) -> None:
    """As its other options."""
    worker = declare(app, queue_name, Notes())
    app.schedules.put("poll", worker, id="poll", every=3_600, expires_in=60)
    (view,) = app.schedules.all(worker)
    assert 60 == (view.entry and view.entry.expires_in)


def test_a_firing_that_joins_a_payload_without_one_has_none(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """As a push that does."""
    worker = declare(app, queue_name, Notes())
    app.every(3_600, worker, id="poll", payload=1, expires_in=60)
    app.schedules.tick()
    worker.push("poll", 1)
    clock.advance(3_600)
    app.schedules.tick()

    assert {} == expiries(app, worker)
