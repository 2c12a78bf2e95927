"""The digest of an hour: what it has, how long it is kept, and what is not compared."""

import zlib
from random import Random
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.operate.lateness.hours import FEWEST_HOURS, going_on, usual_took
from lowkiq_lambda.operate.lateness.kept import DAY, DAYS, HOUR, PARTS, OpenHour, packed, unpacked
from lowkiq_lambda.operate.lateness.samples import Sample, minute_between
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.lateness import HourDigest
from tests.kit.apps import MakeApp
from tests.kit.months import keep_hours
from tests.kit.playing import Played

SAMPLE = Sample(3_600.0, "1 1 0 0", 10, 0, 0, 10, 10, 5.0, 1.0, 9.0, 0, 0, 0.0, 0.5, 1.0, 5, ())


@pytest.fixture
def played(make_app: MakeApp, clock: ManualClock, queue_name: str) -> Played:
    """A queue at the begin of an hour."""
    clock.set_wall(1_800_000_000.0 // 3_600 * 3_600)
    return Played(make_app(namespace=queue_name), clock, queue_name)


def test_an_hour_is_digested_when_it_is_over(played: Played) -> None:
    """It has ids, calls, times and failures."""
    played.failing = lambda job_id: job_id == "3"
    for _ in range(3):
        played.minute()
        played.push(range(10))
    played.minute()
    assert [] == played.app.operate(played.worker).hours()
    played.clock.advance(3_600)
    played.minute()

    (hour,) = played.app.operate(played.worker).hours()

    assert (27, 30, 3, 9) == (hour.ids, hour.calls, hour.failed, hour.busiest)
    assert hour.busy == pytest.approx(hour.payloads + 1, abs=2)
    assert 25 <= hour.held <= hour.seconds
    assert hour.computing < 1
    assert hour.p50 is not None
    assert hour.p95 is not None
    assert hour.p99 is not None
    assert 0 <= hour.p50 <= hour.p95 <= hour.p99


def test_hours_are_kept_for_five_weeks(played: Played) -> None:
    """Those before are gone, also if nobody had watched for a while."""
    for _ in range(4):
        played.minute()
        played.clock.advance(HOUR)
    assert 3 == len(played.app.operate(played.worker).hours())
    played.clock.advance((DAYS - 1) * DAY)
    played.minute()
    assert 4 == len(played.app.operate(played.worker).hours())
    played.clock.advance(2 * DAY)
    for _ in range(2):
        played.minute()
        played.clock.advance(HOUR)

    hours = played.app.operate(played.worker).hours()
    assert 2 == len(hours), hours
    assert all(played.clock.time() - hour.at <= (DAYS + 1) * DAY for hour in hours)


def busy_hours(skew: int) -> tuple[HourDigest, ...]:
    """The hours of 35 days in which no number is like the one before, with the shares of so many ids."""
    random = Random(1)
    hours = []
    for number in range(DAYS * 24):
        ids = int(40_000 * random.uniform(0.3, 1.7))
        busy = ids * random.uniform(0.03, 0.09)
        p50 = random.lognormvariate(-4.0, 1.0)
        steep = random.uniform(0.9, 1.2)
        share = 1_500 * random.uniform(0.7, 1.3)
        hours.append(
            HourDigest(
                1_800_000_000.0 // DAY * DAY + number * HOUR,
                HOUR + random.uniform(-60, 60),
                ids,
                int(ids * random.uniform(1.0, 1.4)),
                int(ids * random.uniform(0.8, 1.0)),
                busy,
                busy * random.uniform(0.1, 0.4),
                busy * random.uniform(1.05, 1.3),
                int(ids * random.uniform(0.0, 0.02)),
                random.randrange(40),
                int(ids / 60 * random.uniform(1.0, 3.0)),
                p50,
                p50 * random.uniform(3.0, 9.0),
                p50 * random.uniform(9.0, 60.0),
                tuple(round(share / rank**steep) for rank in range(1, skew + 1)) or None,
            )
        )
    return tuple(hours)


@pytest.mark.parametrize(("skew", "most"), [(0, 45_000), (64, 75_000)])
def test_hours_of_35_days_take_the_room_that_the_page_says(played: Played, skew: int, most: int) -> None:
    """They take at most 75 KB of a busy queue, also where the shares of 64 ids are counted."""
    backend, hours = played.app.core.backend, busy_hours(skew)
    played.clock.set_wall(hours[-1].at + HOUR)

    key = keep_hours(backend, played.worker.queue_name, hours, 1.0)

    # With the hour that goes on.
    assert DAYS + 1 == backend.client.hlen(key)
    size = backend.client.memory_usage(key, samples=0) or 0
    assert size <= most
    assert len(hours) == len(played.app.operate(played.worker).hours())


COUNTS: Final = st.integers(0, 2**40)
TIMES: Final = st.floats(0.0, 1e7)


@given(
    st.lists(
        st.builds(
            HourDigest,
            st.integers(0, 10**6).map(lambda number: float(number * HOUR)),
            TIMES,
            *[COUNTS] * 3,
            *[TIMES] * 3,
            *[COUNTS] * 3,
            *[st.none() | TIMES] * 3,
            st.none() | st.lists(st.integers(1, 10_000)).map(lambda shares: tuple(sorted(shares, reverse=True))),
        )
    )
)
def test_a_day_is_read_as_it_was_stored(hours: list[HourDigest]) -> None:
    """Counts are the same, and times are rounded once: to the millisecond, and waits to a tenth of it."""
    read = [*unpacked(packed(hours))]

    rounded = [
        msgspec.structs.replace(
            hour,
            **{
                name: None if (value := getattr(hour, name)) is None else round(value * parts) / parts
                for name, parts in PARTS.items()
            },
        )
        for hour in hours
    ]
    assert rounded == read
    assert read == [*unpacked(packed(read))]


PACKED_NUMBER: Final = zlib.compress(msgspec.msgpack.encode([[1]]))
PACKED_TEXTS: Final = zlib.compress(msgspec.msgpack.encode([[""] * 15]))


@pytest.mark.parametrize("stored", [b"", b"\x90", PACKED_NUMBER, PACKED_TEXTS])
def test_a_day_in_another_form_is_left_out(stored: bytes) -> None:
    """Of another version nothing is known."""
    assert [] == [*unpacked(stored)]


@pytest.mark.parametrize("fields", [{"ended": 9}, {"busy": 4.0}, {"shape": "1 2 1 1"}])
def test_counters_that_fell_begin_anew(fields: dict[str, object]) -> None:
    """A queue that was made anew, or moved, is not compared with what it was."""
    fallen = msgspec.structs.replace(SAMPLE, at=3_660.0, **fields)

    assert fallen == going_on(OpenHour(1, SAMPLE, SAMPLE), fallen).began
    assert None is minute_between(SAMPLE, fallen, 1)


@pytest.mark.parametrize(("seconds", "is_known"), [(19.0, False), (20.0, True), (150.0, True), (151.0, False)])
def test_a_minute_is_between_two_samples_that_are_near(seconds: float, is_known: bool) -> None:  # noqa: FBT001 - a parameter
    """Housekeeping that was away for longer does not know how the minutes were."""
    after = msgspec.structs.replace(SAMPLE, at=SAMPLE.at + seconds)

    assert is_known == (minute_between(SAMPLE, after, 1) is not None)


def test_the_usual_time_is_that_of_hours_with_as_many_ids_in_a_call() -> None:
    """Of few hours nothing is usual, nor of those of more than a week ago."""
    hour = HourDigest(0.0, 3_600.0, 100, 100, 100, 50.0, 1.0, 60.0, 0, 0, 5, None, None, None)
    fuller = msgspec.structs.replace(hour, calls=50, busy=500.0)
    rare = msgspec.structs.replace(hour, ids=5, payloads=5, calls=5, busy=500.0)

    assert 0.5 == usual_took([*[hour] * FEWEST_HOURS, fuller, rare], 3_600.0, 1.0)
    assert None is usual_took([*[hour] * (FEWEST_HOURS - 1), fuller], 3_600.0, 1.0)
    assert None is usual_took([hour] * FEWEST_HOURS, 8 * 86_400.0, 1.0)
    assert None is usual_took([hour] * FEWEST_HOURS, 3_600.0, None)


def test_what_holders_did_travels_with_a_move(played: Played) -> None:
    """Calls and times of a queue are the same before and after, in other shards."""
    played.push(range(20))
    played.minute()
    before = played.app.operate.metrics()[played.worker.queue_name]
    played.app.operate(played.worker).reshard(to=3)
    after = played.app.operate.metrics()[played.worker.queue_name]

    assert 3 == len(after.shards)
    assert (20, before.calls, before.busy) == (after.calls, after.calls, after.busy)
    assert before.held == pytest.approx(after.held, abs=0.01)
