"""Limiters of handlers on the dashboard, in its API, and in its metrics."""

import json
import logging
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Concurrent, Lowkiq, Rate
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.web import Answer, Browser

SECRET = "o" * 20
WHY = "the other side is slow"


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of the test alone."""
    return queue_name


@pytest.fixture
def robots(app: Lowkiq, clock: ManualClock) -> dict[str, Browser]:
    """Programs, by role."""
    roles: tuple[Any, ...] = ("operator", "reader")
    tokens = [Token(role, f"{role}-{SECRET}", role) for role in roles]
    served = dashboard(app, auth=Auth(tokens=tokens), clock=clock)
    return {role: Browser(served, headers={"authorization": f"Bearer {role}-{SECRET}"}) for role in roles}


def act(robot: Browser, path: str, **body: Any) -> Answer:
    """Have a program do something."""
    return robot.ask("POST", f"/api/v1/{path}", {"content-type": "application/json"}, json.dumps(body).encode())


def test_an_operator_changes_a_limiter_on_its_page(
    app: Lowkiq, worker: Any, browser: Browser, make_browser: MakeBrowser, caplog: pytest.LogCaptureFixture
) -> None:
    """The page has those that code declares, for a key; the form what counts; each act is noted, with its reason."""
    caplog.set_level(logging.INFO, "lowkiq_lambda.activity")
    page = f"/limits?{urlencode({'queue': worker.queue_name})}"
    assert "Limiters of handlers" not in browser.get(page).words
    stripe = app.limiter("stripe", Rate(100, per=60))
    app.limiter("erp", Concurrent(50, hold=30))
    stripe.acquire("acct_7", points=40)

    assert "stripe rate 100 in 1m 100 0 0" in browser.get(page).words
    of_account = browser.get(f"{page}&key=acct_7").words
    assert "stripe rate 100 in 1m 60 0 0" in of_account
    assert "Left and Waiting are of the key acct_7" in of_account
    assert "erp concurrent 50 held for 30 s 50 0 0" in browser.get(page).words
    of_form = {"queue": worker.queue_name, "name": "stripe", "do": "set"}
    form = browser.get(f"/actions/limiter?{urlencode(of_form)}").text
    assert all(f'value="{value}"' in form for value in ("100", "60 s"))
    wrong = browser.follow(
        browser.send("/actions/limiter", {**of_form, "most": "many", "seconds": "60 s", "reason": WHY})
    )
    assert "must be a whole number, not 'many'" in wrong.words
    assert f'value="{WHY}"' in wrong.text

    after = browser.follow(browser.send("/actions/limiter", {**of_form, "most": "7", "seconds": "10 s", "reason": WHY}))
    assert "stripe rate 7 in 10 s set at run time" in after.words
    assert Rate(7, per=10) == stripe.explain().limit
    browser.send("/actions/limiter", {**of_form, "do": "reset", "reason": WHY})
    assert not stripe.explain().is_set
    noted = [
        (record.__dict__["action"], record.__dict__["target"], record.__dict__["reason"]) for record in caplog.records
    ]
    assert [("set limiter", "stripe: Rate(ids=7, per=10.0)", WHY), ("reset limiter", "stripe", WHY)] == noted
    refused = [
        browser.send("/actions/limiter", {**of_form, "name": "unknown"}),
        browser.send("/actions/limiter", {**of_form, "do": "explode"}),
        browser.get(f"/actions/limiter?{urlencode({**of_form, 'name': 'unknown'})}"),
        browser.get(f"/actions/limiter?{urlencode({**of_form, 'do': 'explode'})}"),
        make_browser(READER).send("/actions/limiter", {**of_form, "do": "reset"}),
    ]
    assert [404, 400, 404, 400, 403] == [answer.status for answer in refused]
    assert "Change…" not in make_browser(READER).get(page).text


def test_the_api_tells_and_sets_limiters(app: Lowkiq, worker: Any, robots: dict[str, Browser]) -> None:
    """Those of code alone; a reader sees them, and changes none."""
    del worker
    limiter, robot = app.limiter("stripe", Rate(3, per=60)), robots["operator"]
    limiter.acquire("acct_7", points=3)
    assert not limiter.try_acquire("acct_7")

    (told,) = robots["reader"].get("/api/v1/limiters?key=acct_7").json["limiters"]
    first = act(robot, "limiters/set", name="stripe", most=5, seconds=60, reason=WHY).json
    last = act(robot, "limiters/reset", name="stripe").json

    assert ("stripe", "acct_7", "rate", 3, 60.0, False, 0, 0, 1) == tuple(told.values())
    assert [(5, True), (3, False)] == [(one["most"], one["is_set"]) for one in (first, last)]
    answers = [
        act(robot, "limiters/set", name="unknown", most=5, seconds=60),
        act(robot, "limiters/set", name="stripe", most=0, seconds=60),
        act(robot, "limiters/set", name="stripe", most=1, seconds=1e9 * 10),
        act(robots["reader"], "limiters/reset", name="stripe"),
    ]
    assert [404, 400, 400, 403] == [answer.status for answer in answers]
    metrics = robot.get("/metrics").text
    assert 'lowkiq_limiter_put_off_total{limiter="stripe"} 1' in metrics


def test_any_key_that_a_limiter_takes_is_shown(
    app: Lowkiq, worker: Any, browser: Browser, robots: dict[str, Browser]
) -> None:
    """Keys have up to 200 bytes. A longer one is refused: no other key is shown in its place."""
    longest, page = "a" * 200, f"/limits?{urlencode({'queue': worker.queue_name})}"
    app.limiter("stripe", Rate(3, per=60)).acquire(longest, points=2)

    assert "stripe rate 3 in 1m 1 0 0" in browser.get(f"{page}&key={longest}").words
    (told,) = robots["reader"].get(f"/api/v1/limiters?key={longest}").json["limiters"]
    assert (longest, 1) == (told["key"], told["left"])
    for too_long in (f"{longest}a", "é" * 101):
        refused = [browser.get(f"{page}&{urlencode({'key': too_long})}")]
        refused.append(robots["reader"].get(f"/api/v1/limiters?{urlencode({'key': too_long})}"))
        assert [400, 400] == [answer.status for answer in refused]
