"""Tenants of a queue on the dashboard and in its API, and what they have to do with a job that does not run."""

import json
import logging
from collections import Counter
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.dashboard.pages.parts import PAGE
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import FailingHandler, Notes
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare, jobs_of

ACTIVITY = "lowkiq_lambda.activity"
SECRET = "o" * 20


@pytest.fixture
def crowded(app: Lowkiq, clock: ManualClock, queue_name: str) -> Any:
    """A worker whose tenants a and b wait, a rather longer, and ids without a colon for a later time."""
    worker = declare(app, queue_name, Notes(), tenants="spread", shards_count=2)
    worker.push_many(jobs_of(["a:1", "a:2", "a:3"]))
    clock.advance(60.0)
    worker.push_many([*jobs_of(["b:1"]), {"id": "plain", "delay": 3_600}])
    clock.advance(60.0)
    return worker


def page(browser: Browser, path: str, worker: Any, **query: str) -> Answer:
    """A page of the worker's queue."""
    return browser.get(f"/{path}?{urlencode({'queue': worker.queue_name, **query})}")


def order(robot: Browser, path: str, **body: str) -> Answer:
    """Have it do something."""
    return robot.ask("POST", f"/api/v1/{path}", {"content-type": "application/json"}, json.dumps(body).encode())


def test_the_tenants_of_a_queue_are_those_that_wait(app: Lowkiq, crowded: Any) -> None:
    """Each with its ids in all shards, the oldest of them, and when it is served; one alone is found by its name."""
    found = app.operate(crowded).tenants()

    assert [("a", 3), ("b", 1), ("", 1)] == [(view.tenant, view.waiting) for view in found.tenants]
    assert [120.0, 60.0] == [view.at - (view.due_at or 0.0) for view in found.tenants[:2]]
    assert not found.cut
    assert ["a"] == [view.tenant for view in app.operate(crowded).tenants(1).tenants]
    assert app.operate(crowded).tenants(1).cut
    assert ["b"] == [view.tenant for view in app.operate(crowded).tenants(tenant="b").tenants]
    assert [] == app.operate(crowded).tenants(tenant="nobody").tenants


@pytest.fixture
def robot(app: Lowkiq, clock: ManualClock) -> Browser:
    """A program with a token."""
    auth = Auth(tokens=[Token("robot", SECRET, "operator")])
    return Browser(dashboard(app, auth=auth, clock=clock), headers={"authorization": f"Bearer {SECRET}"})


def test_a_flood_is_found_among_many_tenants(
    app: Lowkiq, clock: ManualClock, queue_name: str, browser: Browser, robot: Browser
) -> None:
    """B-1: nobody has to know the name of the tenant with most ids; in the fair order it may come last."""
    worker = declare(app, queue_name, Notes(), tenants="spread")
    worker.push_many([{"id": f"small{number}:1", "due_at": clock.time() - 60.0} for number in range(PAGE)])
    worker.push_many(jobs_of([f"flood:{number}" for number in range(20)]))
    operated = app.operate(worker)

    assert [("flood", 20), ("small0", 1)] == [
        (one.tenant, one.waiting) for one in operated.tenants(2, order="waiting").tenants
    ]
    assert "flood" not in {one.tenant for one in operated.tenants(PAGE).tenants}
    assert "flood" not in page(browser, "tenants", worker).words
    assert "flood" in page(browser, "tenants", worker, order="waiting").words
    assert "the ones with the most waiting ids" in page(browser, "tenants", worker, order="waiting").words
    path = f"/api/v1/tenants?{urlencode({'queue': queue_name, 'order': 'waiting', 'limit': 1})}"
    assert ["flood"] == [one["tenant"] for one in json.loads(robot.get(path).text)["tenants"]]
    with pytest.raises(ValueError, match="order must be 'fair' or 'waiting', not 'size'"):
        operated.tenants(order=cast("Any", "size"))


def test_a_paused_tenant_is_left_out_until_its_pause_ends(app: Lowkiq, clock: ManualClock, crowded: Any) -> None:
    """B-2: other tenants go on; a resumed one goes on at once, and a pause ends by itself."""
    operated = app.operate(crowded)
    assert clock.time() + 600.0 == operated.pause(600.0, tenant="a")

    assert 1 == app.drain().get("done")
    assert [("a", True), ("", False)] == [(one.tenant, one.is_paused) for one in operated.tenants().tenants]
    clock.advance(601.0)
    assert 3 == app.drain().get("done")

    crowded.push_many(jobs_of(["a:1"]))
    operated.pause(tenant="a")
    assert {} == +Counter(app.drain())
    operated.resume(tenant="a")
    assert 1 == app.drain().get("done")
    with pytest.raises(ValueError, match="colon"):
        operated.pause(tenant="a:1")


