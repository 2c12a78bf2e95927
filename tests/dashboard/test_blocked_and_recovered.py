"""Blocked ids and recovered jobs on the dashboard."""

from urllib.parse import quote, urlencode

import pytest

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, raising
from tests.kit.web import Browser
from tests.kit.workers import declare


@pytest.fixture
def blocking(app: Lowkiq, queue_name: str) -> type[Worker]:
    """A worker that blocks an id whose oldest payload has failed for the last time; one is blocked."""
    worker = declare(app, queue_name, raising(ValueError("no")), dead_head="block", max_retry_count=0, batch_size=1)
    worker.push_many([{"id": "stuck", "payload": 1}, {"id": "stuck", "payload": 2}])
    app.drain()
    return worker


def test_e79_an_operator_sees_what_is_blocked(blocking: type[Worker], browser: Browser) -> None:
    """E-79: the overview and the page of the queue count it, and the list says so in place of a time far away."""
    queue = quote(blocking.queue_name)

    assert "1 blocked" in browser.get("/").words
    page = browser.get(f"/queue?queue={queue}")
    assert "Blocked 1" in page.words
    listed = browser.get(f"/waiting?queue={queue}&by=due_at&range=gte&value=253402300800").words
    assert "blocked" in listed
    assert "7978y" not in listed


@pytest.mark.parametrize(("act", "left"), [("unblock", [1, 2]), ("unblock_skipping", [2])])
def test_e79_an_operator_unblocks_it(
    app: Lowkiq, blocking: type[Worker], browser: Browser, act: str, left: list[int]
) -> None:
    """E-79: tried again, or its oldest payload skipped, after a confirmation."""
    fields = {"queue": blocking.queue_name, "do": f"picked:{act}", "ids": "stuck"}
    asked = browser.follow(browser.send("/actions/ask", fields))
    state = asked.text.partition('name="action_state" value="')[2].partition('"')[0]
    assert 1 == app.operate.metrics()[blocking.queue_name].blocked

    browser.send("/actions/step", {"action_state": state})

    (job,) = app.operate(blocking).waiting.fetch(["stuck"])
    assert (left, 0) == ([one.payload for one in job.payloads], app.operate.metrics()[blocking.queue_name].blocked)


def test_all_that_is_found_blocked_is_unblocked_in_one_act(
    app: Lowkiq, blocking: type[Worker], browser: Browser
) -> None:
    """The list of blocked ids offers that in place of running them now, and the question calls them blocked."""
    fields = {"queue": blocking.queue_name, "search": "by=due_at&range=gte&value=253402300800"}
    listed = browser.get(f"/waiting?queue={blocking.queue_name}&{fields['search']}").words
    assert (True, False) == ("Unblock all that fit" in listed, "Run all that fit now" in listed)
    asked = browser.follow(browser.send("/actions/ask", {**fields, "do": "found:unblock"}))
    assert "The search: is blocked " in asked.words
    state = asked.text.partition('name="action_state" value="')[2].partition('"')[0]

    browser.send("/actions/step", {"action_state": state})

    assert 0 == app.operate.metrics()[blocking.queue_name].blocked


def test_an_action_that_has_no_confirmation_is_refused(blocking: type[Worker], browser: Browser) -> None:
    """Some actions are for code alone: a form that names one gets a sentence."""
    for act in ("kill_delayed", "dance"):
        answer = browser.send("/actions/ask", {"queue": blocking.queue_name, "do": f"picked:{act}", "ids": "stuck"})
        assert 400 == answer.status


def test_x43_what_a_dead_holder_left_is_listed(
    app: Lowkiq, queue_name: str, clock: ManualClock, make_browser: MakeBrowser
) -> None:
    """X-42, X-43: who held the shard, for how long, how it ended, and where its jobs are now."""
    reader, address = make_browser(READER), f"/recovered?{urlencode({'queue': queue_name})}"
    mortal, notes = Mortal(app), Notes()
    notes.then = mortal.die
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "left", "payload": 1}])
    assert "Nothing was recovered" in reader.get(address).words
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = None
    app.drain()

    page = reader.get(address)

    assert "died or hung" in page.words
    assert "left gone" in page.words
    assert f'href="./job?queue={queue_name}&amp;id=left"' in page.text
    assert 404 == reader.get("/recovered?queue=NoSuchQueue").status
