"""The digest of an hour: what it has, how long it is kept, and what is not compared."""

import msgspec
import pytest

from lowkiq_lambda.operate.lateness.hours import FEWEST_HOURS, going_on, usual_took
from lowkiq_lambda.operate.lateness.kept import HOURS, OpenHour
from lowkiq_lambda.operate.lateness.samples import Sample, minute_between
from lowkiq_lambda.store.shard.keys import queue_key
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.lateness import HourDigest
from tests.kit.apps import MakeApp
from tests.kit.playing import Played

SAMPLE = Sample(3_600.0, "1 1 0 0", 10, 0, 0, 10, 10, 5.0, 1.0, 9.0, 0, 0, 0.0, 0.5, 1.0, 5, ())


@pytest.fixture
def played(make_app: MakeApp, clock: ManualClock, queue_name: str) -> Played:
    """A queue at the begin of an hour."""
    clock.set_wall(1_800_000_000.0 // 3_600 * 3_600)
    return Played(make_app(namespace=queue_name), clock, queue_name)


def test_an_hour_is_digested_when_it_is_over(played: Played) -> None:
    """Ids, calls, times and failures, in some hundred bytes."""
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
    assert len(msgspec.msgpack.encode(hour)) < 120


def test_hours_are_kept_for_five_weeks(played: Played) -> None:
    """Those before are gone, also if nobody had watched for a while."""
    backend = played.app.core.backend
    key = queue_key(played.worker.queue_name, "hours", backend.prefix)
    for _ in range(4):
        played.minute()
        played.clock.advance(3_600)
    before = backend.client.hlen(key)
    played.clock.advance((HOURS - 2) * 3_600)
    played.minute()
    played.clock.advance(3_600)
    played.minute()

    assert 1 + 3 == before
    hours = played.app.operate(played.worker).hours()
    assert all(played.clock.time() - hour.at <= (HOURS + 1) * 3_600 for hour in hours)


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
