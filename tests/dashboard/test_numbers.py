"""The six numbers of the first page, the marks of its chart, and its groups of queues."""

import re
from typing import Any, NamedTuple

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard.context import PART_WAITS
from lowkiq_lambda.dashboard.needs import LASTS, LASTS_FOR_NEW
from lowkiq_lambda.dashboard.pages.overview import FEW
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.apps import closing_app
from tests.kit.handlers import FailingHandler
from tests.kit.servers import FaultProxy
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare


class WatchedQueue(NamedTuple):
    """A queue, and the page that shows it."""

    app: Lowkiq
    worker: Any
    handler: FailingHandler
    browser: Browser
    clock: ManualClock

    def run(self, count: int, failing: int = 0) -> None:
        """So many ids run, of which so many fail; half a minute later."""
        self.handler.failing = {str(n) for n in range(failing)}
        self.worker.push_many([{"id": n} for n in range(count)])
        self.app.drain()
        self.clock.advance(30.0)


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of the test alone."""
    return queue_name


@pytest.fixture
def watched(app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser, clock: ManualClock) -> WatchedQueue:
    """The app's only queue, with the page of an operator."""
    return WatchedQueue(app, worker, handler, browser, clock)


def red(page: Answer) -> list[str]:
    """The names of the numbers that are red."""
    return re.findall(r'<div class="red"><dt[^>]*>(.*?)</dt>', page.text)


@pytest.mark.parametrize(("count", "failing", "expected"), [(40, 10, []), (40, 11, ["Failing"]), (19, 19, [])])
def test_a_share_is_red_and_a_count_is_not(
    watched: WatchedQueue, count: int, failing: int, expected: list[str]
) -> None:
    """A quarter of all ids may fail, and of a few ids all."""
    watched.run(count, failing)

    assert expected == red(watched.browser.get("/"))


def test_what_stands_still_is_red_and_what_a_pause_keeps_is_not(watched: WatchedQueue) -> None:
    """A queue with due ids that ends none is named; what is paused has a number of its own, and needs nobody's act."""
    watched.worker.push_many([{"id": n} for n in range(7)])
    watched.clock.advance(400.0)
    still = watched.browser.get("/")
    watched.app.operate(watched.worker).pause()
    paused = watched.browser.get("/")

    assert ["Oldest due job", "Due now"] == red(still)
    assert f"Due now 7 {watched.worker.queue_name} stands still" in still.words
    assert [] == red(paused)
    assert "Due now 0 7 more paused" in paused.words
    assert "Oldest due job 0 s paused 6m 40s" in paused.words


def test_it_is_told_when_a_queue_will_be_empty(watched: WatchedQueue) -> None:
    """By the rate of the last half minute: 60 ids in 30 seconds need 20 for 40 more."""
    watched.run(60)
    watched.clock.advance(5.0)
    watched.worker.push_many([{"id": n} for n in range(40)])

    page = watched.browser.get("/")

    assert "Due now 40 empty in 20 s" in page.words
    assert 'aria-label="40 due, 0 due and paused, 0 to be tried again, of 40"' in page.text


def lines(page: Answer) -> list[str]:
    """The line of each number, empty where it has none."""
    (part,) = re.findall(r'(?s)<dl class="card totals six">(.*?)</dl>', page.text)
    paths = (re.findall(r'class="line" d="(.*?)"', each) for each in part.split('class="spark"')[1:])
    return ["".join(path) for path in paths]


def points(page: Answer) -> list[int]:
    """How many points the line of each number has."""
    return [len(re.findall("[ML]", line)) for line in lines(page)]


def test_a_process_that_has_not_looked_before_draws_the_lines_of_all(
    watched: WatchedQueue, make_browser: MakeBrowser, server_url: str, namespace: str
) -> None:
    """They grow by a point a minute as anybody looks, for ten minutes, and are the same in each process."""
    watched.run(12, failing=2)
    first = points(watched.browser.get("/"))
    for number in range(12):
        watched.clock.advance(60.0)
        watched.worker.push_many([{"id": f"due {number}"}])
        watched.browser.get("/")
    watched.clock.advance(LASTS_FOR_NEW)
    with closing_app(Lowkiq(Config(redis_url=server_url, namespace=namespace), clock=watched.clock)) as other:
        declare(other, watched.worker.queue_name, FailingHandler())
        pages = watched.browser.get("/"), make_browser(app=other).get("/")
    watched.clock.advance(601.0)

    assert [0] * 4 == first[2:]
    assert first[0] > 100
    assert lines(pages[0]) == lines(pages[1])
    assert [11] * 4 == points(pages[0])[2:]
    assert [0] * 4 == points(watched.browser.get("/"))[2:]


def test_a_pause_and_a_change_of_limits_are_marks_of_the_chart(watched: WatchedQueue) -> None:
    """With their names in words below it; and its values are a table, whose sums are those of the chart."""
    watched.run(12, failing=2)
    name = watched.worker.queue_name
    watched.browser.send("/actions/queue", {"queue": name, "do": "pause", "seconds": "60"})
    watched.browser.send("/actions/limits", {"queue": name, "do": "set", "permits": "1", "ids": "", "per": ""})
    watched.clock.advance(10.0)

    page = watched.browser.get("/")

    assert 2 == page.text.count('<path class="release"')
    assert f"paused {name} (for 60 seconds)" in page.words
    assert f"set limits of {name}" in page.words
    (table,) = re.findall(r"(?s)Values as a table.*?<tbody>(.*?)</tbody>", page.text)
    rows = re.findall(r"<td>(\d+)</td><td>(\d+)</td>", table)
    assert (10, 2) == tuple(sum(int(row[column]) for row in rows) for column in (0, 1))
    assert 12 == len(rows)


def test_quiet_queues_are_one_line(watched: WatchedQueue, make_browser: MakeBrowser, queue_name: str) -> None:
    """Of many queues those in trouble come first, then those at work; the others open by a click, without a script."""
    for number in range(FEW):
        declare(watched.app, f"{queue_name}-{number}", FailingHandler())
    watched.run(4)
    late = declare(watched.app, f"{queue_name}-late", FailingHandler())
    late.push("1")
    watched.clock.advance(120.0 + LASTS)

    page = make_browser().get("/")

    open_part, folded = page.text.split('<details class="quiet">')
    assert re.findall(r'rowgroup" colspan="13">([\w ]+) <span class="count">(\d+)', open_part) == [
        ("Look here", "1"),
        ("At work", "1"),
    ]
    assert re.findall(r'id="queue-(\d+)"', open_part) == [str(FEW + 1), "0"]
    assert f'Quiet <span class="count">{FEW}</span>' in folded
    assert FEW == len(re.findall(r'id="queue-\d+"', folded))


def test_a_page_that_refreshes_itself_gives_redis_half_a_second(
    fault_proxy: FaultProxy, make_browser: MakeBrowser, clock: ManualClock, queue_name: str
) -> None:
    """It says that Redis is away and asks again; a page that somebody opens tries for as long as any call does."""
    app = Lowkiq(Config(redis_url=fault_proxy.url, redis_timeout=5.0), clock=clock)
    declare(app, queue_name, FailingHandler())
    browser, waited = make_browser(app=app), list[float]()
    assert 200 == browser.get("/").status
    fault_proxy.refuse()
    fault_proxy.cut()
    for ask in (browser.part, browser.get):
        began_at = clock.monotonic()
        assert 503 == ask("/").status
        waited.append(clock.monotonic() - began_at)
    fault_proxy.heal()
    app.core.backend.client.close()

    assert waited[0] <= PART_WAITS < app.config.redis_retry_for <= waited[1]
