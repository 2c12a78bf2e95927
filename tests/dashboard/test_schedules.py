"""Schedule entries on the dashboard and in its API."""

import json
import logging
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.firing import MINUTE, NOON, at_noon
from tests.kit.web import Answer, Browser

AUDIT = "lowkiq_lambda.audit"
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


def test_an_app_without_entries_has_no_link_to_them(browser: Browser, worker: Any) -> None:
    """The page itself says what an entry is."""
    assert "Schedules" not in browser.get("/").words
    assert "No schedule entries" in browser.get("/schedules").words
    assert [] == worker.app.schedules.declared


def test_the_page_warns_where_nobody_looks(app: Lowkiq, clock: ManualClock, polling: Any, browser: Browser) -> None:
    """Ticks by hand count for nothing: the page asks when a daemon or the dispatcher has looked."""
    assert "No process has looked at these entries yet" in browser.get("/schedules").words
    app.schedules.duty_runner(clock).run_due(lambda: 60.0)
    assert "No process has looked" not in browser.get("/schedules").words
    clock.advance(600.0)
    assert "for 10m" in browser.get("/schedules").words
    assert polling.queue_name in browser.get("/schedules").text


def test_an_entry_is_switched_and_run_from_its_page(
    app: Lowkiq, polling: Any, browser: Browser, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """X-9: asked first, then done, noted in the audit log and in the entry's history."""
    caplog.set_level(logging.INFO, AUDIT)
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
    ran = act(robot, "schedule/run_now", **poll).json
    assert ("7", True) == (ran["id"], ran["merged"])
    assert {"removed": True} == act(robot, "schedule/remove", queue=queue_name, name="made").json
    answers = [act(robot, f"schedule/{do}", queue=queue_name, name="made") for do in ("remove", "enable", "run_now")]
    assert [(404, "unknown_entry")] * 3 == [(answer.status, answer.json["code"]) for answer in answers]
    assert 404 == robot.get(f"/api/v1/schedule?queue={queue_name}&name=made").status
