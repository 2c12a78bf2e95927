"""sidekiq-cron 2.3.1: each test is one of its cases, with entries of this library in place of its jobs."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda import DeclarationError, Lowkiq
from lowkiq_lambda.base.errors import NoSuchEntry
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.schedules.times import parse_cron
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.firing import MINUTE, NOON, at_noon, fired, outcomes
from tests.kit.handlers import Notes
from tests.kit.web import Browser
from tests.kit.workers import declare

EVERY_MINUTE = "* * * * *"
SECRET = "o" * 20


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, clock: ManualClock) -> Any:
    """A worker, at noon."""
    at_noon(clock)
    return declare(app, queue_name, Notes())


@pytest.fixture
def lenient(make_app: MakeApp) -> Lowkiq:
    """An app that loads the entries beside a bad one, as sidekiq-cron does."""
    return make_app(bad_entries="report")


def names(app: Lowkiq) -> list[str]:
    """Of all entries."""
    return [view.name for view in app.schedules.all()]


def states(app: Lowkiq) -> list[bool]:
    """Whether each is on."""
    return [view.is_on for view in app.schedules.all()]


def ticks(app: Lowkiq, clock: ManualClock, *later: float) -> list[list[tuple[str, float, str]]]:
    """What fires so many seconds after noon, look by look."""
    looks = []
    for seconds in later:
        at_noon(clock, seconds)
        looks.append(fired(app.schedules.tick()))
    return looks


def api(app: Lowkiq, clock: ManualClock, path: str, **body: Any) -> Any:
    """The answer of the API to an operator's program."""
    served = dashboard(app, auth=Auth(tokens=[Token("robot", SECRET, "operator")]), clock=clock)
    robot = Browser(served, headers={"authorization": f"Bearer {SECRET}", "content-type": "application/json"})
    return robot.ask("POST", f"/api/v1/{path}", {}, json.dumps(body).encode()).json


def test_an_entry_without_a_valid_cron_is_not_valid(app: Lowkiq, worker: Any) -> None:
    """Here the error comes at once. Peer: test/unit/job_test.rb, "return false on valid? with invalid cron"."""
    with pytest.raises(DeclarationError, match=r"cron '\* s \*' is not an expression"):
        app.schedules.put("test", worker, id=1, cron="* s *")


def test_an_entry_that_is_not_valid_is_not_saved(app: Lowkiq, worker: Any) -> None:
    """Nothing is made. Peer: test/unit/job_test.rb, "return false on save"."""
    with pytest.raises(DeclarationError):
        app.schedules.put("test", worker, id=1, cron="")
    assert [] == names(app)


def test_a_phrase_is_refused_with_its_expression() -> None:
    """Ours differs: theirs takes it. Peer: test/unit/job_test.rb, "should support natural language format"."""
    with pytest.raises(DeclarationError, match=r"did you mean '0 \*/3 \* \* \*'\?"):
        parse_cron("every 3 hours")


def test_two_times_in_a_phrase_are_refused() -> None:
    """Peer: test/unit/job_test.rb, "is invalid when parsing multiple cron lines in strict mode"."""
    with pytest.raises(DeclarationError, match="it must have five fields"):
        parse_cron("every Wednesday at 5:30 and 6:45")


def test_an_expression_is_taken_as_it_is() -> None:
    """Peer: test/unit/job_test.rb, "should suppport cron format in strict mode"."""
    assert [NOON + 55 * MINUTE, NOON + 115 * MINUTE] == [*islice(parse_cron("55 * * * *").after(NOON), 2)]


