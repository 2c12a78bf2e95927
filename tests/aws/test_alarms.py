"""The template's alarms ring when they should, and only then: their definitions against series of minutes.

The series of the function's own metrics are those that it publishes in such minutes; those of AWS are as documented.
"""

from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, MorgueLimits
from lowkiq_lambda.testing import ManualClock
from tests.aws.alarms import FURTHER, Recorded, Series, chosen, states
from tests.aws.alarms import rings as heard
from tests.aws.functions import DrainFunction
from tests.aws.minutes import ERRORS, INVOCATIONS, Minutes
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes, failing
from tests.kit.servers import MakeServer
from tests.kit.workers import declare, jobs_of

Alarms = dict[str, dict[str, Any]]

QUIET = ("FailureAlarm", "SilenceAlarm", "OldestDueAlarm", "DeadAlarm")
DEPLOYED = {"HasAlarmTopic": True, "PublishesMetrics": True}
"""A stack with a topic, with metrics, and with a standard inbox."""
WATCHED = ("SilenceAlarm", "OldestDueAlarm", "DeadAlarm", "BlockedIdsAlarm", "MissedScheduleAlarm", "ViolationAlarm")
"""The alarms on one metric, of a stack that takes nothing from elsewhere."""


@pytest.fixture(scope="module")
def alarms(resources: dict[str, dict[str, Any]]) -> Alarms:
    """The properties of each alarm, by its name in the template."""
    return deployed(resources, DEPLOYED)


def deployed(resources: dict[str, dict[str, Any]], conditions: dict[str, bool]) -> Alarms:
    """The properties of each alarm in a stack where these conditions hold."""
    found = {name: one["Properties"] for name, one in resources.items() if one["Type"] == "AWS::CloudWatch::Alarm"}
    return {name: chosen(one, conditions) for name, one in found.items()}


@pytest.fixture
def minutes(drain: DrainFunction, clock: ManualClock) -> Minutes:
    """Those of a stack whose app a test installs."""
    return Minutes(drain, clock)


def rings(alarms: Alarms, name: str, minutes: Recorded) -> list[str]:
    """What the topic hears of an alarm through these minutes."""
    return heard(alarms[name], minutes)


def told(alarms: Alarms, minutes: Minutes) -> dict[str, list[str]]:
    """What the topic hears of each alarm through recorded minutes, of those that ever ring."""
    each = {name: rings(alarms, name, minutes[alarms[name]["MetricName"]]) for name in WATCHED}
    # Of the queue's numbers nothing is there in time.
    each["FailureAlarm"] = rings(alarms, "FailureAlarm", {"errors": minutes[ERRORS]})
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
    worker.push_many(jobs_of([str(number) for number in range(8)]))
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
    worker.push_many(jobs_of([str(number) for number in range(40)]))
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
    worker.push_many(jobs_of("abc"))
    app.operate(worker).pause()

    minutes.go_on(15)
    app.operate(worker).resume()
    minutes.go_on(1)

    assert [0.0] * 15 == minutes["oldest_due_age"][:15]
    assert (15 * 60.0, 0) == (minutes["oldest_due_age"][15], app.operate.metrics()[queue_name].length)
    assert {} == told(alarms, minutes.go_on(5))


def test_jobs_that_die_ring_each_time(alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str) -> None:
    """An hour later again, though nobody has looked after the morgue in between."""
    app = make_app()
    worker = declare(app, queue_name, failing("a", "b"), max_retry_count=0)
    minutes.install(app)

    minutes.go_on(7)
    for job_id in "ab":
        worker.push_many(jobs_of(job_id))
        minutes.go_on(60)

    assert 2 == sum(dead or 0 for dead in minutes["dead"])
    assert {"DeadAlarm": ["OK", "ALARM", "OK", "ALARM", "OK"]} == told(alarms, minutes)


