"""Payloads are edited by those who may, by a form or by the API."""

import json
from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.dashboard.security.auth import Account, Auth, Token
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import OPERATOR
from tests.kit.handlers import Notes
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

SECRET = "e" * 20
HOSTILE = "</textarea><script>alert(1)</script>"


def browser_of(app: Lowkiq, clock: ManualClock, *editors: str) -> Browser:
    """A browser of an operator, if these may edit; its programs have a token."""
    auth = Auth([Account("olga", OPERATOR, "operator")], tokens=[Token("robot", SECRET, "operator")], editors=editors)
    browser = Browser(dashboard(app, auth=auth, clock=clock))
    browser.come_in(auth, OPERATOR, clock.time())
    return browser


def edit(browser: Browser, **body: Any) -> Answer:
    """By the API."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {SECRET}"}
    return Browser(browser.app).ask("POST", "/api/v1/job/edit", headers, json.dumps(body).encode())


def test_nobody_may_edit_by_default(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """An operator is refused by the form and by the API, and sees no link."""
    worker.push("a", {"status": "new"})
    browser = browser_of(app, clock)
    assert "Edit payloads" not in browser.get(f"/job?queue={worker.queue_name}&id=a").text
    assert 403 == browser.get(f"/actions/edit?queue={worker.queue_name}&id=a").status
    assert 403 == browser.send("/actions/edit", {"queue": worker.queue_name, "id": "a"}).status
    answer = edit(browser, queue=worker.queue_name, id="a", arrival=1, payload=2, reason="why")
    assert (403, "forbidden") == (answer.status, answer.json["code"])


def test_a_form_edits_a_payload_and_the_activity_takes_it_back(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """What a payload has of markup stays text on the page."""
    worker.push("a", HOSTILE)
    browser = browser_of(app, clock, "olga")
    (old,) = app.operate(worker).payloads("a")
    page = browser.get(f"/actions/edit?queue={worker.queue_name}&id=a").text
    assert "<script>alert" not in page
    assert "Edit payloads" in browser.get(f"/job?queue={worker.queue_name}&id=a").text
    fields = {"queue": worker.queue_name, "id": "a", "arrival": str(old.arrival), "seen": old.digest}

    answer = browser.send("/actions/edit", {**fields, "payload": '{"status": "paid"}', "reason": "ticket 12"})

    assert 303 == answer.status
    assert [{"status": "paid"}] == [one.payload for one in app.operate(worker).payloads("a")]
    (action,) = app.operate(worker).undoable()
    assert f'value="{action.id}"' in browser.get("/activity").text
    again = browser.send("/actions/edit", {**fields, "payload": "3", "reason": "ticket 12"})
    assert (409, True) == (again.status, "look again" in again.words)
    assert 403 == browser_of(app, clock).send("/actions/undo", {"action_id": action.id}).status
    assert 303 == browser.send("/actions/undo", {"action_id": action.id}).status
    assert [HOSTILE] == [one.payload for one in app.operate(worker).payloads("a")]
    # To undo that is to edit again.
    (undo,) = app.operate(worker).undoable()
    assert 403 == browser_of(app, clock).send("/actions/undo", {"action_id": undo.id}).status
    assert [HOSTILE] == [one.payload for one in app.operate(worker).payloads("a")]


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (("{", "why"), "not JSON"),
        (('"\\ud800"', "why"), "not JSON"),
        (("1", ""), "reason"),
        (("1", "x" * 201), "reason"),
    ],
)
def test_what_cannot_be_a_payload_is_refused(
    app: Lowkiq, worker: Any, clock: ManualClock, sent: tuple[str, str], sentence: str
) -> None:
    """With a sentence that says why; nothing is changed."""
    worker.push("a", 1)
    browser = browser_of(app, clock, "olga")
    (old,) = app.operate(worker).payloads("a")
    fields = {"queue": worker.queue_name, "id": "a", "arrival": str(old.arrival)}
    payload, reason = sent
    answer = browser.send("/actions/edit", {**fields, "payload": payload, "reason": reason})
    assert 400 == answer.status
    assert sentence in answer.words
    assert [1] == [one.payload for one in app.operate(worker).payloads("a")]


def test_what_a_mask_hides_cannot_be_edited(make_app: Any, queue_name: str, clock: ManualClock) -> None:
    """Neither by the form nor by the API: what is not seen cannot be edited."""
    app = make_app(mask=lambda _queue, _id, payload: {**payload, "card": "***"} if "card" in payload else payload)
    work = declare(app, queue_name, Notes())
    work.push_many([{"id": "a", "payload": {"card": "no 4111"}}, {"id": "b", "payload": {"x": 1}}])
    browser = browser_of(app, clock, "olga", "robot")
    operate = app.operate(work)
    (hidden,), (open_,) = operate.payloads("a"), operate.payloads("b")
    page = browser.get(f"/actions/edit?queue={queue_name}&id=a").text
    assert "no 4111" not in page
    answer = edit(browser, queue=queue_name, id="a", arrival=hidden.arrival, payload={}, reason="why")
    assert (403, "forbidden") == (answer.status, answer.json["code"])
    fields = {"queue": queue_name, "id": "a", "arrival": str(hidden.arrival), "payload": "{}", "reason": "why"}
    assert 403 == browser.send("/actions/edit", fields).status
    answer = edit(browser, queue=queue_name, id="b", arrival=open_.arrival, payload={"x": 2}, reason="why")
    assert (200, "waiting", False) == (answer.status, answer.json["place"], answer.json["merged"])
    assert [{"card": "no 4111"}, {"x": 2}] == [one.payload for id_ in "ab" for one in operate.payloads(id_)]


def test_a_mask_that_changes_the_payload_itself_hides_it_too(
    make_app: Any, queue_name: str, clock: ManualClock
) -> None:
    """Else the form would show the mask's words as the payload, and put them in its place."""

    def hide(_queue: str, _id: str, payload: dict[str, object]) -> object:
        payload["card"] = "***"
        return payload

    app = make_app(mask=hide)
    work = declare(app, queue_name, Notes())
    work.push("a", {"card": "no 4111"})
    browser = browser_of(app, clock, "olga", "robot")
    (hidden,) = app.operate(work).payloads("a")
    assert "&#34;***" not in browser.get(f"/actions/edit?queue={queue_name}&id=a").text
    answer = edit(browser, queue=queue_name, id="a", arrival=hidden.arrival, payload={"card": "***"}, reason="why")
    assert (403, "forbidden") == (answer.status, answer.json["code"])
    assert [{"card": "no 4111"}] == [one.payload for one in app.operate(work).payloads("a")]
