"""The template's alarms ring when they should, and only then: their definitions against series of minutes."""

from typing import Any

import pytest

from tests.aws.alarms import Series, states, told

Alarms = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def alarms(resources: dict[str, dict[str, Any]]) -> Alarms:
    """The properties of each alarm, by its name in the template."""
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == "AWS::CloudWatch::Alarm"}


def rings(alarms: Alarms, name: str, minutes: Series) -> list[str]:
    """What the topic hears of an alarm through these minutes, with the template's default parameters."""
    return told(alarms[name], states(alarms[name], minutes, {"OldestDueAgeAlarm": 300, "InboxAgeAlarm": 300}))


def test_each_lost_event_is_told(alarms: Alarms) -> None:
    """An event that is lost rings; so does one a day later, though nobody emptied the queue in between."""
    minutes = [None] * 5 + [1.0] + [None] * 60 + [2.0] + [None] * 60

    assert ["OK", "ALARM", "OK", "ALARM", "OK"] == rings(alarms, "LostEventAlarm", minutes)


@pytest.mark.parametrize("name", ["OldestDueAlarm", "SilenceAlarm"])
def test_a_first_deploy_rings_no_alarm(alarms: Alarms, name: str) -> None:
    """A stack publishes nothing before its first ticks, and no alarm takes that for a fault."""
    assert "ALARM" not in rings(alarms, name, [None] * 6 + [1.0] * 30)


def test_ticks_that_stop_are_told_once(alarms: Alarms) -> None:
    """A dispatcher that nobody invokes any more rings, once, until it is invoked again."""
    minutes = [None] * 3 + [1.0] * 20 + [None] * 30 + [1.0] * 5

    assert ["OK", "INSUFFICIENT_DATA", "OK"] == rings(alarms, "SilenceAlarm", minutes)


def test_a_tick_that_is_late_rings_nothing(alarms: Alarms) -> None:
    """Minutes without a tick happen, and are no silence."""
    assert ["OK"] == rings(alarms, "SilenceAlarm", ([1.0] * 3 + [None] * 4) * 5 + [1.0])


def test_jobs_that_wait_too_long_ring_until_they_are_done(alarms: Alarms) -> None:
    """Three of five minutes above the limit ring; a single slow minute does not."""
    assert ["OK", "ALARM", "OK"] == rings(alarms, "OldestDueAlarm", [0.0] * 9 + [400.0] * 9 + [0.0] * 9)
    assert ["OK"] == rings(alarms, "OldestDueAlarm", ([0.0] * 4 + [400.0]) * 6)


@pytest.mark.parametrize(("name", "late"), [("InboxLateAlarm", 400.0), ("StreamLateAlarm", 400_000.0)])
def test_what_waits_too_long_to_come_in_rings(alarms: Alarms, name: str, late: float) -> None:
    """Three of five minutes above the limit ring; a source in which nothing waits publishes nothing."""
    assert ["OK", "ALARM", "OK"] == rings(alarms, name, [None] * 9 + [late] * 9 + [0.0] * 9)
    assert ["OK"] == rings(alarms, name, ([0.0] * 4 + [late]) * 6)


def test_messages_that_are_set_aside_ring_until_somebody_has_looked(alarms: Alarms) -> None:
    """SQS does not count those that it moves itself, so the alarm goes by what lies there."""
    minutes = [None] * 10 + [0.0] * 10 + [1.0] * 20 + [0.0] * 10

    assert ["OK", "ALARM", "OK"] == rings(alarms, "InboxDeadLetterAlarm", minutes)


def test_planned_times_that_are_missed_ring_each_time(alarms: Alarms) -> None:
    """Ticks without a schedule entry publish nothing, and those that miss none publish zeros: neither rings."""
    minutes = [None] * 10 + [0.0] * 10 + [59.0] + [0.0] * 19 + [1.0] + [None] * 9

    assert ["OK", "ALARM", "OK", "ALARM", "OK"] == rings(alarms, "MissedScheduleAlarm", minutes)


def test_e79_held_ids_ring_until_they_are_released(alarms: Alarms) -> None:
    """E-79: an app whose workers hold nothing publishes nothing, and rings nothing."""
    minutes = [None] * 5 + [0.0] * 5 + [2.0] * 30 + [0.0] * 5

    assert ["OK", "ALARM", "OK"] == rings(alarms, "HeldIdsAlarm", minutes)
