"""The search box of every page: ids in all queues, tasks, queues and pages."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.operate.inspect import find_ids
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import FailingHandler
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare


@pytest.fixture
def workers(app: Lowkiq, queue_name: str) -> list[Any]:
    """Three queues of some shards each."""
    return [declare(app, f"{queue_name}-{part}", FailingHandler(), shards_count=3) for part in ("Mail", "Order", "Pay")]


def search(browser: Browser, text: str) -> Answer:
    """The page of results."""
    return browser.get(f"/search?{urlencode({'q': text})}")


def found(answer: Answer) -> list[list[str]]:
    """Id, queue and state of each row, in order."""
    rows = re.findall(r"(?s)<tr>(<th scope=.row.*?)</tr>", answer.text)
    return [[_text(cell) for cell in re.findall(r"(?s)<t[hd].*?>(.*?)</t[hd]>", row)] for row in rows]


def _text(markup: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", markup.replace("<wbr>", ""))).split())


def test_sk21_an_id_is_found_in_whatever_queue(workers: list[Any], make_browser: MakeBrowser) -> None:
    """SK-21: the id itself first, then ids that begin with it; each with its queue and state; also for a reader."""
    mail, order, pay = workers
    mail.push_many([{"id": "4711"}, {"id": "47110"}])
    order.push_many([{"id": "4711", "delay": 60}, {"id": "14711"}])
    pay.push_many([{"id": "471"}])

    page = search(make_browser(READER), "4711")

    assert [["4711", mail.queue_name, "waiting"], ["4711", order.queue_name, "waiting"]] == found(page)[:2]
    assert [["47110", mail.queue_name, "waiting"]] == found(page)[2:]
    assert f'href="./job?queue={order.queue_name}&amp;id=4711"' in page.text
    assert [] == found(search(make_browser(READER), "47112"))


def test_an_id_in_flight_and_one_in_the_morgue_are_found(app: Lowkiq, queue_name: str, browser: Browser) -> None:
    """Wherever its payloads are, and all of the places where an id has some."""
    handler = FailingHandler()
    handler.failing = {"dead-1"}
    worker: Any = declare(app, queue_name, handler, max_retry_count=0)
    worker.push_many([{"id": "dead-1"}])
    app.drain()
    worker.push_many([{"id": "dead-2"}])
    seen: list[Answer] = []
    handler.meanwhile = lambda: seen.extend(search(browser, text) for text in ("dead-", "dead-2"))
    app.drain()
    assert [["dead-1", queue_name, "in the morgue"], ["dead-2", queue_name, "in flight"]] == found(seen[0])
    assert [["dead-2", queue_name, "in flight"]] == found(seen[1])


def test_a_search_takes_a_few_calls_whatever_the_queues_hold(
    workers: list[Any], browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One round trip for the id itself, three for those that begin with it; ids that were not read are spoken of."""
    for worker in workers:
        worker.push_many([{"id": f"order-{number}"} for number in range(600)])
    trips: list[str] = []
    ask_each = ShardReader.ask_each

    def counted(reader: Any, name: str, requests: Any) -> Any:
        trips.append(name)
        return ask_each(reader, name, requests)

    monkeypatch.setattr(ShardReader, "ask_each", counted)
    monkeypatch.setattr(find_ids, "READ_AT_MOST", 1)
    page = search(browser, "order-1")

    assert ["explain_job", "search_ids", "in_flight_ids", "search_ids"] == trips
    assert 3 == len([row for row in found(page) if row[0] == "order-1"])
    assert 50 < len(found(page)) <= 3 + 100
    assert "not all were read" in page.words


def test_queues_pages_and_tasks_are_found_by_name(app: Lowkiq, workers: list[Any], browser: Browser) -> None:
    """A queue by a part of its name in any case, a page by its name, a task by its id."""
    task = app.task("import")
    assert f'href="./queue?queue={workers[1].queue_name}"' in search(browser, "-oRDer").text
    assert 'href="./schedules">Schedules</a> <span' in search(browser, "sched").text
    assert f'href="./task?id={task.id}">import</a>' in search(browser, task.id).text
    assert "Nothing found" in search(browser, "no such thing").words
    assert "Nothing to search for" in search(browser, "").words


@pytest.mark.usefixtures("workers")
def test_a_hostile_text_breaks_no_search(browser: Browser) -> None:
    """E-84: what somebody types is a text, however long; the box keeps it."""
    page = search(browser, "<script>alert(1)</script>\"'\0")
    assert (200, False) == (page.status, "<script>alert" in page.text)
    assert 'value="&lt;script&gt;' in page.text
    assert 200 == search(browser, "x" * 5_000).status


def test_an_id_is_found_as_the_pages_show_it(workers: list[Any], browser: Browser) -> None:
    """Characters that nobody sees are typed as escapes; spaces around an id that has none are left out."""
    workers[0].push_many([{"id": "a\0b"}, {"id": "c"}])
    page = search(browser, r"a\u0000b")
    assert [[r"a\u0000b", workers[0].queue_name, "waiting"]] == found(page)
    assert "the backslash is a character of the id" in page.words
    assert [["c", workers[0].queue_name, "waiting"]] == found(search(browser, " c "))


def test_a_queue_that_was_made_otherwise_is_not_searched(
    workers: list[Any], make_browser: MakeBrowser, clock: ManualClock, server_url: str
) -> None:
    """The page says so, and searches the others."""
    for worker in workers[:2]:
        worker.push_many([{"id": 1}])
    other = Lowkiq(Config(redis_url=server_url), clock=clock)
    declare(other, workers[0].queue_name, FailingHandler(), shards_count=7)
    declare(other, workers[1].queue_name, FailingHandler(), shards_count=3)

    page = search(make_browser(app=other), "1")

    assert [["1", workers[1].queue_name, "waiting"]] == found(page)
    assert f"{workers[0].queue_name} is not searched. Queue '{workers[0].queue_name}' is declared with" in page.words
    other.core.backend.client.close()


def test_every_page_has_the_box(workers: list[Any], browser: Browser, make_browser: MakeBrowser) -> None:
    """A form that needs no script; not for a stranger, who sees the form to sign in alone."""
    for path in (
        "/",
        "/tasks",
        f"/queue?queue={workers[0].queue_name}",
        f"/morgue?queue={workers[0].queue_name}",
        "/none",
    ):
        assert '<form class="find" method="get" action="./search"' in browser.get(path).text
    stranger = make_browser(None)
    assert "sign-in" in stranger.get("/search?q=1").location
    assert 'class="find"' not in stranger.get("/sign-in").text
