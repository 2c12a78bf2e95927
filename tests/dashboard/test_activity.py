"""What people did: the page and the API of the activity."""

import base64
import zlib
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard.bulk_action import BulkActionResult, BulkActionState, pack
from lowkiq_lambda.dashboard.pages import actions
from lowkiq_lambda.dashboard.security.sessions import sign
from lowkiq_lambda.operate.acts.bulk_actions import prepare
from lowkiq_lambda.operate.inspect import activity
from lowkiq_lambda.operate.inspect.activity import record_action, signing_key
from lowkiq_lambda.store.shard.keys import activity_key
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.activity import ActivityEntry
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.apps import close_app
from tests.kit.servers import Server
from tests.kit.web import Browser


def listed(browser: Browser, **query: str) -> list[dict[str, Any]]:
    """The actions that the API lists."""
    address = "/api/v1/activity" + "".join(f"?queue={q}" for q in query.values())
    found: list[dict[str, Any]] = browser.get(address).json["activity"]
    return found


def test_an_action_is_listed_with_who_and_how_many(
    app: Lowkiq, worker: Any, browser: Browser, make_browser: MakeBrowser, clock: ManualClock
) -> None:
    """SK-21: the newest first, of the queue alone or of all; nothing is kept before somebody acts, nor for looking."""
    name = worker.queue_name
    worker.push_many([{"id": "a"}, {"id": "b"}])
    assert "No action yet" in browser.get(f"/activity?queue={name}").words
    assert not app.core.backend.client.exists(activity_key(name))

    browser.send("/actions/queue", {"queue": name, "do": "pause", "seconds": "300"})
    clock.advance(60.0)
    browser.send("/actions/queue", {"queue": name, "do": "resume"})

    assert [("resume", 1, clock.time()), ("pause", 1, clock.time() - 60.0)] == [
        (action["action"], action["changed"], action["at"]) for action in listed(browser, queue=name)
    ]
    page = make_browser(READER).get(f"/activity?queue={name}")
    assert "olga resume" in page.words
    assert name in [action["queue"] for action in listed(browser)]
    assert 404 == browser.get("/activity?queue=nobody").status


def test_a_bulk_action_is_listed_once(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """However many requests it takes: with what it has changed in all, and what became of it last."""
    worker.push_many([{"id": number} for number in range(3)])
    action = prepare(app.operate(worker).runner, "run_now")
    for _ in range(2):
        state = BulkActionState(queue=worker.queue_name, action=action, action_id="000000000000001f")
        browser.send("/actions/step", {"action_state": pack(signing_key(app.core.backend, 0.0), state)})

    assert 2 == app.core.backend.client.llen(activity_key(worker.queue_name))
    (only,) = listed(browser, queue=worker.queue_name)
    assert ("run_now", "all", "000000000000001f") == (only["action"], only["target"], only["action_id"])


def test_a_forged_state_changes_nothing_of_what_is_recorded(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """Neither how many ids an action has changed, nor which records are steps of one: it is refused, and jobs stay."""
    worker.push_many([{"id": number} for number in range(3)])
    name, key = worker.queue_name, signing_key(app.core.backend, 0.0)
    state = BulkActionState(queue=name, action=prepare(app.operate(worker).runner, "delete", chosen_ids=["1"]))
    body, _, signature = pack(key, state).partition(".")
    forged = zlib.compress(
        msgspec.msgpack.encode(msgspec.structs.replace(state, before=12_345_678, action_id="000000007445f43f"))
    )
    text = base64.urlsafe_b64encode(forged).decode().rstrip("=")
    of_result = pack(key, BulkActionResult(queue=name, act="delete")).partition(".")[2]
    for each in (
        text,
        f"{text}.",
        f"{text}.{signature}",
        f"{text}.{of_result}",
        sign(b"x" * 32, "BulkActionState", forged),
    ):
        assert 400 == browser.send("/actions/step", {"action_state": each}).status

    assert [] == listed(browser, queue=name)
    assert 3 == app.operate.stats()["total"]["length"]
    assert 303 == browser.send("/actions/step", {"action_state": f"{body}.{signature}"}).status
    assert [("delete", 1)] == [(action["action"], action["changed"]) for action in listed(browser, queue=name)]


def test_steps_that_are_sent_again_hide_nothing(app: Lowkiq, worker: Any) -> None:
    """One record for a run of one visitor on one target, with the most it told; others' runs never replace it."""
    name = worker.queue_name
    past = ActivityEntry(
        at=1.0, who="olga", action="delete", queue=name, target="all", changed=50, action_id="000000000000000a"
    )
    others: list[dict[str, Any]] = [
        {"who": "rita"},
        {"action": "requeue"},
        {"target": "found by: x"},
        {"action_id": ""},
    ]
    for at, fields in enumerate([{}, {"changed": 5}, *others, {"action_id": ""}]):
        record_action(app.core.backend, msgspec.structs.replace(past, at=float(at), **fields))

    found = activity.read_activity(app.core.backend, 0.0, [name], 10)

    assert [6.0, 5.0, 4.0, 3.0, 2.0, 1.0] == [action.at for action in found]
    assert 50 == found[-1].changed


def test_a_state_that_is_sent_again_counts_what_it_changes_then(
    app: Lowkiq, worker: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator who sends the first state of a deletion for each step deletes more than any of them tells."""
    monkeypatch.setattr(actions, "IDS_IN_A_STEP", 500)
    name = worker.queue_name
    worker.push_many([{"id": number} for number in range(1_500)])
    action = prepare(app.operate(worker).runner, "delete", whole_list=True)
    text = pack(
        signing_key(app.core.backend, 0.0), BulkActionState(queue=name, action=action, action_id="000000000000002f")
    )
    sent = 0
    while app.operate.stats()["total"]["length"]:
        assert 303 == browser.send("/actions/step", {"action_state": text}).status
        sent += 1
        assert sent <= 20

    assert sent > 1
    (only,) = listed(browser, queue=name)
    assert ("delete", 1_500) == (only["action"], only["changed"])


def test_dashboards_of_a_server_share_what_they_sign_with(own_server: Server) -> None:
    """So any process takes the next step; a server that is full takes no key, and actions go on all the same."""
    app = Lowkiq(Config(redis_url=own_server.url))
    own_server.admin.config_set("maxmemory", "1")
    while_full = signing_key(app.core.backend, 0.0)
    own_server.admin.config_set("maxmemory", "0")
    stored = signing_key(app.core.backend, 0.0)

    assert own_server.admin.keys("lowkiq:dashboard:signing")
    assert [32, stored, stored] == [len(while_full), while_full, signing_key(app.core.backend, 0.0)]
    close_app(app)


def test_so_many_actions_are_kept(app: Lowkiq, worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of each queue, and for a time; what another version wrote in another form hides nothing."""
    monkeypatch.setattr(activity, "KEPT", 3)
    key = activity_key(worker.queue_name)
    app.core.backend.client.lpush(key, b"other")
    for number in range(5):
        record_action(app.core.backend, ActivityEntry(at=number, who="me", action="x", queue=worker.queue_name))
    app.core.backend.client.lpush(key, b"other")

    found = activity.read_activity(app.core.backend, 0.0, [worker.queue_name], 10)

    assert [4.0, 3.0] == [action.at for action in found]
    assert activity.KEPT_FOR - 60 < app.core.backend.client.ttl(key) <= activity.KEPT_FOR