def test_the_last_minute_is_the_last_planned_time(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "return previous minute"."""
    app.cron(EVERY_MINUTE, worker, id="test")
    ticks(app, clock, 0.0, 5 * MINUTE + 56.0)
    assert [NOON + 5 * MINUTE] == [view.last for view in app.schedules.all()]


def test_the_last_time_of_an_hour_is_the_last_planned_time(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "return previous hour"."""
    app.cron("1 * * * *", worker, id="test")
    ticks(app, clock, 0.0, 24 * MINUTE)
    assert [NOON + MINUTE] == [view.last for view in app.schedules.all()]


def test_the_last_time_of_a_day_goes_by_the_zone_in_the_line(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "return previous day"."""
    app.cron("1 2 * * * Etc/GMT", worker, id="test")
    ticks(app, clock, 0.0, 14 * 3_600.0 + 24 * MINUTE)
    assert [NOON + 14 * 3_600.0 + MINUTE] == [view.last for view in app.schedules.all()]


def test_the_planned_time_is_the_score_of_the_job(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Ours needs no option for it. Peer: test/unit/job_test.rb, "be initialized with 'class' and date_as_argument"."""
    app.cron(EVERY_MINUTE, worker, id="test", payload=["arg1"])
    ticks(app, clock, 0.0, 61.0)
    (job,) = app.operate(worker).waiting.fetch(["test"])
    assert (["arg1"], NOON + 60.0) == (job.payloads[0].payload, job.payloads[0].score)


def test_an_entry_is_enabled_when_it_is_made(app: Lowkiq, worker: Any) -> None:
    """Peer: test/unit/job_test.rb, "be created and enabled"."""
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE)
    assert [True] == states(app)


def test_an_entry_is_enabled_and_disabled(app: Lowkiq, worker: Any) -> None:
    """Peer: test/unit/job_test.rb, "be created and then enabled and disabled"."""
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE)
    app.schedules.enable(worker, "test")
    assert [True] == states(app)
    app.schedules.disable(worker, "test")
    assert [False] == states(app)


def test_an_entry_is_made_disabled(app: Lowkiq, worker: Any) -> None:
    """Peer: test/unit/job_test.rb, "be created with status disabled"."""
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE, enabled=False)
    assert [False] == states(app)


def test_an_entry_stays_disabled_for_everybody(make_app: MakeApp, worker: Any, app: Lowkiq, queue_name: str) -> None:
    """Peer: test/unit/job_test.rb, "be created with status enabled and disable it afterwards"."""
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE)
    app.schedules.disable(worker, "test")
    other = make_app()
    declare(other, queue_name, Notes())
    assert ([False], [False]) == (states(app), states(other))


def test_a_put_again_does_not_switch_it_on(app: Lowkiq, worker: Any) -> None:
    """Peer: test/unit/job_test.rb, "status shouldn't be rewritten after save without status"."""
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE)
    app.schedules.disable(worker, "test")
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE)
    assert [False] == states(app)


