"""What people did: the page and the API of past actions."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.action_views import PastAction
from lowkiq_lambda.dashboard.bulk_action_state import BulkActionState, pack
from lowkiq_lambda.store.inspect import past_actions
from lowkiq_lambda.store.inspect.bulk_actions import prepare
from lowkiq_lambda.store.inspect.past_actions import record_action
from lowkiq_lambda.store.shard.keys import actions_key
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.web import Browser


def listed(browser: Browser, **query: str) -> list[dict[str, Any]]:
    """The actions that the API lists."""
    found: list[dict[str, Any]] = browser.get("/api/v1/actions" + "".join(f"?queue={q}" for q in query.values())).json[
        "actions"
    ]
    return found


def test_an_action_is_listed_with_who_and_how_many(
    app: Lowkiq, worker: Any, browser: Browser, make_browser: MakeBrowser, clock: ManualClock
) -> None:
    """SK-21: the newest first, of the queue alone or of all; nothing is kept before somebody acts, nor for looking."""
    name = worker.queue_name
    worker.perform_async([{"id": "a"}, {"id": "b"}])
    assert "No action yet" in browser.get(f"/past-actions?queue={name}").words
    assert not app.backend.client.exists(actions_key(name))

    browser.send("/actions/queue", {"queue": name, "do": "pause", "seconds": "300"})
    clock.advance(60.0)
    browser.send("/actions/queue", {"queue": name, "do": "resume"})

    assert [("resume", 1, clock.time()), ("pause", 1, clock.time() - 60.0)] == [
        (action["action"], action["changed"], action["at"]) for action in listed(browser, queue=name)
    ]
    page = make_browser(READER).get(f"/past-actions?queue={name}")
    assert "olga resume" in page.words
    assert name in [action["queue"] for action in listed(browser)]
    assert 404 == browser.get("/past-actions?queue=nobody").status


def test_a_bulk_action_is_listed_once(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """However many requests it takes: with what it has changed in all, and what became of it last."""
    worker.perform_async([{"id": number} for number in range(3)])
    action = prepare(app.actions(worker), "delete")
    for _ in range(2):
        state = BulkActionState(queue=worker.queue_name, action=action, run="1f")
        browser.send("/actions/step", {"action_state": pack(state)})

    assert 2 == app.backend.client.llen(actions_key(worker.queue_name))
    (only,) = listed(browser, queue=worker.queue_name)
    assert ("delete", "all", "1f") == (only["action"], only["target"], only["run"])


def test_so_many_actions_are_kept(app: Lowkiq, worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of each queue, and for a time; what another version wrote in another form hides nothing."""
    monkeypatch.setattr(past_actions, "KEPT", 3)
    key = actions_key(worker.queue_name)
    app.backend.client.lpush(key, b"other")
    for number in range(5):
        record_action(app.backend, PastAction(at=number, who="me", action="x", queue=worker.queue_name))
    app.backend.client.lpush(key, b"other")

    found = past_actions.past_actions(app.backend, 0.0, [worker.queue_name], 10)

    assert [4.0, 3.0] == [action.at for action in found]
    assert past_actions.KEPT_FOR - 60 < app.backend.client.ttl(key) <= past_actions.KEPT_FOR
