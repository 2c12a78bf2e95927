"""The runs of a queue: on their page, in the past of a job, and in the API."""

import re
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from lowkiq_lambda import Config, KeepRuns, Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.store.shard.keys import RUNS
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import closing_app
from tests.kit.handlers import FailingHandler
from tests.kit.web import Browser
from tests.kit.workers import declare, jobs_of

SECRET = "s" * 20


@pytest.fixture
def kept(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """A worker that keeps runs, and has run three ids, one of which failed."""
    handler.failing = {"b"}
    worker = declare(app, queue_name, handler, keep_runs=100)
    worker.push_many(jobs_of("abc"))
    app.drain()
    return worker


def test_the_page_lists_what_ran(kept: Any, browser: Browser) -> None:
    """Each run with its time, its outcome, its holder and its error, and a link to the job."""
    page = browser.get(f"/runs?queue={kept.queue_name}")

    assert 200 == page.status
    assert 3 == page.text.count('data-name="Outcome"')
    assert f'href="./job?queue={kept.queue_name}&amp;id=b"' in page.text
    assert "b is broken" in page.words
    assert "No run is missing since" in page.words
    assert 'id="tab-runs"' in page.text


def test_the_filter_is_a_form_that_needs_no_script(kept: Any, browser: Browser, clock: ManualClock) -> None:
    """By moment, outcome, id and length; the tab's address has all of it."""
    here = f"/runs?queue={kept.queue_name}"

    assert 1 == browser.get(f"{here}&outcome=retried").text.count('data-name="Outcome"')
    assert 1 == browser.get(f"{here}&id=a").text.count('data-name="Outcome"')
    assert 3 == browser.get(f"{here}&at={clock.time()}&around=5m").text.count('data-name="Outcome"')
    assert "No run that is kept fits the filter." in browser.get(f"{here}&at={quote('1h ago')}").words
    assert "No run that is kept fits the filter." in browser.get(f"{here}&until=1h").words
    assert "No run that is kept fits the filter." in browser.get(f"{here}&took=10s").words


@pytest.mark.parametrize("wrong", ["at=never", "took=long", "after=x", "at=25:61", f"since={'9' * 20}", "at=1.2.3"])
def test_a_filter_that_cannot_be_is_explained(kept: Any, browser: Browser, wrong: str) -> None:
    """In a sentence; nothing is listed."""
    page = browser.get(f"/runs?queue={kept.queue_name}&{wrong}")

    assert 400 == page.status
    assert "Nothing is shown" in page.words
    assert 0 == page.text.count('data-name="Outcome"')


def test_a_queue_that_keeps_none_says_how(worker: Any, browser: Browser) -> None:
    """It has no such tab, and the page tells what to write."""
    page = browser.get(f"/runs?queue={worker.queue_name}")

    assert "With keep_runs = 10_000 in the class Noting" in page.words
    assert 'id="tab-runs"' not in browser.get(f"/queue?queue={worker.queue_name}").text


def test_unreadable_runs_are_counted(app: Lowkiq, kept: Any, browser: Browser) -> None:
    """The page goes on with the others."""
    (shard,) = app.core.queues.agreed(kept).shards
    app.core.backend.client.xadd(shard.using((RUNS,)).key(RUNS), {"n": 7, "r": b"?"}, "9999999999999-0")

    page = browser.get(f"/runs?queue={kept.queue_name}")

    assert "7 runs cannot be read." in page.words
    assert 3 == page.text.count('data-name="Outcome"')


def test_the_past_of_a_job_has_its_runs(kept: Any, browser: Browser) -> None:
    """Of a job that is done the journal says nothing."""
    done = browser.get(f"/job?queue={kept.queue_name}&id=a")
    failed = browser.get(f"/job?queue={kept.queue_name}&id=b")

    assert "ended: done." in done.words
    assert re.search(r"Try 1 failed after \S+ m?s\. b is broken", failed.words)


def test_the_api_has_the_same(kept: Any, browser: Browser, clock: ManualClock) -> None:
    """As an object with the page and its `next`."""
    first = browser.get(f"/api/v1/runs?queue={kept.queue_name}&limit=2").json
    rest = browser.get(f"/api/v1/runs?queue={kept.queue_name}&limit=2&cursor={first['next']}").json

    assert ["a", "b", "c"] == sorted(run["id"] for run in first["runs"] + rest["runs"])
    assert (None, False, 0, 0) == (rest["next"], rest["cut"], rest["unreadable"], rest["lost"])
    since = clock.time() - 60
    (failed,) = browser.get(f"/api/v1/runs?queue={kept.queue_name}&outcome=retried&since={since}").json["runs"]
    assert ("b", "b is broken", 1) == (failed["id"], failed["error"], failed["payloads"])
    assert [] == browser.get(f"/api/v1/runs?queue={kept.queue_name}&until=2020-01-01").json["runs"]
    assert {"releases": []} == browser.get("/api/v1/releases").json
    assert 404 == browser.get(f"/api/v1/runs?queue={kept.queue_name}&since_release=r1").status
    assert 400 == browser.get(f"/api/v1/runs?queue={kept.queue_name}&cursor=x").status


def test_releases_are_marks_on_the_chart(server_url: str, clock: ManualClock, queue_name: str) -> None:
    """With links to what has failed since; and the days are a table, where the app keeps them."""
    settings = Config(redis_url=server_url, namespace=f"n-{queue_name[-20:]}", release="r418", history_days=30)
    with closing_app(Lowkiq(settings, clock=clock)) as app:
        worker = declare(app, queue_name, FailingHandler(), keep_runs=100)
        worker.push_many(jobs_of("abc"))
        app.drain()
        clock.advance(3_700)
        browser = Browser(dashboard(app, auth=AUTH, clock=clock))
        browser.come_in(AUTH, OPERATOR, clock.time())

        page = browser.get(f"/queue?queue={queue_name}&span=30d")
        runs = browser.get(f"/runs?queue={queue_name}")

        assert '<path class="release"' in page.text
        assert "Releases in this time: r418 at " in page.words
        assert "By day" in page.words
        assert 'id="span-30d"' in page.text
        assert "Failed since r418 began" in runs.words
        assert ["r418"] == [one["name"] for one in browser.get("/api/v1/releases").json["releases"]]
        days = browser.get(f"/api/v1/history?queue={queue_name}&span=30d").json["days"]
        assert [3] == [day["ended"] for day in days]


def test_without_days_there_is_no_such_span(kept: Any, browser: Browser) -> None:
    """No link, and no table."""
    page = browser.get(f"/queue?queue={kept.queue_name}")

    assert 'id="span-72h"' in page.text
    assert 'id="span-30d"' not in page.text


def test_the_api_replays(app: Lowkiq, queue_name: str, handler: FailingHandler, clock: ManualClock) -> None:
    """A dry run pushes nothing; a queue without payloads is refused in a sentence."""
    worker = declare(app, queue_name, handler, keep_runs=KeepRuns(100, payloads=True))
    worker.push_many(jobs_of("ab"))
    app.drain()
    plain = declare(app, f"{queue_name}-plain", handler, keep_runs=100)
    browser = Browser(dashboard(app, auth=Auth(tokens=[Token("robot", SECRET, "operator")]), clock=clock))
    window = {"since": f"{clock.time() - 60:.0f}", "until": f"{clock.time() + 60:.0f}"}

    def replay(**fields: Any) -> Any:
        headers = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}
        body = msgspec.json.encode(window | fields)
        return browser.ask("POST", "/api/v1/runs/replay", headers, body)

    assert (2, 0) == ((dry := replay(queue=queue_name, dry_run=True).json)["payloads"], dry["written"])
    assert 2 == replay(queue=queue_name, rate=5).json["written"]
    assert 2 == replay(queue=queue_name).json["repeated"]
    refused = replay(queue=plain.queue_name)
    assert (400, True) == (refused.status, "keep no payloads" in refused.json["detail"])
    assert ["replay", "replay"] == [one.action for one in read_activity(app.core.backend, 0.0, [queue_name], 10)]