def test_a_queue_without_tenants_has_none_to_pause(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """The page and its operations are refused, and no tab leads there."""
    assert [] == app.operate(worker).tenants().tenants
    with pytest.raises(ValueError, match="no tenants"):
        app.operate(worker).pause(tenant="a")
    assert 404 == page(browser, "tenants", worker).status
    assert "Tenants" not in page(browser, "shards", worker).text
    assert "no_tenants" == page(browser, "api/v1/tenants", worker).json["code"]


def test_the_page_shows_the_fair_order_and_pauses_a_tenant(
    app: Lowkiq, crowded: Any, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """An operator is asked first; the activity log has who, which and for how long."""
    caplog.set_level(logging.INFO, logger=ACTIVITY)
    queue = crowded.queue_name
    assert "waits for others" in page(browser, "tenants", crowded).text
    assert "Pause the tenant?" in page(browser, "actions/tenant", crowded, do="pause", tenant="a").text

    answer = browser.send("/actions/tenant", {"queue": queue, "tenant": "a", "do": "pause", "seconds": "300"})

    assert 303 == answer.status
    assert "paused" in page(browser, "tenants", crowded, find="a").text
    assert "'a' for 300 seconds" in caplog.records[-1].getMessage()
    browser.send("/actions/tenant", {"queue": queue, "tenant": "a", "do": "resume"})
    assert not app.operate(crowded).tenants(tenant="a").tenants[0].is_paused


def test_a_tenant_without_ids_is_idle(app: Lowkiq, clock: ManualClock, queue_name: str, browser: Browser) -> None:
    """When its rate would let it begin again, too: it waits for no others."""
    worker = declare(app, queue_name, FailingHandler(), tenants="home", tenant_rate=Rate(2, per=60))
    worker.push_many(jobs_of(["a:1"]))
    app.drain()
    clock.advance(61.0)

    shown = page(browser, "tenants", worker).text
    assert "idle" in shown
    assert "waits for others" not in shown


def test_a_reader_sees_tenants_and_pauses_none(crowded: Any, make_browser: MakeBrowser) -> None:
    """The page has no buttons, and the operation is refused."""
    browser = make_browser(READER)
    assert "Pause…" not in page(browser, "tenants", crowded).text
    refused = browser.post("/actions/tenant", {"queue": crowded.queue_name, "tenant": "a", "do": "pause"})
    assert 403 == refused.status


def test_a_job_tells_what_its_tenant_has_to_do_with_its_waiting(
    app: Lowkiq, clock: ManualClock, queue_name: str, browser: Browser
) -> None:
    """The tenants and ids before it, a pause, and a rate that is used up."""
    worker = declare(app, queue_name, FailingHandler(), tenants="home", tenant_rate=Rate(2, per=60))
    worker.push_many(jobs_of(["a:1", "a:2", "a:3", "a:4"]))
    clock.advance(10.0)
    worker.push_many(jobs_of(["b:1", "b:2"]))
    clock.advance(10.0)

    assert "1 other tenant is served before its tenant “b”, and it waits behind 1 other" in str(
        page(browser, "job", worker, id="b:2").text
    )
    app.drain()
    assert "Its tenant “a” has used up its rate" in page(browser, "job", worker, id="a:4").text
    app.operate(worker).pause(tenant="a")
    paused = page(browser, "job", worker, id="a:4").text
    assert "is paused until an operator resumes it" in paused
    assert f'href="./tenants?queue={queue_name}&amp;find=a"' in paused


def test_the_api_pauses_and_resumes_a_tenant(app: Lowkiq, crowded: Any, browser: Browser, robot: Browser) -> None:
    """As the page does, with its answer."""
    queue = crowded.queue_name
    listed = page(browser, "api/v1/tenants", crowded, limit="1").json
    assert (["a"], True) == ([one["tenant"] for one in listed["tenants"]], listed["cut"])

    paused = order(robot, "tenant/pause", queue=queue, tenant="a").json

    assert {"paused": True, "until": None} == paused
    assert page(browser, "api/v1/tenants", crowded, tenant="a").json["tenants"][0]["paused"]
    order(robot, "tenant/resume", queue=queue, tenant="a")
    assert not app.operate(crowded).tenants(tenant="a").tenants[0].is_paused
