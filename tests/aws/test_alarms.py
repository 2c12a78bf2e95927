"""The template's alarms ring when they should, and only then: their definitions against series of minutes.

The series of the function's own metrics are those that it publishes in such minutes; those of AWS are as documented.
"""

from typing import Any

import pytest

from lowkiq_lambda import Batch
from lowkiq_lambda.testing import ManualClock
from tests.aws.alarms import Series
from tests.aws.alarms import rings as heard
from tests.aws.functions import DrainFunction
from tests.aws.minutes import FAILURES, INVOCATIONS, Minutes
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes, failing
from tests.kit.servers import MakeServer
from tests.kit.workers import declare, jobs_of

Alarms = dict[str, dict[str, Any]]

QUIET = ("FailureAlarm", "SilenceAlarm", "OldestDueAlarm", "DeadAlarm")
WATCHED = {
    "FailureAlarm": FAILURES,
    "SilenceAlarm": INVOCATIONS,
    "OldestDueAlarm": "oldest_due_age",
    "DeadAlarm": "dead",
    "HeldIdsAlarm": "held",
    "MissedScheduleAlarm": "schedules_missed",
}
"""The series of each alarm of a stack that takes nothing from elsewhere."""


@pytest.fixture(scope="module")
def alarms(resources: dict[str, dict[str, Any]]) -> Alarms:
    """The properties of each alarm, by its name in the template."""
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == "AWS::CloudWatch::Alarm"}


@pytest.fixture
def minutes(drain: DrainFunction, clock: ManualClock) -> Minutes:
    """Those of a stack whose app a test installs."""
    return Minutes(drain, clock)


def rings(alarms: Alarms, name: str, minutes: Series) -> list[str]:
    """What the topic hears of an alarm through these minutes."""
    return heard(alarms[name], minutes)


def told(alarms: Alarms, minutes: Minutes) -> dict[str, list[str]]:
    """What the topic hears of each alarm through recorded minutes, of those that ever ring."""
    each = {name: rings(alarms, name, minutes[series]) for name, series in WATCHED.items()}
    return {name: changes for name, changes in each.items() if {*changes} - {"OK"}}


def test_an_idle_week_rings_nothing(alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str) -> None:
    """From the first minute of a new stack on."""
    app = make_app()
    declare(app, queue_name, Notes())
    minutes.install(app)

    minutes.go_on(10).repeat(7 * 24 * 6)

    assert [0.0] * len(minutes["dead"]) == minutes["dead"] == minutes["oldest_due_age"]
    assert {} == told(alarms, minutes)


