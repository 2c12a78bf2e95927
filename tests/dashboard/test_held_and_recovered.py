"""Held ids and recovered jobs on the dashboard."""

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
def holding(app: Lowkiq, queue_name: str) -> type[Worker]:
    """A worker that holds an id whose oldest payload has failed for the last time; one is held."""
    worker = declare(app, queue_name, raising(ValueError("no")), dead_head="block", max_retry_count=0, batch_size=1)
    worker.push_many([{"id": "stuck", "payload": 1}, {"id": "stuck", "payload": 2}])
    app.drain()
    return worker


def test_e79_an_operator_sees_what_is_held(holding: type[Worker], browser: Browser) -> None:
    """E-79: the overview and the page of the queue count it, and the list says so in place of a time far away."""
    queue = quote(holding.queue_name)

    assert "1 held" in browser.get("/").words
    page = browser.get(f"/queue?queue={queue}")
    assert "Held 1" in page.words
    listed = browser.get(f"/waiting?queue={queue}&by=due_at&range=gte&value=253402300800").words
    assert "held" in listed
    assert "7978y" not in listed


@pytest.mark.parametrize(("act", "left"), [("release", [1, 2]), ("release_skipping", [2])])
def test_e79_an_operator_releases_it(
    app: Lowkiq, holding: type[Worker], browser: Browser, act: str, left: list[int]
) -> None:
    """E-79: tried again, or its oldest payload skipped, after a confirmation."""
    fields = {"queue": holding.queue_name, "do": f"picked:{act}", "ids": "stuck"}
    asked = browser.follow(browser.send("/actions/ask", fields))
    state = asked.text.partition('name="action_state" value="')[2].partition('"')[0]
    assert 1 == app.operate.metrics()[holding.queue_name].held

    browser.send("/actions/step", {"action_state": state})

    (job,) = app.operate(holding).waiting.fetch(["stuck"])
    assert (left, 0) == ([one.payload for one in job.payloads], app.operate.metrics()[holding.queue_name].held)


def test_an_action_that_has_no_confirmation_is_refused(holding: type[Worker], browser: Browser) -> None:
    """Some actions are for code alone: a form that names one gets a sentence."""
    for act in ("bury", "redrive", "dance"):
        answer = browser.send("/actions/ask", {"queue": holding.queue_name, "do": f"picked:{act}", "ids": "stuck"})
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
