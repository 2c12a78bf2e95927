"""The form of a schedule entry: tried, refused beside the field, saved."""

import logging
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.firing import at_noon
from tests.kit.web import Browser

TYPED = {"name": "nightly", "id": "8", "kind": "cron", "times": "0 4 * * *", "tz": "UTC", "payload": '{"a":1}'}


@pytest.fixture
def queue(worker: Any, clock: ManualClock) -> str:
    """The name of the worker's queue, at noon."""
    at_noon(clock)
    return str(worker.queue_name)


def test_an_entry_is_tried_and_saved(
    app: Lowkiq, queue: str, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """The try changes nothing and keeps what was typed; the saved entry is on its page, and in the log."""
    caplog.set_level(logging.INFO, "lowkiq_lambda.activity")
    assert "New entry of queue-" in browser.get("/schedules").words
    page = browser.send("/actions/entry", {**TYPED, "queue": queue, "do": "try", "reason": "cleaning"})
    assert 200 == page.status
    assert 5 == page.words.count(" 04:00:00")
    assert 'value="0 4 * * *"' in page.text
    assert 'value="cleaning"' in page.text
    assert ([], []) == (app.schedules.all(), caplog.records)

    saved = browser.send("/actions/entry", {**TYPED, "queue": queue, "do": "save", "reason": "cleaning"})
    (view,) = app.schedules.all()
    assert view.entry is not None
    assert ("nightly", "8", {"a": 1}, "run time") == (view.name, view.entry.id, view.entry.payload, view.source)
    assert "Change…" in browser.follow(saved).words
    (line,) = caplog.records
    assert ("olga", "put", "cleaning") == (line.who, line.action, line.reason)  # type: ignore[attr-defined]  # the log sets it
    assert (line.address, bool(line.session)) == ("127.0.0.1", True)  # type: ignore[attr-defined]  # the log sets it


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": " "}, "Give the entry a name."),
        ({"id": ""}, "Give the id of the job."),
        ({"times": "every now and then"}, "every now"),
        ({"times": "0 0 31 2 *"}, "0 0 31 2"),
        ({"tz": "Mars/Olympus"}, "Mars/Olympus"),
        ({"payload": "{"}, "The payload is not JSON"),
    ],
)
def test_a_field_that_cannot_be_is_refused(
    app: Lowkiq, queue: str, browser: Browser, wrong: dict[str, str], sentence: str
) -> None:
    """In a sentence beside it; all that was typed stays, and nothing is made."""
    (field,) = wrong
    typed = {**TYPED, **wrong, "queue": queue}
    for do in ("try", "save"):
        page = browser.send("/actions/entry", {**typed, "do": do})
        assert (400, True) == (page.status, f'<p id="{field}-hint" class="wrong">' in page.text)
        assert sentence in page.words
        assert all(f'value="{typed[name]}"' in page.text for name in ("name", "id", "times", "tz"))
    assert [] == app.schedules.all()


def test_an_entry_is_changed(app: Lowkiq, worker: Any, queue: str, browser: Browser) -> None:
    """Options that the form does not have stay; a new entry never replaces another."""
    app.schedules.put("made", worker, id="9", every=3600, offset=60, missed="skip", payload=[1])
    page = browser.get(f"/actions/entry?{urlencode({'queue': queue, 'name': 'made'})}")
    assert 'value="3600+60"' in page.text
    refused = browser.send("/actions/entry", {**TYPED, "name": "made", "queue": queue, "do": "save"})
    assert (400, True) == (refused.status, "The queue has an entry of this name" in refused.words)

    typed = {"id": "9", "kind": "every", "times": "15 min", "tz": "UTC", "payload": "[2]"}
    assert 303 == browser.send("/actions/entry", {**typed, "replaces": "made", "queue": queue, "do": "save"}).status
    (view,) = app.schedules.all()
    assert view.entry is not None
    assert ("900", [2], "skip") == (view.entry.times.text, view.entry.payload, view.entry.missed)


def test_a_hidden_payload_stays(app: Lowkiq, worker: Any, queue: str, make_browser: MakeBrowser) -> None:
    """The form does not have it, and an empty field does not replace it."""
    app.schedules.put("made", worker, id="9", every=3600, payload="no-4711")
    browser = make_browser(mask=lambda *_: "***")
    assert "no-4711" not in browser.get(f"/actions/entry?{urlencode({'queue': queue, 'name': 'made'})}").text
    typed = {"id": "9", "kind": "every", "times": "1 h", "tz": "UTC", "payload": "", "replaces": "made"}
    assert 303 == browser.send("/actions/entry", {**typed, "queue": queue, "do": "save"}).status
    assert ["no-4711"] == [view.entry.payload for view in app.schedules.all() if view.entry]


def test_a_reader_cannot(app: Lowkiq, queue: str, worker: Any, make_browser: MakeBrowser) -> None:
    """Neither try nor save; nor does the form change an entry of code."""
    app.every(60, worker, id="7", name="coded")
    reader = make_browser(READER)
    assert "New entry" not in reader.get("/schedules").words
    assert 403 == reader.send("/actions/entry", {**TYPED, "queue": queue, "do": "save"}).status
    of_code = make_browser().get(f"/actions/entry?{urlencode({'queue': queue, 'name': 'coded'})}")
    assert (400, True) == (of_code.status, "only code changes it" in of_code.words)
    assert ["coded"] == [view.name for view in app.schedules.all()]


def test_an_entry_may_start_off(app: Lowkiq, queue: str, browser: Browser) -> None:
    """A box of the form says so, and is checked when the entry is changed; times may name their zone."""
    typed = {**TYPED, "queue": queue, "off": "1", "times": "0 4 * * * Europe/Berlin", "tz": "Europe/Berlin"}
    browser.send("/actions/entry", {**typed, "do": "save"})
    (view,) = app.schedules.all()
    assert view.entry is not None
    assert (False, False, "0 4 * * * Europe/Berlin") == (view.is_on, view.entry.enabled, view.entry.times.declared)
    page = browser.get(f"/actions/entry?{urlencode({'queue': queue, 'name': 'nightly'})}")
    assert 'name="off" value="1" checked' in page.text
    browser.send("/actions/entry", {**typed, "off": "", "replaces": "nightly", "do": "save"})
    assert [True] == [view.is_on for view in app.schedules.all()]