def test_a_burst_that_drains_keep_up_with_rings_nothing(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """Work for some minutes is done before it is late."""
    app = make_app()
    worker = declare(app, queue_name, lambda _batch: minutes.clock.advance(20), batch_size=1)
    minutes.install(app)

    minutes.go_on(5)
    worker.perform_async(jobs_of([str(number) for number in range(8)]))
    minutes.go_on(10)

    assert max(age or 0 for age in minutes["oldest_due_age"]) > 60
    assert {} == told(alarms, minutes)


def test_jobs_that_wait_too_long_ring_until_they_are_done(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """Work for many minutes is late, and is told so once."""
    app = make_app()
    worker = declare(app, queue_name, lambda _batch: minutes.clock.advance(20), batch_size=1)
    minutes.install(app)

    minutes.go_on(5)
    worker.perform_async(jobs_of([str(number) for number in range(40)]))
    minutes.go_on(25)

    assert {"OldestDueAlarm": ["OK", "ALARM", "OK"]} == told(alarms, minutes)


def test_a_single_slow_minute_is_not_late(alarms: Alarms) -> None:
    """Three of five minutes above the limit ring, one does not."""
    assert ["OK"] == rings(alarms, "OldestDueAlarm", ([0.0] * 4 + [400.0]) * 6)


def test_a_paused_queue_rings_nothing(alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str) -> None:
    """An operator knows of it; neither does its end."""
    app = make_app()
    worker = declare(app, queue_name, Notes())
    minutes.install(app)
    worker.perform_async(jobs_of("abc"))
    app.actions(worker).pause()

    minutes.go_on(15)
    app.actions(worker).resume()
    minutes.go_on(1)

    assert [0.0] * 15 == minutes["oldest_due_age"][:15]
    assert (15 * 60.0, 0) == (minutes["oldest_due_age"][15], app.metrics()[queue_name].length)
    assert {} == told(alarms, minutes.go_on(5))


def test_jobs_that_die_ring_each_time(alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str) -> None:
    """An hour later again, though nobody has looked after the morgue in between."""
    app = make_app()
    worker = declare(app, queue_name, failing("a", "b"), max_retry_count=0)
    minutes.install(app)

    minutes.go_on(7)
    for job_id in "ab":
        worker.perform_async(jobs_of(job_id))
        minutes.go_on(60)

    assert 2 == sum(dead or 0 for dead in minutes["dead"])
    assert {"DeadAlarm": ["OK", "ALARM", "OK", "ALARM", "OK"]} == told(alarms, minutes)


def test_jobs_that_fail_and_are_done_later_ring_nothing(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """A retry is no death."""
    app, failed = make_app(), set[str]()

    def fail_once(batch: Batch) -> None:
        if not failed.issuperset(batch):
            failed.update(batch)
            raise ConnectionError("the shop is closed")

    worker = declare(app, queue_name, fail_once, retry_in=lambda _self, _count: 30)
    minutes.install(app)
    worker.perform_async(jobs_of("abc"))

    minutes.go_on(10)

    assert (3, 0) == (len(failed), app.metrics()[queue_name].length)
    assert {} == told(alarms, minutes)


def test_ticks_that_stop_are_told_once(alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str) -> None:
    """A function that nobody invokes any more rings, once, until it is invoked again."""
    app = make_app()
    declare(app, queue_name, Notes())
    minutes.install(app)

    minutes.go_on(3, ticks=False).go_on(20).go_on(30, ticks=False).go_on(5)

    assert {"SilenceAlarm": ["OK", "INSUFFICIENT_DATA", "OK"]} == told(alarms, minutes)


def test_what_died_while_ticks_were_away_rings_with_the_first_of_them(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """A daemon buries it meanwhile; the counters of Redis know."""
    app, daemon = make_app(), make_app()
    worker = declare(app, queue_name, Notes())
    declare(daemon, queue_name, failing("a"), max_retry_count=0)
    minutes.install(app)

    minutes.go_on(5).go_on(10, ticks=False)
    worker.perform_async(jobs_of("a"))
    daemon.drain()
    minutes.go_on(10)

    assert [1.0] == [dead for dead in minutes["dead"] if dead]
    assert ["OK", "ALARM", "OK"] == told(alarms, minutes)["DeadAlarm"]


def test_a_deploy_rings_nothing(alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str) -> None:
    """A minute without a tick, a new environment, and a queue more that has buried jobs long ago."""
    before, after, elsewhere = make_app(), make_app(), make_app()
    old = declare(elsewhere, f"{queue_name}-old", failing("a"), max_retry_count=0)
    old.perform_async(jobs_of("a"))
    elsewhere.drain()
    for app in (before, after):
        declare(app, queue_name, Notes())
    declare(after, f"{queue_name}-old", Notes())

    minutes.install(before)
    minutes.go_on(5).go_on(1, ticks=False)
    minutes.install(after)
    minutes.go_on(10)

    assert {} == told(alarms, minutes)


def test_a_late_minute_rings_nothing(alarms: Alarms) -> None:
    """Minutes without a tick happen, and are no silence."""
    assert ["OK"] == rings(alarms, "SilenceAlarm", ([1.0] * 3 + [None] * 4) * 5 + [1.0])


def test_e28_redis_out_of_reach_rings_once(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, make_server: MakeServer, queue_name: str
) -> None:
    """E-28: each event ends in the failure queue; nothing is published meanwhile, and nothing else rings for that."""
    own = make_server()
    app = make_app(redis_url=own.url, redis_timeout=0.1)
    declare(app, queue_name, Notes())
    minutes.install(app)

    minutes.go_on(6)
    own.kill()
    minutes.go_on(12)

    assert [None] * 12 == minutes["dead"][6:]
    assert {"FailureAlarm": ["OK", "ALARM"]} == told(alarms, minutes)


@pytest.mark.parametrize("name", QUIET)
def test_a_first_deploy_rings_no_alarm(alarms: Alarms, name: str) -> None:
    """A stack publishes nothing before its first ticks, and no alarm takes that for a fault."""
    first_ticks: Series = [None] * 6 + [1.0 if name == "SilenceAlarm" else 0.0] * 30

    assert "ALARM" not in rings(alarms, name, first_ticks)


def test_each_failure_is_told(alarms: Alarms) -> None:
    """An event that fails rings; so does one a day later, though nobody emptied the queue in between."""
    # SQS publishes zeros for as long as a queue is in use, and nothing later.
    minutes = [None] * 5 + [1.0] + [0.0] * 60 + [None] * 60 + [2.0] + [0.0] * 60

    assert ["OK", "ALARM", "OK", "ALARM", "OK"] == rings(alarms, "FailureAlarm", minutes)


@pytest.mark.parametrize(("name", "late"), [("InboxLateAlarm", 400.0), ("StreamLateAlarm", 400_000.0)])
def test_what_waits_too_long_to_come_in_rings(alarms: Alarms, name: str, late: float) -> None:
    """Three of five minutes above the limit ring; a source in which nothing waits publishes nothing."""
    assert ["OK", "ALARM", "OK"] == rings(alarms, name, [None] * 9 + [late] * 9 + [0.0] * 9)
    assert ["OK"] == rings(alarms, name, ([0.0] * 4 + [late]) * 6)


@pytest.mark.parametrize("name", ["IngestErrorAlarm", "IngestThrottleAlarm"])
def test_ingest_that_fails_or_is_refused_rings(alarms: Alarms, name: str) -> None:
    """A function that nothing invokes publishes neither, one that works publishes zeros: neither rings."""
    assert ["OK", "ALARM", "OK"] == rings(alarms, name, [None] * 10 + [0.0] * 10 + [1.0] + [0.0] * 29)
    assert ["OK"] == rings(alarms, name, [None] * 10 + [0.0] * 20 + [None] * 20)


def test_messages_that_are_set_aside_ring_until_somebody_has_looked(alarms: Alarms) -> None:
    """SQS does not count those that it moves itself, so the alarm goes by what lies there."""
    minutes = [None] * 10 + [0.0] * 10 + [1.0] * 20 + [0.0] * 10

    assert ["OK", "ALARM", "OK"] == rings(alarms, "InboxDeadLetterAlarm", minutes)


def test_planned_times_that_are_missed_ring_each_time(alarms: Alarms) -> None:
    """Ticks that miss none publish nothing, or zeros with all metrics: neither rings."""
    minutes = [None] * 10 + [0.0] * 10 + [59.0] + [0.0] * 19 + [1.0] + [None] * 29

    assert ["OK", "ALARM", "OK", "ALARM", "OK"] == rings(alarms, "MissedScheduleAlarm", minutes)


def test_e79_held_ids_ring_until_they_are_released(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """E-79: an app whose workers hold nothing publishes nothing, and rings nothing."""
    app = make_app()
    worker = declare(app, queue_name, Notes(failing("a")), max_retry_count=0, dead_head="hold")
    minutes.install(app)

    minutes.go_on(3)
    worker.perform_async(jobs_of("a"))
    minutes.go_on(10)
    app.actions(worker).release(["a"], "skip")
    minutes.go_on(5)

    assert [None] * 4 == minutes["held"][:4]
    assert ["OK", "ALARM", "OK"] == told(alarms, minutes)["HeldIdsAlarm"]
