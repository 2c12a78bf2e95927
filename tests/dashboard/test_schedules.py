"""Schedule entries on the dashboard and in its API."""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.schedules.entry import new_entry
from lowkiq_lambda.schedules.times import parse_every
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.apps import close_app
from tests.kit.firing import MINUTE, NOON, at_noon
from tests.kit.handlers import FailingHandler
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

ACTIVITY = "lowkiq_lambda.activity"
NOBODY = "No daemon and no housekeeping run has looked at the schedule entries"
PAGES = ("/", "/schedules")
SECRET = "o" * 20


@pytest.fixture
def polling(app: Lowkiq, clock: ManualClock, worker: Any) -> Any:
    """A worker with an entry of code that has fired once, and one made at run time."""
    at_noon(clock)
    app.every(MINUTE, worker, id="7", name="poll", description="Asks the shop")
    app.schedules.put("made", worker, cron="0 4 * * *", id="8", tz="Europe/Berlin")
    app.schedules.tick()
    clock.advance(60.0)
    app.schedules.tick()
    return worker


def warned(browser: Browser, path: str) -> str:
    """The sentence of the page about nobody who looks; empty without one."""
    found = re.search(rf"{NOBODY}[^.]*\.", browser.get(path).words)
    return found[0] if found else ""


def asked(browser: Browser, queue: str, name: str, do: str) -> Answer:
    """The question of an action."""
    return browser.get(f"/actions/schedule?{urlencode({'queue': queue, 'name': name, 'do': do})}")


def order(browser: Browser, queue: str, name: str, do: str) -> Answer:
    """What its form sends."""
    return browser.send("/actions/schedule", {"queue": queue, "name": name, "do": do})


def test_x9_the_page_lists_all_entries(polling: Any, browser: Browser, queue_name: str) -> None:
    """X-9: with their times in English, the next and the last planned time, and the outcome."""
    page = browser.get("/schedules").words
    assert "poll" in page
    assert "Europe/Berlin" in page
    assert "pushed" in page
    assert polling.queue_name == queue_name
    assert "Schedules" in browser.get("/").words


def test_an_app_without_entries_is_told_what_one_is(browser: Browser, worker: Any) -> None:
    """The overview leads to the page, which says how an entry is made; nobody is missed who would fire none."""
    overview = browser.get("/")
    assert "schedules" in overview.text
    assert NOBODY not in overview.words
    page = browser.get("/schedules").words
    assert "No schedule entries" in page
    assert "app.schedules.put" in page
    assert NOBODY not in page
    assert [] == worker.app.schedules.declared


def test_pages_warn_where_nobody_looks(app: Lowkiq, clock: ManualClock, polling: Any, browser: Browser) -> None:
    """An app that ticks by itself fires entries, too; what counts is the last look, however it was made."""
    assert [""] * 2 == [warned(browser, path) for path in PAGES]
    clock.advance(600.0)
    assert [f"{NOBODY} for 10m."] * 2 == [warned(browser, path) for path in PAGES]
    app.schedules.duty_runner(clock).run_due(lambda: 60.0)
    assert [""] * 2 == [warned(browser, path) for path in PAGES]
    clock.advance(240.0)
    assert [f"{NOBODY} for 4m."] * 2 == [warned(browser, path) for path in PAGES]
    assert "Run a daemon or a stack that does housekeeping" in browser.get("/schedules").words
    assert polling.queue_name in browser.get("/schedules").text


def test_pages_warn_also_where_this_process_fires_nothing(
    make_browser: MakeBrowser, server_url: str, queue_name: str, clock: ManualClock
) -> None:
    """With LOWKIQ_SCHEDULES=0 everywhere nobody fires what the code declares: overview and list say so."""
    silent = Lowkiq(Config(redis_url=server_url, schedules=False), clock=clock)
    silent.every(MINUTE, declare(silent, queue_name, FailingHandler()), id="7")
    browser = make_browser(app=silent)
    assert [f"{NOBODY} yet."] * 2 == [warned(browser, path) for path in PAGES]
    assert "For this dashboard LOWKIQ_SCHEDULES is false" in browser.get("/schedules").words
    close_app(silent)


