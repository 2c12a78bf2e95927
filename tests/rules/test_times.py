"""Due times: `due_at` and `delay` (E-67, L-17, L-19, LN-9)."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from lowkiq_lambda import JobError
from lowkiq_lambda.testing import AppUnderTest
from tests.kit.handlers import Notes
from tests.kit.workers import declare


def test_l17_due_at_is_an_absolute_time(lowkiq: AppUnderTest) -> None:
    """L-17: in spite of its name it is a time; a job waits for it, and it is now by default."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    at = lowkiq.clock.time() + 60.5

    (late,) = worker.push_many([{"id": "late", "due_at": at}])
    (fresh,) = worker.push_many([{"id": "now"}])
    lowkiq.drain()
    assert ([["now"]], at, at - 60.5) == (notes.ids, late.due_at, fresh.due_at)
    lowkiq.advance(seconds=60.4)
    lowkiq.drain()
    assert [["now"]] == notes.ids
    lowkiq.advance(seconds=0.1)
    lowkiq.drain()

    assert [["now"], ["late"]] == notes.ids


def test_l17_due_at_may_be_a_datetime_and_delay_is_the_relative_form(lowkiq: AppUnderTest) -> None:
    """L-17: an aware datetime is its moment; `delay` counts from now, in seconds or as a timedelta."""
    worker = declare(lowkiq.app, "orders", Notes())
    now = lowkiq.clock.time()
    moment = datetime.fromtimestamp(now + 5, UTC)

    pushed = worker.push_many(
        [
            {"id": "a", "due_at": moment},
            {"id": "b", "delay": 2.5},
            {"id": "c", "delay": timedelta(minutes=1)},
            {"id": "d", "delay": 0},
        ]
    )

    assert [now + 5, now + 2.5, now + 60, now] == [one.due_at for one in pushed]


@pytest.mark.parametrize("decimals", [0.123457, 0.000001, 0.999999])
def test_l19_times_keep_their_microseconds(lowkiq: AppUnderTest, decimals: float) -> None:
    """L-19, E-48: a time passes through Redis and Lua without being rounded to 14 digits."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    at = 1_700_000_000 + decimals

    (pushed,) = worker.push_many([{"id": "a", "due_at": at}])
    (again,) = worker.push_many([{"id": "a", "payload": 2}])
    lowkiq.drain()

    assert [at] * 3 == [pushed.due_at, again.due_at, notes.last.due_at]
    assert at < lowkiq.clock.time()


@pytest.mark.parametrize(
    ("due_at", "why"),
    [
        (1_800_000_000_000, "looks like milliseconds: give seconds"),
        (1_800_000_000_000.5, "looks like milliseconds"),
        (253_402_300_800, "looks like milliseconds"),
        (datetime.max.replace(tzinfo=UTC), "lies beyond the year 9999"),
        (60, "for seconds from now use delay"),
        (0, "for seconds from now use delay"),
        (-1, "for seconds from now use delay"),
        (math.nan, "must be Unix seconds or an aware datetime"),
        (math.inf, "must be Unix seconds or an aware datetime"),
        (True, "must be Unix seconds or an aware datetime"),
        (None, "must be Unix seconds or an aware datetime"),
        ("1800000000", "must be Unix seconds or an aware datetime"),
        (timedelta(seconds=5), "must be Unix seconds or an aware datetime"),
        (datetime(2030, 1, 1), "a datetime needs a time zone"),  # noqa: DTZ001 - that is the point
        (datetime(1980, 1, 1, tzinfo=UTC), "lies before 2001"),
    ],
)
def test_e67_times_that_are_none_are_refused(lowkiq: AppUnderTest, due_at: object, why: str) -> None:
    """E-67, LB-15: milliseconds, seconds from now and negative numbers never become an invisible job."""
    worker = declare(lowkiq.app, "orders", Notes())

    with pytest.raises(JobError, match=f"job 0: due_at: .*{why}"):
        worker.push_many([{"id": "a", "due_at": due_at}])


@pytest.mark.parametrize("delay", [-0.1, -5, math.nan, math.inf, True, None, "5", timedelta(seconds=-1), 1e12])
def test_e67_delays_that_are_none_are_refused(lowkiq: AppUnderTest, delay: object) -> None:
    """E-67: a delay is at least 0 seconds, and ends before the year 10000."""
    worker = declare(lowkiq.app, "orders", Notes())

    with pytest.raises(JobError, match=r"job 0: delay: (must be seconds from now|lies beyond the year 9999)"):
        worker.push_many([{"id": "a", "delay": delay}])


def test_e67_a_time_in_the_past_is_due_at_once(lowkiq: AppUnderTest) -> None:
    """E-67: a past time is kept as it is, so the lag is told from it, and the job runs now."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    at = lowkiq.clock.time() - 86_400

    (pushed,) = worker.push_many([{"id": "a", "due_at": at}])
    (state,) = lowkiq.app.core.drains.drainer.probe(lowkiq.app.core.queues.agreed(worker).shards)
    lowkiq.drain()

    assert (at, 86_400, at) == (pushed.due_at, state.lag, notes.last.due_at)


@pytest.mark.parametrize(
    "due_at",
    [
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2030, 6, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    ],
)
def test_e67_aware_datetimes_are_their_moments(lowkiq: AppUnderTest, due_at: datetime) -> None:
    """E-67: up to the year 9999, in any time zone."""
    worker = declare(lowkiq.app, "orders", Notes())

    (pushed,) = worker.push_many([{"id": "a", "due_at": due_at}])

    assert due_at.timestamp() == pushed.due_at


def test_a_time_and_a_delay_are_one_too_many(lowkiq: AppUnderTest) -> None:
    """Giving both is an error that says what each is."""
    worker = declare(lowkiq.app, "orders", Notes())

    with pytest.raises(JobError, match=r"job 0: delay: give due_at \(a time\) or delay \(from now\), not both"):
        worker.push_many([{"id": "a", "due_at": lowkiq.clock.time(), "delay": 1}])


def test_ln9_an_earlier_time_brings_nothing_forward(lowkiq: AppUnderTest) -> None:
    """LN-9, L-27: a push with an earlier time onto a waiting id leaves the id's time as it was."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    at = lowkiq.clock.time() + 60
    worker.push_many([{"id": "a", "due_at": at}])

    (pushed,) = worker.push_many([{"id": "a", "payload": 2, "due_at": lowkiq.clock.time()}])
    lowkiq.drain()

    assert (at, True, []) == (pushed.due_at, pushed.merged, notes.batches)
