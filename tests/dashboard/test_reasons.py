"""Why somebody acts: each call of the API that changes something takes a reason, each form asks for it; all keep it."""

import json
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import Auth, Token
from lowkiq_lambda.dashboard.api.routes import OPERATIONS
from tests.dashboard.conftest import MakeBrowser
from tests.kit.handlers import Notes
from tests.kit.web import Browser
from tests.kit.workers import declare, jobs_of

SECRET = "a secret of some length"  # noqa: S105 - of nobody
WHY = "incident 7"


@pytest.fixture
def worker(app: Lowkiq, queue_name: str) -> Any:
    """One with a tenant, a schedule entry, and two jobs that wait."""
    made = declare(app, queue_name, Notes(), tenants="spread")
    made.push_many(jobs_of("ab"))
    app.schedules.put("hourly", made, id="s", every=3_600)
    return made


def reasons(browser: Browser, queue: str) -> dict[str, str]:
    """By action, as the activity has them."""
    listed = browser.get(f"/api/v1/activity?queue={queue}").json["activity"]
    return {action["action"]: action["reason"] for action in listed}


def test_each_act_of_the_api_takes_a_reason() -> None:
    """No operation that changes something is without one."""
    acts = [operation for operation in OPERATIONS if operation.method == "POST"]
    without = [act.path for act in acts if "reason" not in {f.name for f in msgspec.structs.fields(act.params)}]

    assert (30 < len(acts), []) == (True, without)


def test_the_activity_keeps_the_reason_of_a_call(make_browser: MakeBrowser, worker: Any) -> None:
    """Of acts on jobs, on the queue, a tenant, limits and an entry; that of an undo is in its query."""
    auth, queue = Auth(tokens=[Token("robot", SECRET, "operator")]), worker.queue_name
    robot = make_browser(None, auth=auth)
    robot.headers["authorization"] = f"Bearer {SECRET}"

    def act(path: str, **body: Any) -> Any:
        fields = {"queue": queue, "reason": WHY, **body}
        body_is = {"content-type": "application/json"}
        return robot.ask("POST", f"/api/v1/{path}", body_is, json.dumps(fields).encode()).json

    action_id = act("waiting/delete", ids=["a"])["action_id"]
    act("jobs/pause", ids=["b"])
    act("queue/pause")
    act("queue/resume")
    act("tenant/pause", tenant="x")
    act("limits/set", max_running=3)
    act("schedule/disable", name="hourly")
    act("schedule/put", name="made", id="m", every=60)
    act("shard/evict", shard=0, token=1)
    undo = f"/api/v1/actions/{action_id}/undo?{urlencode({'reason': WHY})}"
    assert 200 == robot.ask("POST", undo).status

    expected = {
        *("delete", "pause_job", "pause", "resume", "pause tenant", "set limits", "disable", "put", "evict", "undo")
    }
    assert dict.fromkeys(expected, WHY) == reasons(robot, queue)


def test_the_activity_keeps_the_reason_of_a_form(browser: Browser, worker: Any) -> None:
    """Each confirmation asks for it, and still has it where another field has to be typed again."""
    queue = worker.queue_name
    forms = [
        ("queue", {"do": "pause"}),
        ("queue", {"do": "resume"}),
        ("job", {"do": "pause", "id": "a"}),
        ("job", {"do": "cancel", "id": "a"}),
        ("tenant", {"do": "pause", "tenant": "x"}),
        ("limits", {"do": "reset"}),
        ("schedule", {"do": "disable", "name": "hourly"}),
        ("schedule", {"do": "disable_all"}),
    ]
    for page, fields in forms:
        address = f"/actions/{page}?{urlencode({'queue': queue, **fields})}"
        assert 'name="reason"' in browser.get(address).text, address
        assert 303 == browser.send(f"/actions/{page}", {"queue": queue, "reason": WHY, **fields}).status

    expected = {"pause", "resume", "pause_job", "cancel", "pause tenant", "reset limits", "disable"}
    assert dict.fromkeys(expected, WHY) == reasons(browser, queue)
    wrong = {"queue": queue, "do": "pause", "seconds": "other", "length": "?", "reason": WHY}
    assert f'value="{WHY}"' in browser.follow(browser.send("/actions/queue", wrong)).text
