"""Tables that are sorted by a column, as their address says."""

import re
from html import unescape
from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import FailingHandler
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare


@pytest.fixture
def names(app: Lowkiq, queue_name: str, clock: ManualClock) -> list[str]:
    """Three queues, of which the second lags most and the third holds most."""
    counts = {"first": (1, 20), "second": (2, 30), "third": (3, 10)}
    names = [f"{queue_name}-{name}" for name in counts]
    began = clock.time()
    for name, (count, age) in zip(names, counts.values(), strict=True):
        worker: Any = declare(app, name, FailingHandler(), shards_count=2)
        worker.push_many([{"id": f"{name}-{number}", "due_at": began - age} for number in range(count)])
    return names


def order(answer: Answer, names: list[str]) -> list[int]:
    """The numbers of the queues, from top to bottom."""
    rows = re.findall(r'<a id="queue-\d+" href="[^"]*queue=([^"&]*)"', answer.text)
    return [names.index(name) for name in rows]


def heads(answer: Answer) -> dict[str, str]:
    """Where the head of each column leads."""
    return {name: unescape(link) for link, name in re.findall(r'<a class="sort" href="(.*?)">(.*?)</a>', answer.text)}


def test_sk21_the_overview_is_sorted_by_a_column(browser: Browser, names: list[str]) -> None:
    """SK-21: as declared without an order, else by a number or the name, either way round, with the span kept."""
    assert [0, 1, 2] == order(browser.get("/"), names)
    assert [1, 0, 2] == order(browser.get("/?sort=lag&way=desc"), names)
    assert [2, 0, 1] == order(browser.get("/?sort=lag"), names)
    assert [2, 1, 0] == order(browser.get("/?sort=length&way=desc"), names)
    assert [2, 1, 0] == order(browser.part("/?sort=name&way=desc"), names)
    assert [0, 1, 2] == order(browser.get("/?sort=nothing&way=desc"), names)

    page = browser.get("/?sort=lag&way=desc&span=6h")
    assert ['aria-sort="descending"><a class="sort" href="./?span=6h&amp;sort=lag&amp;way=asc">Lag'] == re.findall(
        r'aria-sort="[^"]*"><a [^>]*>\w+', page.text
    )
    assert "./?span=6h&sort=done&way=desc" == heads(page)["Done"]
    assert "./?span=6h&sort=name&way=asc" == heads(page)["Queue"]
    assert 'href="./?sort=lag&amp;way=desc&amp;span=1h"' in page.text
    assert 'hx-get="./?span=6h&amp;sort=lag&amp;way=desc"' in page.text


def test_shards_are_sorted_by_a_column(app: Lowkiq, browser: Browser, queue_name: str) -> None:
    """SK-21: the shard with most ids first; the tabs and the refresh know the order."""
    worker: Any = declare(app, queue_name, FailingHandler(), shards_count=3)
    worker.push_many([{"id": number} for number in range(40)])
    lengths = [shard.length for shard in app.operate(worker).shards()]
    ranked = sorted(range(3), key=lambda index: -lengths[index])

    page = browser.get(f"/shards?queue={queue_name}&sort=length&way=desc")

    assert [str(index) for index in ranked] == re.findall(r'<th scope="row">(\d)</th>', page.text)
    assert ["0", "1", "2"] == re.findall(r'<th scope="row">(\d)</th>', browser.get(f"/shards?queue={queue_name}").text)
    assert f'hx-get="./shards?queue={queue_name}&amp;sort=length&amp;way=desc"' in page.text


def test_the_heads_of_a_list_lead_to_its_orders(worker: Any, browser: Browser) -> None:
    """SK-21: by id, due time or number of retries, and the other way round; not where that would lose a filter."""
    worker.push_many([{"id": "a"}, {"id": "b"}])
    link = f"./waiting?queue={worker.queue_name}"

    page = browser.get(f"/waiting?queue={worker.queue_name}")
    assert {"Id": f"{link}&by=id&range=asc", "Due": f"{link}&by=due_at&range=desc"}.items() <= heads(page).items()
    assert 'aria-sort="ascending"><a class="sort"' in page.text
    page = browser.get(f"/waiting?queue={worker.queue_name}&by=id&range=desc")
    assert f"{link}&by=id&range=asc" == heads(page)["Id"]
    assert {} == heads(browser.get(f"/waiting?queue={worker.queue_name}&find=a"))
    assert "aria-sort" not in browser.get(f"/waiting?queue={worker.queue_name}&find=a").text