def test_p9_a_morgue_that_loses_payloads_rings(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """P9: each loss comes with a death, so the alarm of deaths tells of both."""
    app = make_app(morgue=MorgueLimits(entries=1))
    worker = declare(app, queue_name, failing("a", "b", "c"), max_retry_count=0, shards_count=1)
    minutes.install(app)
    minutes.go_on(7)
    for job_id in "abc":
        worker.push_many(jobs_of(job_id))
        minutes.go_on(10)

    assert 2 == app.operate.metrics()[queue_name].trimmed
    assert ["OK", "ALARM", "OK", "ALARM", "OK", "ALARM", "OK"] == told(alarms, minutes)["DeadAlarm"]


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
    worker.push_many(jobs_of("abc"))

    minutes.go_on(10)

    assert (3, 0) == (len(failed), app.operate.metrics()[queue_name].length)
    assert {} == told(alarms, minutes)


def test_ticks_that_stop_ring_until_they_come_again(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """ALARM, which pagers take, and not INSUFFICIENT_DATA; once, and for as long as nothing ticks."""
    app = make_app()
    declare(app, queue_name, Notes())
    minutes.install(app)

    minutes.go_on(20).go_on(30, ticks=False)

    assert {"SilenceAlarm": ["OK", "ALARM"]} == told(alarms, minutes)
    assert {"SilenceAlarm": ["OK", "ALARM", "OK"]} == told(alarms, minutes.go_on(5))


def make_late(minutes: Minutes, app: Lowkiq, queue_name: str) -> None:
    """Ten minutes of ticks, in which jobs wait for too long."""
    worker = declare(app, queue_name, lambda _batch: minutes.clock.advance(20), batch_size=1)
    minutes.install(app)
    minutes.go_on(5)
    worker.push_many(jobs_of([str(number) for number in range(40)]))
    minutes.go_on(10)


def expect_no_all_clear(alarms: Alarms, minutes: Minutes) -> None:
    """The jobs still wait: the alarm on their age rings, and that for silence besides."""
    heard = told(alarms, minutes)
    assert ["OK", "ALARM"] == heard["OldestDueAlarm"] == heard["SilenceAlarm"]
    for further in FURTHER:
        assert "ALARM" == states(alarms["OldestDueAlarm"], minutes["oldest_due_age"], further=further)[-1]


def test_late_jobs_ring_on_when_schedules_are_off(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """Somebody has disabled them amid an incident."""
    make_late(minutes, make_app(), queue_name)

    minutes.go_on(30, ticks=False)

    expect_no_all_clear(alarms, minutes)


def test_late_jobs_ring_on_when_redis_is_away(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, make_server: MakeServer, queue_name: str
) -> None:
    """Then ticks fail, and publish nothing."""
    own = make_server()
    make_late(minutes, make_app(redis_url=own.url, redis_timeout=0.1), queue_name)

    own.kill()
    minutes.go_on(30)

    expect_no_all_clear(alarms, minutes)


def test_ticks_that_stop_beside_other_drains_ring(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """The schedules of shards, and pushes that wake, go on invoking the function; its tick is missed all the same."""
    app = make_app()
    declare(app, queue_name, Notes())
    minutes.install(app)

    minutes.go_on(10).go_on(15, event={"shard": 0})

    assert [1.0] * 25 == minutes[INVOCATIONS]
    assert {"SilenceAlarm": ["OK", "ALARM"]} == told(alarms, minutes)


def test_a_stack_without_metrics_tells_of_invocations_that_stop(resources: dict[str, dict[str, Any]]) -> None:
    """There Lambda's own count has to do."""
    alarm = deployed(resources, {"HasAlarmTopic": True})["SilenceAlarm"]

    assert ("AWS/Lambda", "Invocations", "FunctionName") == (
        alarm["Namespace"],
        alarm["MetricName"],
        alarm["Dimensions"][0]["Name"],
    )
    assert ["OK", "ALARM", "OK"] == heard(alarm, [4.0] * 10 + [None] * 10 + [4.0] * 10)


def test_what_died_while_ticks_were_away_rings_with_the_first_of_them(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """A daemon kills it meanwhile; the counters of Redis know."""
    app, daemon = make_app(), make_app()
    worker = declare(app, queue_name, Notes())
    declare(daemon, queue_name, failing("a"), max_retry_count=0)
    minutes.install(app)

    minutes.go_on(5).go_on(10, ticks=False)
    worker.push_many(jobs_of("a"))
    daemon.drain()
    minutes.go_on(10)

    assert [1.0] == [dead for dead in minutes["dead"] if dead]
    assert ["OK", "ALARM", "OK"] == told(alarms, minutes)["DeadAlarm"]


def test_a_deploy_rings_nothing(alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str) -> None:
    """A minute without a tick, a new environment, and a queue more that has killed jobs long ago."""
    before, after, elsewhere = make_app(), make_app(), make_app()
    old = declare(elsewhere, f"{queue_name}-old", failing("a"), max_retry_count=0)
    old.push_many(jobs_of("a"))
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


def test_e28_redis_out_of_reach_rings(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, make_server: MakeServer, queue_name: str
) -> None:
    """E-28: each event fails, and nothing is published: at once the one rings, then the other, and both go on."""
    own = make_server()
    app = make_app(redis_url=own.url, redis_timeout=0.1)
    declare(app, queue_name, Notes())
    minutes.install(app)

    minutes.go_on(6)
    own.kill()
    minutes.go_on(1)
    first = told(alarms, minutes)
    minutes.go_on(11)

    assert [None] * 12 == minutes["dead"][6:]
    assert {"FailureAlarm": ["OK", "ALARM"]} == first
    assert {"FailureAlarm": ["OK", "ALARM"], "SilenceAlarm": ["OK", "ALARM"]} == told(alarms, minutes)


@pytest.mark.parametrize("name", [name for name in QUIET if name != "SilenceAlarm"])
def test_a_first_deploy_rings_no_alarm(alarms: Alarms, name: str) -> None:
    """A stack publishes nothing before its first ticks, and takes that for no fault; but for silence."""
    minutes: Series = [None] * 6 + [0.0] * 30
    first_ticks = {"errors": minutes} if name == "FailureAlarm" else minutes

    assert "ALARM" not in rings(alarms, name, first_ticks)


def test_a_first_deploy_rings_once_for_silence_and_then_is_quiet(alarms: Alarms) -> None:
    """Until the first tick there is silence, and a new alarm looks back; so each learns that the topic reaches them."""
    assert ["ALARM", "OK"] == rings(alarms, "SilenceAlarm", [None] * 2 + [0.0] * 30)


def test_a_stack_that_is_switched_off_has_no_alarm_for_silence(
    resources: dict[str, dict[str, Any]], template: dict[str, Any]
) -> None:
    """With ScheduleState=DISABLED silence is what was asked for."""
    assert "SchedulesFire" == resources["SilenceAlarm"]["Condition"]
    assert {"Fn::Equals": [{"Ref": "ScheduleState"}, "ENABLED"]} == template["Conditions"]["SchedulesFire"]


@pytest.mark.parametrize("counted", ["errors", "dropped"])
def test_a_failure_is_told_before_the_failure_queue_has_numbers(alarms: Alarms, counted: str) -> None:
    """An invocation that fails, and an event that was refused for too long, by Lambda's own count: within a minute.

    SQS may publish a quarter of an hour late what was put into a queue that rested.
    """
    minutes: Series = [0.0] * 10 + [1.0]
    late: Series = [None] * 11

    assert ["OK", "ALARM"] == rings(alarms, "FailureAlarm", {counted: minutes, "lost": late})
    assert ["OK", "ALARM", "OK"] == rings(
        alarms, "FailureAlarm", {counted: [*minutes, *[0.0] * 9], "lost": [None] * 20}
    )


def test_what_lambda_never_saw_is_told_by_the_failure_queue(alarms: Alarms) -> None:
    """An event that a schedule lost rings; so does one a day later, though nobody emptied the queue in between."""
    # SQS publishes zeros for as long as a queue is in use, and nothing later.
    lost = [None] * 5 + [1.0] + [0.0] * 60 + [None] * 60 + [2.0] + [0.0] * 60
    minutes: dict[str, Series] = {"errors": [0.0] * len(lost), "lost": lost}

    assert ["OK", "ALARM", "OK", "ALARM", "OK"] == rings(alarms, "FailureAlarm", minutes)


def test_refusals_that_lambda_makes_up_for_ring_nothing(alarms: Alarms) -> None:
    """A small account refuses some of a minute's drains, and Lambda tries them again: the alarm has no such metric."""
    watched = [one["MetricStat"]["Metric"]["MetricName"] for one in alarms["FailureAlarm"]["Metrics"][1:]]

    assert ["Errors", "AsyncEventsDropped", "NumberOfMessagesSent"] == watched


def test_changes_that_wait_too_long_ring(alarms: Alarms) -> None:
    """Three of five minutes above the limit ring; a stream in which nothing waits publishes nothing."""
    late = 400_000.0
    assert ["OK", "ALARM", "OK"] == rings(alarms, "StreamLateAlarm", [None] * 9 + [late] * 9 + [0.0] * 9)
    assert ["OK"] == rings(alarms, "StreamLateAlarm", ([0.0] * 4 + [late]) * 6)


@pytest.mark.parametrize("fifo", [True, False])
def test_messages_that_wait_too_long_to_come_in_ring(resources: dict[str, dict[str, Any]], fifo: bool) -> None:  # noqa: FBT001 - a parameter
    """Three of five minutes above the limit ring; an inbox in which nothing waits publishes nothing."""
    alarms = deployed(resources, {**DEPLOYED, "InboxIsFifo": fifo})

    assert ["OK", "ALARM", "OK"] == rings(alarms, "InboxLateAlarm", {"age": [None] * 9 + [400.0] * 9 + [0.0] * 9})
    assert ["OK"] == rings(alarms, "InboxLateAlarm", {"age": ([0.0] * 4 + [400.0]) * 6})


def test_a_standard_inbox_whose_messages_leave_its_age_rings_on(alarms: Alarms) -> None:
    """Redis is away: after nine minutes each message was received three times, and SQS leaves it out of the age.

    Each try hides a message for three minutes, so that hardly one is visible when SQS counts.
    """
    away = 60
    minutes: dict[str, Series] = {
        "age": [0.0] * 5 + [60.0 * (minute + 1) for minute in range(9)] + [0.0] * (away - 9) + [0.0] * 10,
        "waiting": [0.0] * 5 + [float(minute % 3 == 0) for minute in range(away)] + [0.0] * 10,
        "flying": [0.0] * 5 + [float(minute % 3 > 0) for minute in range(away)] + [0.0] * 10,
        "taken": [7.0] * 5 + [0.0] * away + [20.0] + [7.0] * 9,
    }

    assert ["OK", "ALARM", "OK"] == rings(alarms, "InboxLateAlarm", minutes)
    for further in FURTHER:
        found = states(alarms["InboxLateAlarm"], minutes, further=further)
        assert ["ALARM"] * (away - 5) == found[11 : 11 + away - 5]


def test_a_busy_standard_inbox_rings_nothing(alarms: Alarms) -> None:
    """Messages are in flight whenever SQS counts, and are taken out; a seldom one is met amid its way once."""
    busy: dict[str, Series] = {"age": [1.0] * 30, "waiting": [3.0] * 30, "flying": [40.0] * 30, "taken": [900.0] * 30}
    seldom: dict[str, Series] = {
        "age": [0.0] * 30,
        "waiting": ([1.0] + [0.0] * 4) * 6,
        "flying": [0.0] * 30,
        "taken": ([0.0, 1.0] + [0.0] * 3) * 6,
    }

    assert ["OK"] == rings(alarms, "InboxLateAlarm", busy) == rings(alarms, "InboxLateAlarm", seldom)


@pytest.mark.parametrize("name", ["IngestErrorAlarm", "IngestThrottleAlarm"])
def test_ingest_that_fails_or_is_refused_rings(alarms: Alarms, name: str) -> None:
    """A function that nothing invokes publishes neither, one that works publishes zeros: neither rings."""
    assert ["OK", "ALARM", "OK"] == rings(alarms, name, [None] * 10 + [0.0] * 10 + [1.0] + [0.0] * 29)
    assert ["OK"] == rings(alarms, name, [None] * 10 + [0.0] * 20 + [None] * 20)


@pytest.mark.parametrize("visibility", [3, 10])
def test_records_that_fail_again_and_again_ring_on(alarms: Alarms, visibility: int) -> None:
    """A message that fails is away for its queue's visibility timeout, of three or ten minutes, and fails again."""
    failing: list[float | None] = ([1.0] + [None] * (visibility - 1)) * (60 // visibility)

    assert ["OK", "ALARM"] == rings(alarms, "FailedRecordAlarm", [None] * 10 + failing)
    assert ["OK", "ALARM", "OK"] == rings(alarms, "FailedRecordAlarm", [None] * 10 + failing + [None] * 40)


def test_messages_that_are_set_aside_ring_until_somebody_has_looked(alarms: Alarms) -> None:
    """SQS does not count those that it moves itself, so the alarm goes by what lies there."""
    minutes = [None] * 10 + [0.0] * 10 + [1.0] * 20 + [0.0] * 10

    assert ["OK", "ALARM", "OK"] == rings(alarms, "InboxDeadLetterAlarm", minutes)


def test_planned_times_that_are_missed_ring_each_time(alarms: Alarms) -> None:
    """Ticks that miss none publish nothing, or zeros with all metrics: neither rings."""
    minutes = [None] * 10 + [0.0] * 10 + [59.0] + [0.0] * 19 + [1.0] + [None] * 29

    assert ["OK", "ALARM", "OK", "ALARM", "OK"] == rings(alarms, "MissedScheduleAlarm", minutes)


def test_e79_blocked_ids_ring_until_they_are_unblocked(
    alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str
) -> None:
    """E-79: an app whose workers hold nothing publishes nothing, and rings nothing."""
    app = make_app()
    worker = declare(app, queue_name, Notes(failing("a")), max_retry_count=0, dead_head="block")
    minutes.install(app)

    minutes.go_on(3)
    worker.push_many(jobs_of("a"))
    minutes.go_on(10)
    app.operate(worker).unblock(["a"], "skip")
    minutes.go_on(5)

    assert [None] * 4 == minutes["blocked"][:4]
    assert ["OK", "ALARM", "OK"] == told(alarms, minutes)["BlockedIdsAlarm"]


def test_a_violation_rings_once(alarms: Alarms) -> None:
    """It is published by the run that finds it; runs without one publish nothing, or zeros with all metrics."""
    minutes = [None] * 10 + [0.0] * 10 + [2.0] + [0.0] * 19 + [1.0] + [None] * 29

    assert ["OK", "ALARM", "OK", "ALARM", "OK"] == rings(alarms, "ViolationAlarm", minutes)


def test_p2_a_payload_that_is_lost_rings(alarms: Alarms, minutes: Minutes, make_app: MakeApp, queue_name: str) -> None:
    """P2: behind the engine's back, while its shard is recorded: the run of the next minute finds it."""
    app = make_app(verify=1.0)
    worker = declare(app, queue_name, Notes(), shards_count=1)
    minutes.install(app)
    minutes.go_on(30)
    shard = app.operate(worker).reader.shards[0]
    while app.core.backend.client.hget(shard.key("meta"), "journal_until") is None:
        minutes.go_on()
    worker.push("a", due_at=minutes.clock.time() + 3_600)
    for key in ("jobs", "due"):
        app.core.backend.client.delete(shard.key(key))
    minutes.go_on(30)

    assert [1.0] == [value for value in minutes["verify_violations"] if value]
    assert {"ViolationAlarm": ["OK", "ALARM", "OK"]} == told(alarms, minutes)