def test_entries_made_at_run_time_alone_need_a_setting(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """Where code declares none, the page names the setting with which a process fires the others."""
    app.schedules.put("made", worker, cron="0 4 * * *", id="8")
    page = browser.get("/schedules").words
    assert f"{NOBODY} yet." in page
    assert "only where LOWKIQ_SCHEDULES is true" in page


def test_last_and_its_outcome_tell_of_one_moment(
    app: Lowkiq, clock: ManualClock, polling: Any, browser: Browser
) -> None:
    """A run that somebody asked for is in the history, and is not the outcome of the last planned time."""
    app.schedules.run("poll", worker=polling)
    (poll,) = [view for view in app.schedules.all(polling) if view.name == "poll"]
    assert ["run now", "pushed"] == [one.outcome for one in poll.history]
    assert (NOON + 60.0, "pushed") == (poll.last, poll.last_decision and poll.last_decision.outcome)
    assert "12:01:00 UTC pushed" in browser.get("/schedules").words
    clock.advance(200.0)
    app.schedules.tick()
    assert "12:04:00 UTC merged, 2 earlier let go" in browser.get("/schedules").words


def test_a_history_tells_what_a_decision_let_go(
    app: Lowkiq, clock: ManualClock, polling: Any, make_browser: MakeBrowser
) -> None:
    """X-6: planned times that a newer one replaced are on the page, as a number."""
    clock.advance(180.0)
    app.schedules.tick()
    assert (
        "with 2 earlier, which never fire"
        in make_browser().get(f"/schedule?queue={polling.queue_name}&name=poll").words
    )


def test_an_entry_of_other_code_was_last_seen_when_it_last_fired(
    app: Lowkiq, clock: ManualClock, worker: Any, queue_name: str, make_browser: MakeBrowser
) -> None:
    """Shards note seldom that an entry is declared; whoever fires it declares it."""
    at_noon(clock)
    other = Lowkiq(app.config, clock=clock)
    other.every(MINUTE, declare(other, queue_name, FailingHandler()), id="7", name="gone")
    other.schedules.tick()
    clock.advance(120.0)
    other.schedules.tick()
    close_app(other)
    clock.advance(30.0)
    (view,) = app.schedules.all(worker)
    assert ("other code", NOON + 120.0, NOON + 120.0) == (view.source, view.last, view.seen_at)
    browser = make_browser()
    page = browser.get("/schedules").words
    assert "declared by other code, last seen 2027-01-15 12:02:00 UTC" in page
    assert NOBODY not in page
    assert "Run now" not in browser.get(f"/schedule?queue={queue_name}&name=gone").words


def test_the_page_of_an_entry_shows_its_payload_masked(app: Lowkiq, worker: Any, make_browser: MakeBrowser) -> None:
    """The mask gets the payload as a handler does, and pages show what it returns."""
    app.every(MINUTE, worker, id="7", payload={"shops": (1, 2), "token": SECRET})
    seen = []

    def mask(queue: str, job_id: str, payload: Any) -> Any:
        seen.append((queue, job_id, payload))
        return {**payload, "token": "…"}

    page = make_browser(mask=mask).get(f"/schedule?queue={worker.queue_name}&name=7")
    assert '"token": "…"' in page.words
    assert SECRET not in page.text
    assert [(worker.queue_name, "7", {"shops": [1, 2], "token": SECRET})] == seen


def test_planned_times_are_shown_in_the_zone_of_the_entry(
    app: Lowkiq, clock: ManualClock, worker: Any, make_browser: MakeBrowser
) -> None:
    """Beside the viewer's, and with what the clocks do to them: in spring one is moved to the end of the gap."""
    clock.advance(datetime(2027, 3, 26, 12, tzinfo=UTC).timestamp() - clock.time())
    app.cron("30 2 * * *", worker, id="7", tz="Europe/Berlin")
    browser = make_browser()
    page = browser.get(f"/schedule?queue={worker.queue_name}&name=7").words
    assert (
        "2027-03-28 01:00:00 UTC Sun 2027-03-28 03:00:00 +02:00 in place of 02:30, which the clocks leave out" in page
    )
    assert "2027-03-29 00:30:00 UTC Mon 2027-03-29 02:30:00 +02:00" in page
    assert "Sat 2027-03-27 02:30:00 +01:00" in browser.get("/schedules").words


def test_the_page_of_an_entry_that_is_over_says_so(
    app: Lowkiq, clock: ManualClock, worker: Any, make_browser: MakeBrowser
) -> None:
    """Whether it has fired, or was declared too late for its only planned time."""
    at_noon(clock)
    app.at(datetime.fromtimestamp(NOON - 60.0, UTC), worker, id="7", name="late")
    app.at(datetime.fromtimestamp(NOON + 60.0, UTC), worker, id="7", name="done")
    app.schedules.tick()
    clock.advance(120.0)
    app.schedules.tick()
    browser = make_browser()
    late, done = (browser.get(f"/schedule?queue={worker.queue_name}&name={name}").words for name in ("late", "done"))
    assert "None: its only planned time had passed before the entry was there" in late
    assert "None: its only planned time has passed. The entry does nothing any more." in done
    assert "none any more" in browser.get("/schedules").words


def test_an_entry_that_cannot_be_pushed_says_why(app: Lowkiq, worker: Any, browser: Browser, robot: Browser) -> None:
    """A declaration checks no payload, so pages and API do."""
    app.every(MINUTE, worker, id="7", payload={1, 2})
    assert "cannot fire" in browser.get("/schedules").words
    assert "It cannot fire." in browser.get(f"/schedule?queue={worker.queue_name}&name=7").words
    (entry,) = robot.get("/api/v1/schedules").json
    assert "payload" in entry["problem"]


def test_an_entry_with_an_unknown_zone_hides_no_other(app: Lowkiq, polling: Any, browser: Browser) -> None:
    """Another machine may know more zones: the pages stand one that there is not here, and say what is wrong."""
    entry = new_entry(polling.queue_name, parse_every(MINUTE, tz="Mars/Olympus"), id="9", name="odd")
    app.schedules._timetable.add(entry, None)
    listed = browser.get("/schedules")
    assert 200 == listed.status
    assert "poll" in listed.words
    shown = browser.get(f"/schedule?queue={polling.queue_name}&name=odd")
    assert 200 == shown.status
    assert "'Mars/Olympus' is not a time zone" in shown.words


def test_x9_only_what_was_made_at_run_time_is_removed_on_its_page(
    app: Lowkiq, polling: Any, browser: Browser, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """X-9: asked first, and noted in the activity log; the page of an entry of code says why it has no button."""
    caplog.set_level(logging.INFO, ACTIVITY)
    assert "only code changes or removes it" in browser.get(f"/schedule?queue={queue_name}&name=poll").words
    assert [400, 404] == [
        asked(browser, queue_name, "poll", "remove").status,
        order(browser, queue_name, "poll", "remove").status,
    ]
    assert "Remove…" in browser.get(f"/schedule?queue={queue_name}&name=made").words
    assert "It never fires again" in asked(browser, queue_name, "made", "remove").words
    assert "made" not in browser.follow(order(browser, queue_name, "made", "remove")).words
    assert [("remove", "schedule entry 'made'")] == [
        (record.__dict__["action"], record.__dict__["target"]) for record in caplog.records
    ]
    assert ["poll"] == [view.name for view in app.schedules.all(polling)]


def test_x9_all_entries_of_a_queue_are_switched_at_once(
    app: Lowkiq, polling: Any, browser: Browser, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """X-9: the question says how many change, the activity log how many did."""
    caplog.set_level(logging.INFO, ACTIVITY)
    app.schedules.disable(polling, "made")
    assert f"1 of 2 entries of {queue_name}. The others" in asked(browser, queue_name, "", "disable_all").words
    browser.follow(order(browser, queue_name, "", "disable_all"))
    assert [False, False] == [view.is_on for view in app.schedules.all(polling)]
    assert f"2 of 2 entries of {queue_name}. Each fires" in asked(browser, queue_name, "", "enable_all").words
    browser.follow(order(browser, queue_name, "", "enable_all"))
    assert [True, True] == [view.is_on for view in app.schedules.all(polling)]
    assert [("disable", 1), ("enable", 2)] == [
        (record.__dict__["action"], record.__dict__["changed"]) for record in caplog.records
    ]
    assert 404 == asked(browser, "unknown", "", "disable_all").status


def test_x9_ticked_entries_of_a_queue_are_switched_at_once(
    app: Lowkiq, polling: Any, browser: Browser, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """X-9: asked first, by their names, whatever is in them; where none is ticked, nothing is done."""
    caplog.set_level(logging.INFO, ACTIVITY)
    odd = 'a "b" %41'
    app.schedules.put(odd, polling, every=MINUTE, id="9")
    assert 'name="names" form="entries-1" value="a &#34;b&#34; %41"' in browser.get("/schedules").text
    ticked = {"queue": queue_name, "do": "disable_ticked", "names": [odd, "made"]}
    question = browser.get(f"/actions/schedule?{urlencode(ticked, doseq=True)}")
    assert f"2 of 2 entries of {queue_name}. a" in question.words
    assert "made None fires until" in question.words
    assert 'value="a &#34;b&#34; %41"' in question.text
    browser.follow(browser.send("/actions/schedule", ticked))
    assert {"poll"} == {view.name for view in app.schedules.all(polling) if view.is_on}
    browser.follow(browser.send("/actions/schedule", {**ticked, "do": "enable_ticked", "names": ["made"]}))
    assert {"poll", "made"} == {view.name for view in app.schedules.all(polling) if view.is_on}
    assert [("disable", 2, f"schedule entries {odd!r}, 'made'"), ("enable", 1, "schedule entries 'made'")] == [
        tuple(record.__dict__[name] for name in ("action", "changed", "target")) for record in caplog.records
    ]
    assert [400, 400, 404] == [
        asked(browser, queue_name, "", "disable_ticked").status,
        order(browser, queue_name, "", "disable_ticked").status,
        browser.send("/actions/schedule", {**ticked, "names": ["unknown"]}).status,
    ]


def test_an_entry_is_switched_and_run_from_its_page(
    app: Lowkiq, polling: Any, browser: Browser, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """X-9: asked first, then done, noted in the activity log and in the entry's history."""
    caplog.set_level(logging.INFO, ACTIVITY)
    assert "does not fire until it is switched on" in asked(browser, queue_name, "poll", "disable").words
    assert "off" in browser.follow(order(browser, queue_name, "poll", "disable")).words
    assert [False] == [view.is_on for view in app.schedules.all(polling) if view.name == "poll"]
    order(browser, queue_name, "poll", "enable")
    assert "run now" in browser.follow(order(browser, queue_name, "poll", "run_now")).words
    assert ["disable", "enable", "run now"] == [record.__dict__["action"] for record in caplog.records]
    page = browser.get(f"/schedule?queue={queue_name}&name=poll").words
    assert "Asks the shop" in page
    assert [400, 404, 404, 404] == [
        order(browser, queue_name, "poll", "explode").status,
        order(browser, "unknown", "poll", "enable").status,
        order(browser, queue_name, "unknown", "enable").status,
        asked(browser, queue_name, "unknown", "enable").status,
    ]


def test_a_reader_is_shown_entries_and_changes_none(
    app: Lowkiq, make_browser: MakeBrowser, polling: Any, queue_name: str
) -> None:
    """The gate refuses the form, and the page has no button."""
    reader = make_browser(READER)
    assert "Switch off" not in reader.get(f"/schedule?queue={queue_name}&name=poll").text
    assert 403 == order(reader, queue_name, "poll", "disable").status
    assert all(view.is_on for view in app.schedules.all(polling))


@pytest.fixture
def robot(app: Lowkiq, clock: ManualClock) -> Browser:
    """An operator's program."""
    served = dashboard(app, auth=Auth(tokens=[Token("robot", SECRET, "operator")]), clock=clock)
    return Browser(served, headers={"authorization": f"Bearer {SECRET}"})


def act(robot: Browser, path: str, **body: Any) -> Answer:
    """Have it do something."""
    return robot.ask("POST", f"/api/v1/{path}", {"content-type": "application/json"}, json.dumps(body).encode())


def test_x9_the_api_tells_of_entries(robot: Browser, polling: Any, queue_name: str) -> None:
    """X-9: all of them, those of a queue, or one with its next ten planned times and its history."""
    entries = robot.get("/api/v1/schedules").json
    assert [("made", "run time", "cron", "0 4 * * *"), ("poll", "code", "every", "60")] == [
        (one["name"], one["source"], one["kind"], one["times"]) for one in entries
    ]
    assert ["0 4 * * * Europe/Berlin", "every 1 min"] == [one["declared"] for one in entries]
    assert entries == robot.get(f"/api/v1/schedules?queue={queue_name}").json
    one = robot.get(f"/api/v1/schedule?queue={queue_name}&name=poll").json
    assert (NOON + 60.0, NOON + 120.0) == (one["last"], one["next"])
    assert [NOON + 60.0 * number for number in range(2, 12)] == one["upcoming"]
    assert [{"planned": NOON + 60.0, "at": NOON + 60.0, "outcome": "pushed", "let_go": 0}] == one["history"]
    assert polling.queue_name == one["queue"]


def test_x24_the_api_switches_runs_and_removes(app: Lowkiq, robot: Browser, polling: Any, queue_name: str) -> None:
    """X-24: one entry, or all of a queue; what nobody knows is not found."""

    def on() -> list[bool]:
        return [view.is_on for view in app.schedules.all(polling)]

    poll = {"queue": queue_name, "name": "poll"}
    assert ({"is_on": False}, [True, False]) == (act(robot, "schedule/disable", **poll).json, on())
    assert ({"is_on": True}, [True, True]) == (act(robot, "schedule/enable", **poll).json, on())
    assert ({"is_on": False}, [False, False]) == (act(robot, "schedules/disable_all", queue=queue_name).json, on())
    assert ({"is_on": True}, [True, True]) == (act(robot, "schedules/enable_all", queue=queue_name).json, on())
    several = {"queue": queue_name, "names": ["poll", "made"]}
    assert ({"is_on": False}, [False, False]) == (act(robot, "schedules/disable_all", **several).json, on())
    assert 404 == act(robot, "schedules/enable_all", queue=queue_name, names=["poll", "unknown"]).status
    assert 400 == act(robot, "schedules/enable_all", queue=queue_name, names=[]).status
    assert [False, False] == on()
    assert ({"is_on": True}, [True, True]) == (act(robot, "schedules/enable_all", **several).json, on())
    ran = act(robot, "schedule/run_now", **poll).json
    assert ("7", True) == (ran["id"], ran["merged"])
    assert {"removed": True} == act(robot, "schedule/remove", queue=queue_name, name="made").json
    declared = act(robot, "schedule/remove", **poll)
    assert (404, True) == (declared.status, "only code removes it" in declared.json["detail"])
    answers = [act(robot, f"schedule/{do}", queue=queue_name, name="made") for do in ("remove", "enable", "run_now")]
    assert [(404, "unknown_entry")] * 3 == [(answer.status, answer.json["code"]) for answer in answers]
    assert 404 == robot.get(f"/api/v1/schedule?queue={queue_name}&name=made").status


def test_the_api_runs_and_removes_all_of_a_queue(
    app: Lowkiq, robot: Browser, polling: Any, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that are off do not run, and code keeps its own; each act is a line of the activity log."""
    caplog.set_level(logging.INFO, ACTIVITY)
    off = {"queue": queue_name, "name": "off", "id": "9", "every": 60, "enabled": False}
    put = act(robot, "schedule/put", **off).json
    ran = act(robot, "schedules/run_all", queue=queue_name).json
    gone = act(robot, "schedules/remove_all", queue=queue_name).json

    assert (False, False, False) == (put["enabled"], put["is_on"], put["is_switched"])
    assert [("7", True), ("8", False)] == sorted((one["id"], one["merged"]) for one in ran["pushed"])
    assert {"removed": ["made", "off"], "kept": ["poll"]} == gone
    assert [("run now", 2), ("remove", 2)] == [
        (record.__dict__["action"], record.__dict__["changed"]) for record in caplog.records[1:]
    ]
    assert ["poll"] == [view.name for view in app.schedules.all(polling)]


def test_pages_run_and_remove_all_of_a_queue(
    app: Lowkiq, polling: Any, browser: Browser, make_browser: MakeBrowser, queue_name: str
) -> None:
    """Each asks with the list of entries; a reader is refused."""
    app.schedules.put("off", polling, every=MINUTE, id="9", enabled=False)
    assert "Remove all made at run time…" in browser.get("/schedules").words
    assert [403, 403] == [order(make_browser(READER), queue_name, "", do).status for do in ("run_all", "remove_all")]
    question = asked(browser, queue_name, "", "run_all").words
    assert f"2 of 3 entries of {queue_name}. The others are off, or cannot fire. made poll The job of each" in question
    browser.follow(order(browser, queue_name, "", "run_all"))
    assert ["run now"] == [one.outcome for one in app.schedules.history(polling, "made")]
    question = asked(browser, queue_name, "", "remove_all").words
    assert f"2 of 3 entries of {queue_name}. The others are of code. made off They never fire again" in question
    page = browser.follow(order(browser, queue_name, "", "remove_all"))
    assert "Remove all" not in page.words
    assert ["poll"] == [view.name for view in app.schedules.all(polling)]


def test_the_page_of_an_entry_says_whose_word_its_state_is(
    app: Lowkiq, worker: Any, browser: Browser, queue_name: str
) -> None:
    """That of its declaration, until somebody switches it; then that of this person, whatever code declares."""
    app.every(MINUTE, worker, id="7", name="poll", enabled=False)

    def state() -> str:
        return browser.get(f"/schedule?queue={queue_name}&name=poll").words.split("State ")[1].split(" Fires")[0]

    assert "off as declared, until somebody switches it on" == state()
    order(browser, queue_name, "poll", "enable")
    assert "on as somebody switched it, which counts more than its declaration" == state()
    order(browser, queue_name, "poll", "disable")
    assert "off as somebody switched it" == state()


def test_a_broken_entry_is_on_the_pages_with_its_reason(
    make_browser: MakeBrowser, server_url: str, queue_name: str, clock: ManualClock
) -> None:
    """It has no times to show, and nobody takes it for an entry of other code."""
    lenient = Lowkiq(Config(redis_url=server_url, bad_entries="report"), clock=clock)
    lenient.cron("0 25 * * *", declare(lenient, queue_name, FailingHandler()), id="7", name="bad")
    browser = make_browser(app=lenient)
    page = browser.get(f"/schedule?queue={queue_name}&name=bad").words

    assert "its declaration cannot work cannot fire" in browser.get("/schedules").words
    assert "It cannot fire. cron '0 25 * * *' cannot have '25' as its hour" in page
    assert "None, as it cannot fire." in page
    close_app(lenient)


def test_x24_the_api_makes_and_replaces_entries(
    app: Lowkiq, robot: Browser, polling: Any, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """X-24: with the options of code; what is left out is as by default; each is noted in the activity log."""
    caplog.set_level(logging.INFO, ACTIVITY)
    shop = {"queue": queue_name, "name": "shop", "id": "7"}
    made = act(robot, "schedule/put", **shop, every=600, offset=30, payload={"n": 1}, missed="all", grace=90).json
    assert ("run time", "every", "600+30", {"n": 1}) == (
        made["source"],
        made["kind"],
        made["times"],
        made["payload"],
    )
    assert ("all", 90.0, NOON + 630.0) == (made["missed"], made["grace"], made["next"])
    moved = act(robot, "schedule/put", **shop, at="2027-01-15T13:00:00+01:00").json
    assert ("at", "2027-01-15T12:00:00+00:00", "once", "") == (
        moved["kind"],
        moved["times"],
        moved["missed"],
        moved["payload"],
    )
    assert moved == robot.get(f"/api/v1/schedule?queue={queue_name}&name=shop").json
    assert "2027-01-15T14:00:00+00:00" == act(robot, "schedule/put", **shop, at="2027-01-15T14:00").json["times"]
    assert NOON + 7_260 == act(robot, "schedule/put", **shop, at="in 2h").json["next"]
    first, second, *_ = (record.__dict__ for record in caplog.records)
    assert ("put", "schedule entry 'shop'", 600.0, 30.0) == tuple(
        first[field] for field in ("action", "target", "every", "offset")
    )
    assert ("put", "2027-01-15T13:00:00+01:00") == (second["action"], second["at"])
    assert ["made", "poll", "shop"] == [view.name for view in app.schedules.all(polling)]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "one of cron, every and at"),
        ({"cron": "0 4 * * *", "every": 60}, "one of cron, every and at"),
        ({"cron": "0 4 * * *", "offset": 5}, "offset goes with every alone"),
        ({"cron": "61 * * * *"}, "minute"),
        ({"cron": "0 4 * * *", "tz": "Europe/Atlantis"}, "Atlantis"),
        ({"at": 7}, "at must be a datetime"),
        ({"at": "soon"}, "at: 'soon' is not a moment: give "),
        ({"every": 60, "name": "poll"}, "Code declares"),
        ({"every": 60, "name": "a\nb"}, "printable"),
    ],
)
def test_the_api_refuses_entries_that_cannot_work(
    robot: Browser, polling: Any, queue_name: str, body: dict[str, Any], sentence: str
) -> None:
    """With the sentence that code gets, and nothing is made."""
    answer = act(robot, "schedule/put", **{"queue": queue_name, "name": "shop", "id": "7", **body})
    assert (400, "bad_entry") == (answer.status, answer.json["code"])
    assert sentence in answer.json["detail"]
    assert ["made", "poll"] == [one["name"] for one in robot.get("/api/v1/schedules").json]
    assert polling.queue_name == queue_name
