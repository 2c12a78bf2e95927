"""The page that replays kept runs: it counts first, and pushes once that is confirmed."""

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from lowkiq_lambda import JobError, KeepRuns, Lowkiq
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.operate.acts.replaying import Replay
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, READER
from tests.kit.handlers import FailingHandler
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare, jobs_of


@pytest.fixture
def kept(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """A worker that keeps payloads, and has run three ids, one of which failed."""
    handler.failing = {"b"}
    worker = declare(app, queue_name, handler, keep_runs=KeepRuns(runs=100, payloads=True))
    worker.push_many(jobs_of("abc"))
    app.drain()
    return worker


def counted(browser: Browser, worker: Any, **fields: Any) -> Answer:
    """The form with the number of payloads that a replay would push."""
    times = {"since": "5m ago", "until": "now"}
    return browser.get(f"/actions/replay?{urlencode({'queue': worker.queue_name, **times, **fields})}")


def confirmed(page: Answer) -> dict[str, str]:
    """The fields that the button sends."""
    form = page.text.rpartition('<form method="post"')[2]
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="(.*?)"', form)}


def test_runs_are_counted_and_pushed_once(app: Lowkiq, kept: Any, browser: Browser) -> None:
    """The done ones of the time; what was pushed before changes nothing, and the activity has both."""
    page = counted(browser, kept)
    fields = confirmed(page)

    assert "2 payloads of 2 ids in 2 runs would be pushed." in page.words
    assert 1 == sum(shard.length for shard in app.operate(kept).shards())
    first, again = (browser.send("/actions/replay", fields) for _ in range(2))
    assert "2 payloads of 2 ids were pushed." in first.words
    assert "2 had been pushed by an earlier replay, and changed nothing." in again.words
    assert 3 == sum(shard.length for shard in app.operate(kept).shards())
    activity = read_activity(app.core.backend, 0.0, [kept.queue_name], 10)
    assert ["replay", "replay"] == [one.action for one in activity]


def test_the_time_that_was_counted_is_the_time_that_is_pushed(kept: Any, browser: Browser, clock: ManualClock) -> None:
    """Though "5m ago" is another moment when the button is pressed."""
    fields = confirmed(counted(browser, kept))
    clock.advance(3_000)

    assert "2 payloads of 2 ids were pushed." in browser.send("/actions/replay", fields).words


def test_the_selection_is_narrowed(kept: Any, browser: Browser) -> None:
    """By outcome and by the beginning of ids."""
    assert "1 payload of 1 id in 1 run would be pushed." in counted(browser, kept, outcome="retried").words
    assert "1 payload of 1 id in 1 run would be pushed." in counted(browser, kept, id="a").words
    assert "0 payloads of 0 ids in 0 runs would be pushed." in counted(browser, kept, id="x").words
    assert "again</button>" not in counted(browser, kept, id="x").text


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"since": "never"}, "'never' is not a moment"),
        ({"rate": "fast"}, "'fast' is not a number of ids a second"),
        ({"rate": "0"}, "rate must be above 0, not 0.0"),
        ({"outcome": "lost"}, "'lost' is not an outcome of runs"),
    ],
)
def test_a_form_that_cannot_be_is_explained(kept: Any, browser: Browser, wrong: dict[str, str], sentence: str) -> None:
    """In a sentence beside the form; nothing is pushed, also where it is sent by hand."""
    page = counted(browser, kept, **wrong)
    fields = {"queue": kept.queue_name, "since": "5m ago", "until": "now", **wrong}

    assert (400, True) == (page.status, sentence in page.words)
    sent = browser.send("/actions/replay", fields)
    assert (400, True) == (sent.status, sentence in sent.words)


def test_a_queue_without_payloads_says_how(
    app: Lowkiq, queue_name: str, handler: FailingHandler, browser: Browser
) -> None:
    """Its page of runs leads nowhere, and this page tells what to write."""
    worker = declare(app, queue_name, handler, keep_runs=100)

    assert "keep_runs = KeepRuns(..., payloads=True)" in counted(browser, worker).words
    assert "/actions/replay" not in browser.get(f"/runs?queue={worker.queue_name}").text


def test_the_page_of_runs_leads_there_with_its_filter(kept: Any, browser: Browser, clock: ManualClock) -> None:
    """With the times as they were then; those who may only look have no such button."""
    here = f"/runs?{urlencode({'queue': kept.queue_name, 'at': f'{clock.time()}', 'around': '1m', 'outcome': 'done'})}"

    since, until = (f"{datetime.fromtimestamp(clock.time() + by, UTC):%Y-%m-%dT%H:%M:%S}" for by in (-60, 60))
    assert f"since={quote(since)}&amp;until={quote(until)}&amp;outcome=done" in browser.get(here).text


def test_readers_replay_nothing(app: Lowkiq, kept: Any) -> None:
    """They have no button, and are refused."""
    reader = Browser(dashboard(app, auth=AUTH))
    reader.sign_in(READER)

    assert "/actions/replay" not in reader.get(f"/runs?queue={kept.queue_name}").text
    assert 403 == counted(reader, kept).status
    assert 403 == reader.post("/actions/replay", {"queue": kept.queue_name, "since": "5m ago", "until": "now"}).status


def test_an_unknown_queue_is_refused(browser: Browser) -> None:
    """As on other pages."""
    assert 404 == browser.get("/actions/replay?queue=nothing").status
    assert 404 == browser.send("/actions/replay", {"queue": "nothing"}).status


def test_a_filter_behind_the_end_of_time_is_refused(kept: Any, browser: Browser) -> None:
    """The page says so, and its replay has no such moment."""
    page = browser.get(f"/runs?queue={kept.queue_name}&until=99999999999999")

    assert (400, True) == (page.status, "is not a moment" in page.text)
    assert f'/actions/replay?queue={kept.queue_name}"' in page.text


def test_a_replay_that_fails_half_way_says_so(app: Lowkiq, kept: Any, browser: Browser) -> None:
    """What was pushed stays, the activity has it, and the same replay goes on with the others."""

    def refuse(_replay: Replay) -> Any:
        raise JobError("a payload is larger than it may be")

    fields = confirmed(counted(browser, kept))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Replay, "run", refuse)
        page = browser.send("/actions/replay", fields)

    assert (400, True) == (page.status, "a payload is larger than it may be" in page.words)
    (activity,) = read_activity(app.core.backend, 0.0, [kept.queue_name], 10)
    assert "replay" == activity.action
    assert "2 payloads of 2 ids were pushed." in browser.send("/actions/replay", fields).words
