"""sidekiq-scheduler 6.0.2: each test is one of its cases, with entries of this library in place of its schedule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lowkiq_lambda import DeclarationError, Lowkiq
from lowkiq_lambda.base.errors import NoSuchEntry
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.firing import MINUTE, NOON, at_noon, fired
from tests.kit.handlers import Notes
from tests.kit.workers import declare


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, clock: ManualClock) -> Any:
    """A worker, at noon."""
    at_noon(clock)
    return declare(app, queue_name, Notes())


def following(app: Lowkiq) -> dict[str, float | None]:
    """The next planned time of each entry, in seconds after noon."""
    return {view.name: view.next and view.next - NOON for view in app.schedules.all()}


def test_a_process_may_be_told_to_fire_nothing(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Peer: spec/sidekiq-scheduler/scheduler_spec.rb, "does not add the job to the scheduled jobs" if not enabled."""
    at_noon(clock)
    silent = make_app(schedules=False)
    silent.every(MINUTE, declare(silent, queue_name, Notes()), id="job")
    silent.schedules.tick()
    clock.advance(61.0)
    assert [] == fired(silent.schedules.tick())


def test_an_entry_needs_a_timing_option(app: Lowkiq, worker: Any) -> None:
    """Ours is an error. Peer: scheduler_spec.rb, "without a timing option does not add the job to rufus scheduler"."""
    with pytest.raises(DeclarationError, match="one of cron, every and at"):
        app.schedules.put("job", worker, id=1)


def test_a_cron_entry_has_its_next_time(app: Lowkiq, worker: Any) -> None:
    """Peer: scheduler_spec.rb, "cron schedule without options stores the next time execution correctly"."""
    app.cron("*/5 * * * *", worker, id="job")
    assert {"job": 300.0} == following(app)


def test_an_empty_cron_is_refused(app: Lowkiq, worker: Any) -> None:
    """Theirs drops the job silently. Peer: scheduler_spec.rb, "when the cron is empty does not add the job"."""
    with pytest.raises(DeclarationError, match="cron '' is not an expression"):
        app.cron("", worker, id="job")
    assert {} == following(app)


