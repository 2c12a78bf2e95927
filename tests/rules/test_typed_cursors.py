"""Cursors of types that JSON lacks: each comes back as it was, over stops, deaths, moves and versions."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda import BatchJob, CursorError, Lowkiq, Worker
from lowkiq_lambda.engine.iteration import Iteration, dump_cursor, load_cursor
from lowkiq_lambda.iterate import nested, sequence
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.testing import ManualClock, run_through
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

BERLIN = ZoneInfo("Europe/Berlin")
CURSORS: list[Any] = [
    UUID("7d444840-9dc0-11d1-b245-5ffdce74fad2"),
    datetime(2026, 3, 29, 2, 30),  # noqa: DTZ001 - without a zone, as a database has them
    datetime(2026, 3, 29, 2, 30, 0, 7, tzinfo=UTC),
    date(2026, 3, 29),
    Decimal("1.10"),
    b"\x00\xff",
    [1, {"at": [UUID(int=1), date(2026, 1, 1)]}],
]
VALUES = (
    st.uuids()
    | st.datetimes()
    | st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=st.timezones())  # noqa: DTZ001 - the zone comes with it
    | st.dates()
    | st.decimals(allow_nan=False)
    | st.binary(max_size=20)
    | st.text(max_size=3)
    | st.integers(-9, 9)
    | st.none()
)


def in_order(loop: Any) -> Any:
    """The instant of an aware datetime, and else the value."""
    if isinstance(loop, datetime):
        return (loop.utcoffset() is None, loop.astimezone(UTC) if loop.utcoffset() is not None else loop)
    return loop


@given(st.lists(VALUES, max_size=4))
def test_each_value_comes_back_at_any_depth(values: list[Any]) -> None:
    """As the type that it was, an aware datetime as the same instant; and its bytes stay, so it has not moved."""
    dumped = dump_cursor({"at": values, "deep": [values]})
    back = load_cursor(dumped)

    assert (
        [in_order(value) for value in values]
        == [in_order(value) for value in back["at"]]
        == [in_order(value) for value in back["deep"][0]]
    )
    assert [*map(type, values)] == [*map(type, back["at"])]
    assert dumped == dump_cursor(back)


def test_an_hour_that_a_clock_shows_twice_is_two_times() -> None:
    """With a zone they are two instants, and without one the fold tells them apart: none becomes the other."""
    twice = [datetime(2026, 10, 25, 2, 30, fold=fold) for fold in (0, 1)]  # noqa: DTZ001 - the hour itself
    aware = [one.replace(tzinfo=BERLIN) for one in twice]

    assert [0, 1] == [load_cursor(dump_cursor(one)).fold for one in twice]
    assert [0, 1] == [load_cursor(dump_cursor(one)).hour for one in aware]
    assert 4 == len({dump_cursor(one) for one in [*twice, *aware]})


def test_one_instant_is_one_cursor() -> None:
    """`moved` compares bytes: a driver may give another zone for the same time, and 0 microseconds are written."""
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)

    assert dump_cursor(at) == dump_cursor(at.astimezone(BERLIN))
    assert b'{"v":"2026-07-01T12:00:00.000000+00:00","~":"datetime"}' == dump_cursor(at)


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        ({"at": [{"~": 1}]}, r'at \.at\[0\]: the key "~" marks a value of another type'),
        ([Decimal("NaN")], r"at \[0\]: Decimal\('NaN'\) does not come back as it was"),
        ({"a": Decimal("sNaN")}, r"at \.a: Decimal\('sNaN'\) does not"),
        (
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
            r"datetime\.datetime\(9999.*does not come back as it was",
        ),
        ([UUID(int=1), time(1)], r"at \[1\]: JSON has no form for time"),
        ([UUID(int=1), {1, 2}], r"at \[1\]: JSON has no form for set"),
        ([UUID(int=1), float("inf")], r"at \[1\]: JSON has no form for inf"),
    ],
)
def test_other_values_are_refused_with_their_path(cursor: Any, why: str) -> None:
    """J-6: of nothing else is guessed what it was."""
    with pytest.raises(CursorError, match=f"The cursor cannot be kept: {why}"):
        dump_cursor(cursor)


@pytest.mark.parametrize(
    "kept",
    [b'{"~":5}', b'{"v":"x","~":"uuid"}', b'{"v":1,"~":"date"}', b'["~"]', b'{"v":"a","~":["b"]}', b'{"~":"set"}'],
)
def test_a_cursor_that_only_looks_like_one_is_handed_over(kept: bytes) -> None:
    """What was kept before there were types is still read, whatever keys it has."""
    assert msgspec.json.decode(kept) == Iteration(JobProgress(kept)).cursor


def yielding(cursors: list[Any], seen: list[Any]) -> Any:
    """A `perform_job` of two runs: each is shown its cursor, the first yields each of the cursors and is stopped."""

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        seen.append(job.cursor)
        if job.cursor is None:
            yield from cursors

    return perform_job


@pytest.mark.parametrize("cursor", CURSORS, ids=repr)
def test_a_stop_keeps_the_type(app: Lowkiq, clock: ManualClock, queue_name: str, cursor: Any) -> None:
    """It goes through Redis with the outcome of the run."""
    seen: list[Any] = []
    worker = declare(app, queue_name, Notes(), perform_job=yielding([cursor], seen), max_run_items=1)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(10)
    app.drain()

    assert [None, cursor] == seen
    assert type(cursor) is type(seen[1])


def test_a_death_after_a_checkpoint_keeps_the_types(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """J-44: the next holder goes on with what the last one saved before it died."""
    app, seen = make_app(settle_interval=0.0), list[Any]()
    mortal = Mortal(app)

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        seen.append(job.cursor)
        if job.cursor is None:
            yield CURSORS
            mortal.die()
            yield "never saved"

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    worker.push_many(jobs_of("a"))
    died = mortal.drain()
    outlive(app, clock, worker)
    counts = app.drain()

    assert (None, 1, [None, CURSORS]) == (died, counts["done"], seen)


def test_a_move_to_other_shards_keeps_the_types(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """P3: started jobs move with their progress, byte by byte."""
    old, new, seen = make_app(), make_app(), list[Any]()
    fields = {"perform_job": yielding([CURSORS], seen), "max_run_items": 1, "resume_in": 30}
    worker = declare(old, queue_name, Notes(), shards_count=2, **fields)
    worker.push_many(jobs_of("a"))
    old.drain()
    old.operate(worker).reshard(to=3)
    clock.advance(60)
    declare(new, queue_name, Notes(), shards_count=3, **fields)
    new.drain()

    assert [None, CURSORS] == seen


def test_an_upgrade_is_given_types_and_may_return_others(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """An old text becomes a time, and a time something else."""
    seen: list[Any] = []
    fields: dict[str, Any] = {
        "perform_job": yielding([CURSORS[0], "2026-07-01"], seen),
        "max_run_items": 2,
        "resume_in": 5,
        "upgrade_cursor": lambda _self, cursor, _version: [date.fromisoformat(cursor)],
    }
    worker = declare(app, queue_name, Notes(), **fields)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(10)
    worker.cursor_version = 2
    app.drain()

    assert [None, [date(2026, 7, 1)]] == seen


def test_loops_in_loops_know_their_place_by_values_of_any_type() -> None:
    """An outer item is the one before if its cursor is the same instant, in whatever zone the driver gives it."""
    days = [datetime(2026, 7, day, 12, tzinfo=BERLIN) for day in (1, 2)]
    done: list[Any] = []

    def of_days(after: datetime | None) -> list[tuple[int, datetime]]:
        return [(day.day, day) for day in days if after is None or day > after]

    class Days(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            for item, cursor in nested(of_days, lambda _day, after: sequence("ab", after), after=job.cursor):
                done.append(item)
                yield cursor

    run_through(Days, [])

    assert [(1, "a"), (1, "b"), (2, "a"), (2, "b")] == done


def test_later_versions_read_these_forms() -> None:
    """What 0.1.0 keeps of each type, byte by byte."""
    forms = [
        b'{"v":"7d444840-9dc0-11d1-b245-5ffdce74fad2","~":"uuid"}',
        b'{"v":"2026-03-29T02:30:00.000000","~":"datetime"}',
        b'{"v":"2026-03-29T02:30:00.000007+00:00","~":"datetime"}',
        b'{"v":"2026-03-29","~":"date"}',
        b'{"v":"1.10","~":"decimal"}',
        b'{"v":"AP8=","~":"bytes"}',
    ]

    assert CURSORS[:6] == [load_cursor(form) for form in forms]
    assert forms == [dump_cursor(cursor) for cursor in CURSORS[:6]]
    assert b'{"fold":1,"v":"2026-03-29T02:30:00.000000","~":"datetime"}' == dump_cursor(CURSORS[1].replace(fold=1))
