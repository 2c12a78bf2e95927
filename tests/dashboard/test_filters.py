"""One filter of a list: a search and a range together, with a chip for each condition."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.operate.inspect import filtered_list
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import FailingHandler
from tests.kit.job_pages import fail, ids_on, link, next_of
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare


def chips(answer: Answer) -> dict[str, str]:
    """The conditions, and where each is taken away."""
    found = re.findall(r'(?s)<li class="chip"><span>(.*?)</span> <a href="\.(.*?)"', answer.text)
    return {" ".join(re.sub("<[^>]*>", " ", words).split()): unescape(href) for words, href in found}


def test_a_search_and_a_range_hold_together(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser, clock: ManualClock
) -> None:
    """SK-21: neither drops the other; the list is in order, and each chip leads to the list without its condition."""
    handler.words = "met a closed warehouse"
    fail(app, worker, handler, "order-1", "order-2", "mail-1")
    worker.push_many([{"id": f"order-{number}", "delay": number * 100} for number in (3, 5, 4)])
    at = clock.time() + 350

    page = browser.get(link("waiting", worker, find="order-", by="due_at", range="lte", value=at))
    assert ["order-3", "order-2", "order-1"] == ids_on(page)
    assert ["id begins with order-", "due at or before"] == [words.partition(" 20")[0] for words in chips(page)]
    without_search, without_range = (
        next(href for words, href in chips(page).items() if words.startswith(begins)) for begins in ("id", "due")
    )
    assert ["order-3", "order-2", "mail-1", "order-1"] != ids_on(browser.get(without_range))
    assert {"order-3", "order-2", "order-1", "order-4", "order-5"} == {*ids_on(browser.get(without_range))}
    assert {"order-3", "order-2", "order-1", "mail-1"} == {*ids_on(browser.get(without_search))}

    page = browser.get(link("waiting", worker, text="warehouse", find="order", by="retry_count", range="gte", value=0))
    assert ["order-1", "order-2"] == sorted(ids_on(page))
    assert ["id begins with order", "last error contains warehouse", "retry count at least 0"] == [*chips(page)]


def test_what_a_filter_shows_is_what_an_action_on_it_changes(
    app: Lowkiq, worker: Any, browser: Browser, clock: ManualClock
) -> None:
    """The confirmation has the same chips, and the action finds the same ids."""
    worker.push_many([{"id": f"{name}-{number}", "delay": number} for name in "ab" for number in (100, 300)])
    search = urlencode({"find": "a", "by": "due_at", "range": "gte", "value": clock.time() + 200})
    shown = browser.get(link("waiting", worker) + "&" + search)
    assert ["a-300"] == ids_on(shown)

    fields = {"queue": worker.queue_name, "do": "found:delete", "search": search}
    asked = browser.follow(browser.send("/actions/ask", fields))

    assert "1 id found in" in asked.words
    words = [
        " ".join(re.sub("<[^>]*>", " ", chip).split()) for chip in re.findall(r'class="chip">(.*?)</li>', asked.text)
    ]
    assert [*chips(shown)] == words
    state = re.findall(r'name="action_state" value="(.*?)"', asked.text)[0]
    browser.follow(browser.send("/actions/step", {"action_state": unescape(state)}))
    assert ["a-100", "b-100", "b-300"] == sorted(job.id for job in app.operate(worker).waiting.list("id"))


def test_a_filtered_morgue_has_pages(
    app: Lowkiq, queue_name: str, browser: Browser, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    """Each id once, over all shards, and a page on which nothing was found yet says that the search is not over."""
    handler = FailingHandler()
    worker: Any = declare(app, queue_name, handler, shards_count=3, max_retry_count=0)
    names = [f"{'x' if number % 7 else 'y'}-{number:02}" for number in range(30)]
    fail(app, worker, handler, *names)
    monkeypatch.setattr(filtered_list, "READ_AT_ONCE", 1)
    monkeypatch.setattr(filtered_list, "IDS_AT_ONCE", 4)
    address = link("morgue", worker, find="y", by="updated_at", range="gte", value=clock.time() - 60)

    pages = [browser.get(address)]
    while 'id="next"' in pages[-1].text:
        pages.append(browser.get(next_of(pages[-1])))

    assert ["y-00", "y-07", "y-14", "y-21", "y-28"] == sorted(job_id for page in pages for job_id in ids_on(page))
    assert len(pages) >= 7
    assert any("Nothing found so far" in page.words for page in pages)


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_filtered_list_is_the_whole_list_narrowed(app: Lowkiq, queue_name: str, clock: ManualClock, way: str) -> None:
    """What one page after the other holds is what the list by time holds that the filter wants, in its order."""
    worker: Any = declare(app, queue_name, FailingHandler(), shards_count=3)
    worker.push_many([{"id": f"{'ab'[number % 2]}{number}", "delay": number // 5} for number in range(60)])
    queue, reverse = app.operate(worker), way == "down"
    wanted = IdFilter(prefix="a", least=str(clock.time() + 2), most=f"({clock.time() + 10}", least_id="(a10")
    listed = queue.waiting.list("due_at", clock.time() + 2, f"({clock.time() + 10}", 100, reverse=reverse)
    expected = [job.id for job in listed if job.id.startswith("a") and job.id > "a10"]

    pages = [queue.waiting.list(limit=3, filter=wanted, reverse=reverse)]
    while (after := pages[-1].next) is not None:
        pages.append(queue.waiting.list(limit=3, filter=wanted, reverse=reverse, after=after))

    assert expected == [job.id for page in pages for job in page]
    assert 10 < len(expected)