def test_consecutive_hours_fire_each(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: scheduler_spec.rb, "when the cron is not periodically register consecutive jobs correctly"."""
    app.cron("0 8-18 * * *", worker, id="job")
    looks = []
    for hour in range(4):
        at_noon(clock, hour * 3_600.0 + 1.0)
        looks.append([planned for _, planned, _ in fired(app.schedules.tick())])
    assert [[], [3_600.0], [7_200.0], [10_800.0]] == looks


def test_an_entry_of_a_period_has_its_next_time(app: Lowkiq, worker: Any) -> None:
    """Peer: scheduler_spec.rb, "every schedule without options stores the next time execution correctly"."""
    app.every(timedelta(minutes=1), worker, id="job")
    assert {"job": 60.0} == following(app)


def test_a_first_time_within_a_period_is_an_offset(app: Lowkiq, worker: Any) -> None:
    """Ours counts from 1970. Peer: scheduler_spec.rb, "every schedule with options sets the default options"."""
    app.every(timedelta(hours=1), worker, id="job", offset=timedelta(minutes=5))
    assert {"job": 300.0} == following(app)


def test_a_moment_to_come_fires(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: scheduler_spec.rb, "at schedule in the future adds the job to rufus scheduler"."""
    app.at(datetime.fromtimestamp(NOON + 600.0, UTC), worker, id="job")
    app.schedules.tick()
    at_noon(clock, 601.0)
    assert [("job", 600.0, "pushed")] == fired(app.schedules.tick())


def test_a_moment_that_has_passed_never_fires(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: scheduler_spec.rb, "at schedule in the past does not add the job to rufus scheduler"."""
    app.at(datetime.fromtimestamp(NOON - 60.0, UTC), worker, id="job")
    app.schedules.tick()
    at_noon(clock, 61.0)
    assert ([], {"job": None}) == (fired(app.schedules.tick()), following(app))


def test_a_job_in_some_time_is_a_push_with_a_delay(app: Lowkiq, worker: Any) -> None:
    """Ours needs no entry for it. Peer: scheduler_spec.rb, "in schedule adds the job to rufus scheduler"."""
    assert NOON + 600.0 == worker.push("job", delay=600).due_at
    assert {} == following(app)


def test_an_interval_is_a_period_that_skips_while_the_job_runs(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Ours keeps its times. Peer: scheduler_spec.rb, "interval schedule adds the job to rufus scheduler"."""
    app.every(MINUTE, worker, id="job", overlap="skip")
    looks = []
    for seconds in (1.0, 61.0, 121.0):
        at_noon(clock, seconds)
        looks.append([outcome for _, _, outcome in fired(app.schedules.tick())])
    assert [[], ["pushed"], ["busy"]] == looks


def test_many_processes_push_a_time_once(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Peer: spec/sidekiq-scheduler/scheduler_spec.rb, "#idempotent_job_enqueue enqueues a job"."""
    at_noon(clock)
    apps = [make_app() for _ in range(3)]
    for app in apps:
        app.every(MINUTE, declare(app, queue_name, Notes()), id="job")
        app.schedules.tick()
    clock.advance(61.0)
    assert [[("job", 60.0, "pushed")], [], []] == [fired(app.schedules.tick()) for app in apps]


def test_a_fired_time_is_kept_with_its_outcome(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: spec/sidekiq-scheduler/scheduler_spec.rb, "registers the enqueued job"."""
    app.every(MINUTE, worker, id="job")
    app.schedules.tick()
    clock.advance(61.0)
    app.schedules.tick()
    assert [(NOON + 60.0, "pushed")] == [(one.planned, one.outcome) for one in app.schedules.history(worker, "job")]


def test_an_entry_set_while_the_app_runs_is_looked_at(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Here always. Peer: scheduler_spec.rb, "reloads the schedule from redis after 5 seconds"."""
    app.schedules.tick()
    app.schedules.put("job", worker, id="job", every=MINUTE)
    clock.advance(61.0)
    assert [("job", 60.0, "pushed")] == fired(app.schedules.tick())


def test_an_entry_is_set_by_its_name(app: Lowkiq, worker: Any) -> None:
    """Peer: spec/sidekiq-scheduler/schedule_spec.rb, "set_schedule can set an individual schedule"."""
    app.schedules.put("super_job", worker, id="super", cron="* * * * *")
    assert ["super_job"] == [view.name for view in app.schedules.all()]


def test_nothing_is_there_before_something_is_set(app: Lowkiq, worker: Any) -> None:
    """Peer: spec/sidekiq-scheduler/schedule_spec.rb, ".get_schedule when no schedules are previously set"."""
    assert [] == app.schedules.all(worker)


def test_an_entry_is_removed(app: Lowkiq, worker: Any) -> None:
    """Peer: spec/sidekiq-scheduler/schedule_spec.rb, "removes a schedule from redis"."""
    app.schedules.put("old_job", worker, id="old", cron="* * * * *")
    app.schedules.remove(worker, "old_job")
    assert [] == app.schedules.all(worker)


def test_an_entry_is_run_by_its_name(app: Lowkiq, worker: Any) -> None:
    """Peer: spec/sidekiq-scheduler/web_spec.rb, "enqueues particular job"."""
    app.every(MINUTE, worker, id="job", payload={"x": 1})
    assert "job" == app.schedules.run("job").id
    with pytest.raises(NoSuchEntry):
        app.schedules.run("other")


def test_all_are_switched_off_and_on(app: Lowkiq, worker: Any) -> None:
    """Peer: spec/sidekiq-scheduler/web_spec.rb, "with «disable all» button toggles jobs enabled flag to false"."""
    for id in ("one", "two"):
        app.every(MINUTE, worker, id=id)
    app.schedules.disable_all(worker)
    assert [False, False] == [view.is_on for view in app.schedules.all()]
    app.schedules.enable_all(worker)
    assert [True, True] == [view.is_on for view in app.schedules.all()]


def test_an_entry_may_start_disabled(app: Lowkiq, worker: Any) -> None:
    """Peer: spec/sidekiq-scheduler/job_presenter_spec.rb, "#enabled? when the job is disabled"."""
    app.every(MINUTE, worker, id="job", enabled=False)
    assert [(False, None)] == [(view.is_on, view.next) for view in app.schedules.all()]


def test_entries_are_listed_in_the_order_of_their_names(app: Lowkiq, worker: Any) -> None:
    """Peer: job_presenter_spec.rb, "initializes an object with the job's data in alphabetical order"."""
    for id in ("b", "c", "a"):
        app.every(MINUTE, worker, id=id)
    assert ["a", "b", "c"] == [view.name for view in app.schedules.all()]
