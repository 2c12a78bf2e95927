"""A range of one's own for the charts: on the pages, in their addresses, and by the API."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.web import Browser
from tests.kit.workers import jobs_of


@pytest.fixture
def since(app: Lowkiq, worker: Any, clock: ManualClock) -> str:
    """When two ids were done, of which nothing has been left for some time."""
    at = clock.time()
    worker.push_many(jobs_of("ab"))
    app.drain()
    clock.advance(50 * 60)
    return f"{at - 60:.0f}"


@pytest.mark.parametrize("path", ["/?", "/queue?queue={queue}&"])
def test_a_range_has_the_time_that_a_span_has_not(worker: Any, browser: Browser, since: str, path: str) -> None:
    """The chart is of it, with its ends as its heading, and the form has them again."""
    here = path.format(queue=worker.queue_name)
    assert "ended 0 failed 0" in browser.get(f"{here}span=10m").words

    page = browser.get(f"{here}since={since}&until={int(since) + 600}")

    assert 200 == page.status
    assert "ended 2 failed 0" in page.words
    assert 'name="since" value="20' in page.text
    assert page.text.count("2 ids ended, done or refused") == 1


def test_a_range_stays_in_the_address(worker: Any, browser: Browser, since: str) -> None:
    """A refresh and the head of a column keep it; a span ends it; the form keeps the order of the table."""
    text = browser.get(f"/?sort=lag&way=desc&since={since}&until=9m+ago").text

    assert f'hx-get="./?since={since}&amp;until=9m+ago&amp;sort=lag&amp;way=desc"' in text
    assert f"since={since}&amp;until=9m+ago&amp;sort=name" in text or f"sort=name&amp;way=asc&amp;since={since}" in text
    assert 'href="./?sort=lag&amp;way=desc&amp;span=1h"' in text
    assert '<input type="hidden" name="sort" value="lag">' in text
    assert worker.queue_name in browser.part(f"/?since={since}&until=9m+ago").text


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("since=tomorrow-ish", "is not a moment"),
        ("since=2h+ago&until=3h+ago", "must begin before it ends"),
        ("until=2h+ago", "needs its beginning"),
        ("since=80h+ago", "the history begins at"),
        ("since=2999-01-01", "is in the future"),
        ("since=%3Cscript%3E", "is not a moment"),
        ("since=99999-01-01T00:00", "is not a moment"),
    ],
)
def test_a_range_that_cannot_be_is_refused_with_its_reason(
    worker: Any, browser: Browser, query: str, reason: str
) -> None:
    """The page shows nothing else in its place, and leads on without it."""
    for path in ("/?sort=lag&", f"/queue?queue={worker.queue_name}&"):
        page, part = browser.get(path + query), browser.part(path + query)
        assert (400, 400) == (page.status, part.status)
        assert reason in page.words
        assert reason in part.text
        assert "<script>" not in page.text
        assert 'href="./?sort=lag"' in page.text or f'href="./queue?queue={worker.queue_name}"' in page.text


def test_the_api_has_the_same_range(worker: Any, browser: Browser, since: str) -> None:
    """As moments, and with the same refusals."""
    path = f"/api/v1/history?queue={worker.queue_name}"

    answer = browser.get(f"{path}&since={since}&until={int(since) + 600}")
    assert 2 == sum(answer.json["series"]["ended"])
    assert 2 == sum(browser.get(f"{path}&since={since}").json["series"]["ended"])
    for query, reason in (("until=9", "needs its beginning"), (f"since={since}&until={since}", "must begin")):
        refused = browser.get(f"{path}&{query}")
        assert 400 == refused.status
        assert reason in refused.text
