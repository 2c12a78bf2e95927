"""An action on jobs is taken back by a button, or by the API."""

import json
from typing import Any

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.dashboard.security.auth import Auth, Token
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.looks import ids_of
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

SECRET = "s" * 20


def call(app: Lowkiq, clock: ManualClock, path: str, **body: Any) -> Answer:
    """By the API, with an operator's token."""
    browser = Browser(dashboard(app, auth=Auth(tokens=[Token("robot", SECRET, "operator")]), clock=clock))
    headers = {"content-type": "application/json", "authorization": f"Bearer {SECRET}"}
    return browser.ask("POST", f"/api/v1/{path}", headers, json.dumps(body).encode() if body else b"")


def test_the_api_undoes_what_it_did(app: Lowkiq, worker: Any, browser: Browser, clock: ManualClock) -> None:
    """The answer of an action has its id; the undo has one, too; a second undo finds nothing."""
    worker.push_many([{"id": "a"}, {"id": "b"}])
    changed = call(app, clock, "waiting/delete", queue=worker.queue_name, ids=["a"]).json
    assert (1, 1) == (changed["changed"], changed["undoable"])
    (listed,) = browser.get("/api/v1/actions/undoable").json["actions"][worker.queue_name]
    assert (changed["action_id"], "delete", 1, 1) == tuple(listed[name] for name in ("id", "act", "ids", "changed"))

    undone = call(app, clock, f"actions/{changed['action_id']}/undo").json

    assert (worker.queue_name, 1, {}) == (undone["queue"], undone["restored"], undone["skipped"])
    assert ["a", "b"] == sorted(ids_of(app.operate(worker).waiting.list()))
    again = call(app, clock, f"actions/{changed['action_id']}/undo")
    assert (404, "unknown_action") == (again.status, again.json["code"])
    assert 404 == call(app, clock, "actions/xyz/undo").status


def test_the_activity_has_a_button_for_ten_minutes(
    app: Lowkiq, worker: Any, browser: Browser, clock: ManualClock
) -> None:
    """It takes the action back, and its result has a button that takes back the undo."""
    worker.push_many([{"id": "a"}])
    call(app, clock, "waiting/delete", queue=worker.queue_name, ids=["a"])
    (action,) = app.operate(worker).undoable()
    assert f'value="{action.id}"' in browser.get("/activity").text

    result = browser.follow(browser.send("/actions/undo", {"action_id": action.id}))

    assert "1 id is as before the action." in result.words
    assert "Undo the undo" in result.words
    assert ["a"] == ids_of(app.operate(worker).waiting.list())
    assert f'value="{action.id}"' not in browser.get("/activity").text
    refused = browser.send("/actions/undo", {"action_id": action.id})
    assert 400 == refused.status


def test_a_queue_with_another_declaration_keeps_no_other_from_its_undo(
    make_app: MakeApp, queue_name: str, clock: ManualClock
) -> None:
    """A release that changed one queue can still take back what was done to the others."""
    before, app = make_app(), make_app()
    declare(before, f"{queue_name}-other", Notes()).push("a")
    declare(app, f"{queue_name}-other", Notes(), merge="never")
    work = declare(app, queue_name, Notes())
    work.push("a")
    changed = call(app, clock, "waiting/delete", queue=queue_name, ids=["a"]).json

    assert 1 == call(app, clock, f"actions/{changed['action_id']}/undo").json["restored"]


def test_readers_can_undo_nothing(app: Lowkiq, worker: Any, make_browser: MakeBrowser) -> None:
    """They see no button, and neither the form nor the API serves them."""
    worker.push_many([{"id": "a"}])
    changed = app.operate(worker).waiting.delete(["a"])
    reader = make_browser(READER)
    assert changed.action_id not in reader.get("/activity").text
    assert 403 == reader.send("/actions/undo", {"action_id": changed.action_id}).status
    assert 403 == reader.post(f"/api/v1/actions/{changed.action_id}/undo").status
    assert [] == ids_of(app.operate(worker).waiting.list())