def test_a_put_again_keeps_the_last_time(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "last_enqueue_time shouldn't be rewritten after save"."""
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE)
    ticks(app, clock, 61.0)
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE)
    assert [NOON + 60.0] == [view.last for view in app.schedules.all()]


def test_three_entries_are_three(app: Lowkiq, worker: Any) -> None:
    """Peer: test/unit/job_test.rb, "create first three jobs"."""
    for name in ("test", "test2", "test3"):
        app.schedules.put(name, worker, id=1, cron=EVERY_MINUTE)
    assert ["test", "test2", "test3"] == names(app)


def test_a_name_is_put_once(app: Lowkiq, worker: Any) -> None:
    """Peer: test/unit/job_test.rb, "create first three jobs - 1 has same name"."""
    for name in ("test", "test2", "test"):
        app.schedules.put(name, worker, id=1, cron=EVERY_MINUTE)
    assert ["test", "test2"] == names(app)


def test_an_entry_is_removed_by_its_name(app: Lowkiq, worker: Any) -> None:
    """Peer: test/unit/job_test.rb, "return destroy by string name"."""
    app.schedules.put("test", worker, id=1, cron=EVERY_MINUTE)
    app.schedules.remove(worker, "test")
    assert [] == names(app)


def test_a_name_that_nobody_has_is_an_error(app: Lowkiq, worker: Any) -> None:
    """Theirs returns false. Peer: test/unit/job_test.rb, "return false on destroying nonexisting"."""
    with pytest.raises(NoSuchEntry):
        app.schedules.remove(worker, "nonexisting")


def test_an_entry_that_left_the_code_does_not_fire(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Those made at run time stay. Peer: test/unit/job_test.rb, "be destroyed removed job that not exists in args"."""
    at_noon(clock)
    old, new = make_app(), make_app()
    workers = [declare(one, queue_name, Notes()) for one in (old, new)]
    old.cron(EVERY_MINUTE, workers[0], id="erased")
    for one, worker in zip((old, new), workers, strict=True):
        one.cron(EVERY_MINUTE, worker, id="remains")
    old.schedules.put("dynamic", workers[0], id="dynamic", cron=EVERY_MINUTE)
    old.schedules.tick()
    assert [["dynamic", "remains"]] == [sorted(one[0] for one in look) for look in ticks(new, clock, 61.0)]


def test_a_disabled_entry_never_fires(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "be always false when status is disabled"."""
    app.cron(EVERY_MINUTE, worker, id="test", enabled=False)
    assert [[], [], []] == ticks(app, clock, 0.0, 60.0, 120.0)


def test_a_time_fires_once(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "be false for same times"."""
    app.cron(EVERY_MINUTE, worker, id="test")
    assert [[], [("test", 60.0, "pushed")], [], []] == ticks(app, clock, 0.0, 60.0, 60.0, 60.0)


def test_the_next_time_fires_again(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "be false for same times but true for next time"."""
    app.cron(EVERY_MINUTE, worker, id="test")
    looks = ticks(app, clock, 0.0, 60.0, 60.0, 195.0, 195.0, 295.0, 295.0)
    assert [[], [60.0], [], [180.0], [], [240.0], []] == [[one[1] for one in look] for look in looks]


def test_a_time_before_the_entry_was_there_never_fires(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "should not enqueue jobs that are past"."""
    app.cron("0 1,12 * * *", worker, id="test")
    assert [[], []] == ticks(app, clock, 120.0, 180.0)


def test_a_late_time_fires_within_its_grace(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "should enqueue jobs that are within reschedule grace period"."""
    app.cron("10 * * * *", worker, id="strict", grace=60)
    app.cron("10 * * * *", worker, id="lenient", grace=3_600)
    assert [[], [("lenient", 600.0, "pushed")]] == ticks(app, clock, 0.0, 1_800.0)


def test_a_put_just_before_a_time_does_not_skip_it(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/job_test.rb, "doesnt skip enqueuing if job is resaved near next enqueue time"."""
    app.schedules.put("test", worker, id="test", cron=EVERY_MINUTE)
    ticks(app, clock, 60.0)
    at_noon(clock, 3_599.0)
    app.schedules.put("test", worker, id="test", cron=EVERY_MINUTE)
    assert [[3_600.0]] == [[one[1] for one in look] for look in ticks(app, clock, 3_630.0)]


def test_only_the_last_decisions_are_kept(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Theirs keeps a day of them. Peer: test/unit/job_test.rb, "remove old enqueue times + should be enqeued"."""
    app.cron(EVERY_MINUTE, worker, id="test")
    ticks(app, clock, *(60.0 * number for number in range(13)))
    assert [60.0 * number for number in range(3, 13)] == [planned for planned, _ in outcomes(app, worker, "test")]


def test_a_bad_entry_of_a_file_is_reported_and_the_other_loads(
    lenient: Lowkiq, queue_name: str, tmp_path: Path
) -> None:
    """Peer: test/unit/job_test.rb, "return errors on loaded jobs"."""
    declare(lenient, queue_name, Notes())
    file = tmp_path / "schedule.toml"
    head = f'worker = "{queue_name}"\nid = 1\n'
    file.write_text(f'[name_of_job]\n{head}cron = "bad cron"\n[other]\n{head}cron = "*/5 * * * *"\n')
    lenient.entries_from(file)
    assert ["other"] == [entry.name for entry in lenient.schedules.declared]
    (problem,) = lenient.schedules.check()
    assert "cron 'bad cron' is not an expression" in problem


def test_a_file_loaded_twice_is_an_error(app: Lowkiq, worker: Any, queue_name: str, tmp_path: Path) -> None:
    """Ours differs: a name is declared once. Peer: test/unit/job_test.rb, "duplicate jobs are not loaded"."""
    file = tmp_path / "schedule.toml"
    file.write_text(f'[test]\nworker = "{queue_name}"\nid = 1\ncron = "* * * * *"\n')
    app.entries_from(file)
    with pytest.raises(DeclarationError, match="has a schedule entry 'test' already"):
        app.entries_from(file)
    assert [worker.queue_name] == [entry.queue_name for entry in app.schedules.declared]


def test_entries_made_at_run_time_survive_a_load(make_app: MakeApp, worker: Any, app: Lowkiq, queue_name: str) -> None:
    """Peer: test/unit/job_test.rb, "dynamic jobs are not cleared"."""
    app.schedules.put("dynamic", worker, id=1, cron=EVERY_MINUTE)
    for _ in range(2):
        deployed = make_app()
        deployed.cron(EVERY_MINUTE, declare(deployed, queue_name, Notes()), id="code")
        assert ["code", "dynamic"] == names(deployed)


def test_all_are_removed_at_once(app: Lowkiq, worker: Any) -> None:
    """Peer: test/unit/job_test.rb, "create new jobs and then destroy them all"."""
    for name in ("name_of_job", "other"):
        app.schedules.put(name, worker, id=1, cron=EVERY_MINUTE)
    assert (["name_of_job", "other"], []) == app.schedules.remove_all(worker)
    assert [] == names(app)


def test_new_entries_do_not_fire(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/poller_test.rb, "not enqueue any job - new jobs"."""
    at_noon(clock, 301.0)
    app.cron("*/2 * * * *", worker, id="test")
    app.cron("*/8 * * * *", worker, id="other")
    assert [[], []] == ticks(app, clock, 301.0, 330.0)


def test_only_the_entry_that_is_due_fires(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/poller_test.rb, "should enqueue only job with cron */2"."""
    at_noon(clock, 301.0)
    app.cron("*/2 * * * *", worker, id="test")
    app.cron("*/8 * * * *", worker, id="other")
    assert [[], [("test", 360.0, "pushed")]] == ticks(app, clock, 301.0, 361.0)


def test_both_fire_but_once_each(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Peer: test/unit/poller_test.rb, "should enqueue both jobs but only one time each"."""
    at_noon(clock, 481.0)
    app.cron("1-59/2 * * * *", worker, id="test")
    app.cron("*/20 * * * *", worker, id="other")
    looks = ticks(app, clock, 481.0, 1_201.0, 1_202.0, 1_220.0)
    assert [[], [("other", 1_200.0), ("test", 1_140.0)], [], []] == [sorted(one[:2] for one in look) for look in looks]


def test_the_api_disables_and_enables_all(app: Lowkiq, worker: Any, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/web_extension_test.rb, "disable and enable all cron jobs"."""
    app.cron(EVERY_MINUTE, worker, id="test")
    for do, on in (("disable_all", False), ("enable_all", True)):
        assert {"is_on": on} == api(app, clock, f"schedules/{do}", queue=queue_name)
        assert [on] == states(app)


def test_the_api_runs_all(app: Lowkiq, worker: Any, clock: ManualClock, queue_name: str) -> None:
    """Ours leaves out those that are off. Peer: test/unit/web_extension_test.rb, "enqueue all jobs"."""
    for id, enabled in (("test", True), ("other", True), ("off", False)):
        app.cron(EVERY_MINUTE, worker, id=id, enabled=enabled)
    assert ["other", "test"] == sorted(
        one["id"] for one in api(app, clock, "schedules/run_all", queue=queue_name)["pushed"]
    )


def test_the_api_removes_all(app: Lowkiq, worker: Any, clock: ManualClock, queue_name: str) -> None:
    """Ours keeps those of code. Peer: test/unit/web_extension_test.rb, "destroy all jobs"."""
    app.cron(EVERY_MINUTE, worker, id="code")
    app.schedules.put("made", worker, id=1, cron=EVERY_MINUTE)
    assert {"removed": ["made"], "kept": ["code"]} == api(app, clock, "schedules/remove_all", queue=queue_name)
