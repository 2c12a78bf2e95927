"""Histograms of times for Prometheus: they only grow, whatever Redis forgets, and each look adds what came since."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.dashboard.api.time_histograms import EDGES
from lowkiq_lambda.store.shard.history import TIMES, bounds
from lowkiq_lambda.testing import ManualClock
from tests.kit.web import Browser

SCRAPER: Final = "a-token-of-16-characters-or-more"
LINE: Final = re.compile(
    r"^lowkiq_queue_(took|waited)_seconds_(\w+)\{(?:.*?,)?(?:le=\"(.*?)\"|queue=\".*?\")\} (\S+)$", re.MULTILINE
)
Histogram = Mapping[tuple[str, str, str], float]


@pytest.fixture
def scraper(app: Lowkiq, clock: ManualClock) -> Browser:
    """A page of metrics that was looked at once."""
    browser = Browser(dashboard(app, auth=Auth(tokens=[Token("prometheus", SCRAPER, "reader")]), clock=clock))
    scrape(browser)
    return browser


def scrape(browser: Browser) -> Histogram:
    """The histograms of the only queue: which of them, its series, and the upper bound of a bucket."""
    text = browser.ask("GET", "/metrics", {"authorization": f"Bearer {SCRAPER}"}).text
    return {(which, series, edge): float(value) for which, series, edge, value in LINE.findall(text)}


def run(app: Lowkiq, worker: Any, clock: ManualClock, count: int, wait: float) -> None:
    """Let so many jobs wait for so long, and run them."""
    worker.push_many([{"id": n} for n in range(count)])
    clock.advance(wait)
    app.drain()


def test_a_histogram_counts_what_ran_since_the_first_look(
    app: Lowkiq, worker: Any, clock: ManualClock, scraper: Browser
) -> None:
    """In buckets that hold all below them; sum and count are of the same batches."""
    run(app, worker, clock, 5, wait=3.0)

    now = scrape(scraper)

    batches = now["waited", "count", ""]
    waited = [now["waited", "bucket", repr(bounds(edge)[1])] for edge in EDGES]
    assert batches > 0
    assert sorted(waited) == waited
    assert now["waited", "bucket", "+Inf"] == batches == now["took", "count", ""]
    assert (0.0, batches) == (now["waited", "bucket", "2.048"], now["waited", "bucket", "4.096"])
    assert now["waited", "sum", ""] / batches == pytest.approx(3.0, rel=0.15)


def test_nothing_counts_twice_and_nothing_is_forgotten(
    app: Lowkiq, worker: Any, clock: ManualClock, scraper: Browser
) -> None:
    """Whether half hours pass, Redis forgets them, or nothing runs between two looks."""
    counts = []
    for _ in range(6):
        run(app, worker, clock, 3, wait=1.0)
        counts.append(scrape(scraper)["waited", "count", ""])
        assert counts[-1] == scrape(scraper)["waited", "count", ""]
        clock.advance(TIMES.window - 60.0)

    assert [counts[0] * (n + 1) for n in range(6)] == counts


def test_a_process_begins_at_zero(app: Lowkiq, worker: Any, clock: ManualClock, scraper: Browser) -> None:
    """What ran before its first look is told by none of its series: another process has told it already."""
    run(app, worker, clock, 3, wait=1.0)
    assert scrape(scraper)["took", "count", ""] > 0
    other = Browser(dashboard(app, auth=Auth(tokens=[Token("prometheus", SCRAPER, "reader")]), clock=clock))

    first = scrape(other)
    run(app, worker, clock, 3, wait=1.0)
    second = scrape(other)

    assert {0.0} == {*first.values()}
    assert second["took", "count", ""] == scrape(scraper)["took", "count", ""] / 2


@pytest.mark.usefixtures("worker")
def test_a_queue_that_never_ran_has_no_histogram(scraper: Browser) -> None:
    """A thousand idle queues are short."""
    assert {} == scrape(scraper)
