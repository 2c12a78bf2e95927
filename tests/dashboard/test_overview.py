"""The first page: all queues at a glance."""

import re
from html import unescape
from typing import Any

import pytest
import redis

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.handlers import FailingHandler
from tests.kit.servers import FaultProxy, MakeServer
from tests.kit.web import Browser
from tests.kit.workers import declare


def cells(page: str) -> dict[str, dict[str, str]]:
    """The table's rows by the queue's name, each by the column's name."""
    rows = re.findall(r"(?s)<tr>\s*<th scope=.row.>(.*?)</th>(.*?)</tr>", page)
    return {
        _text(head).split(" ")[0]: {
            name: _text(cell) for name, cell in re.findall(r'(?s)<td data-name="(.*?)"[^>]*>(.*?)</td>', row)
        }
        for head, row in rows
    }


def totals(page: str) -> dict[str, str]:
    """The totals by name: the six numbers, and the sums above the queues."""
    part = "".join(re.findall(r'(?s)<dl class="[^"]*totals[^"]*">(.*?)</dl>', page))
    return {_text(name): _text(value) for name, value in re.findall(r"(?s)<dt.*?>(.*?)</dt>\s*<dd.*?>(.*?)</dd>", part)}


def _trend(browser: Browser) -> str:
    """The only queue's."""
    return browser.get("/").text.split("<table")[-1].split('class="spark"')[1].split("</svg>")[0]


def _text(markup: str) -> str:
    return " ".join(unescape(re.sub("<wbr>", "", re.sub(r"<(?!wbr)[^>]*>", " ", markup))).split())


def test_ln_32_a_row_has_every_number_of_its_queue(
    worker: Any, handler: FailingHandler, app: Lowkiq, browser: Browser, clock: ManualClock
) -> None:
    """LN-12, LN-32: processed, failed, lag, in flight, waiting, fresh, retries, morgue; and how long batches take."""
    worker.push_many([{"id": n} for n in range(8)])
    handler.failing = {"0", "1", "2"}
    handler.meanwhile = lambda: clock.advance(2.0)
    app.drain()
    app.operate(worker).waiting.kill(everything=True)
    handler.failing = {"x"}
    worker.push_many([{"id": "x"}])
    app.drain()
    worker.push_many([{"id": n} for n in range(1_500)])
    clock.advance(30.0)
    handler.meanwhile = lambda: seen.append(browser.get("/").text)
    seen: list[str] = []
    app.drain(seconds=1)

    row = cells(seen[0])[worker.queue_name]

    assert {
        "Done": "5",
        "Failed": "4",
        "Lag": "30 s",
        "In flight": "10",
        "Waiting": "1.49K",
        "Fresh": "1.49K",
        "Retries": "1",
        "Morgue": "3",
    }.items() <= row.items()
    assert "1 ms · 2.0 s" == row["Batch p50 · p95"]
    assert {"Oldest due job": "30 s", "In flight": "10", "Waiting": "1.49K", "Morgue": "3"}.items() <= totals(
        seen[0]
    ).items()
    assert 'title="1,491"' in seen[0]


def test_ln_33_numbers_lead_to_lists(worker: Any, browser: Browser) -> None:
    """LN-33: in flight, waiting, fresh, retries and morgue are links to what they count; all links are relative."""
    name = worker.queue_name
    links = [unescape(link) for link in re.findall(r'(?:href|src|action|hx-get)="(.*?)"', browser.get("/").text)]

    for wanted in (
        f"./processing?queue={name}",
        f"./waiting?queue={name}",
        f"./waiting?queue={name}&by=retry_count&range=lte&value=-1",
        f"./waiting?queue={name}&by=retry_count&range=gte&value=0",
        f"./morgue?queue={name}",
        f"./shards?queue={name}",
    ):
        assert wanted in links
    assert [] == [link for link in links if re.match(r"/|\w+:", link)]


def test_the_chart_has_history_when_the_page_opens(
    worker: Any, handler: FailingHandler, app: Lowkiq, browser: Browser, clock: ManualClock
) -> None:
    """What was drained while nobody looked is in the chart, in the slot that it belongs to."""
    for count in (7, 3):
        worker.push_many([{"id": n} for n in range(count)])
        handler.failing = {"0"}
        app.drain()
        clock.advance(60.0)
    page = browser.get("/").text

    processed, failed = (
        [int(n) for n in re.findall(rf'data-{name}="(.*?)"', page)[0].split()] for name in ("ended", "failed")
    )
    assert [6, 2] == [n for n in processed if n]
    assert 12 == len(processed) - 1 - processed[::-1].index(2) - processed.index(6)
    assert 2 == sum(failed)


@pytest.mark.parametrize("span", ["1h", "6h", "72h"])
def test_the_chart_reaches_back_three_days(
    worker: Any, app: Lowkiq, make_browser: MakeBrowser, clock: ManualClock, span: str
) -> None:
    """Each span shows what was done in it, and nothing from before."""
    reach = {"1h": 3_600, "6h": 6 * 3_600, "72h": 72 * 3_600}[span]
    for count in (5, 3):
        worker.push_many([{"id": n} for n in range(count)])
        app.drain()
        clock.advance(reach * 0.6)

    page = make_browser().get(f"/?span={span}").text

    assert "ended 3 " in _text(page)
    assert f'id="span-{span}" href="./?span={span}" aria-current="true"' in page


def test_a_part_is_only_what_changes(worker: Any, browser: Browser) -> None:
    """A page that refreshes itself asks for the numbers alone."""
    part = browser.part("/")

    assert worker.queue_name in part.words.replace(" ", "")
    assert "<html" not in part.text
    assert part.headers["cache-control"] == "no-store"


def test_an_app_without_workers_is_explained(browser: Browser) -> None:
    """LN-20: without a queue the totals are zeros, and a sentence says why there is no table."""
    page = browser.get("/")

    assert 200 == page.status
    assert "The app declares no worker" in page.words
    assert {"Oldest due job": "0 s", "In flight": "0", "Morgue": "0", "Done/s": "0"}.items() <= totals(
        page.text
    ).items()


def test_hostile_names_are_text(app: Lowkiq, browser: Browser, queue_name: str) -> None:
    """E-84: a queue may be called anything."""
    name = f"<script>alert(1)</script>\"'/../%2e?&#{queue_name}"
    declare(app, name, FailingHandler())

    page = browser.get("/").text

    assert "<script>alert" not in page.replace("<wbr>", "")
    assert "queue=%3Cscript%3Ealert%281%29" in page


def test_the_redis_card_tells_no_password(
    make_server: MakeServer, make_browser: MakeBrowser, clock: ManualClock
) -> None:
    """Address without password, version, memory, role; the policy, with a warning where it loses jobs."""
    server = make_server()
    server.admin.config_set("requirepass", "gEheim")
    try:
        app = Lowkiq(Config(redis_url=server.url.replace("://", "://:gEheim@")), clock=clock)
        browser = make_browser(app=app)
        quiet = browser.get("/")
        server.admin.config_set("maxmemory-policy", "allkeys-lru")
        loud = browser.get("/")
        app.core.backend.client.close()
    finally:
        server.admin.config_set("requirepass", "")

    assert "gEheim" not in quiet.text
    assert "redis://***@127.0.0.1" in quiet.words
    assert re.search(r"Version Valkey \d+\.\d+", quiet.words)
    assert "Role primary" in quiet.words
    assert "Eviction noeviction" in quiet.words
    assert "Jobs may be lost" not in quiet.words
    assert "Jobs may be lost" in loud.words


def test_a_redis_that_is_away_is_told(
    fault_proxy: FaultProxy, make_browser: MakeBrowser, clock: ManualClock, queue_name: str
) -> None:
    """Page and part say so, the part where it does not take away the last numbers; when it is back, so are they."""
    app = Lowkiq(Config(redis_url=fault_proxy.url, redis_timeout=0.2), clock=clock)
    declare(app, queue_name, FailingHandler())
    browser = make_browser(app=app)
    assert 200 == browser.get("/").status

    fault_proxy.refuse()
    fault_proxy.cut()
    page, part = browser.get("/"), browser.part("/")
    fault_proxy.heal()
    back = browser.part("/")
    app.core.backend.client.close()

    assert (503, 503, 200) == (page.status, part.status, back.status)
    assert "Unavailable Nothing answers at " in page.words
    assert "#notice" == part.headers["hx-retarget"]
    assert "<html" not in part.text


def test_a_paused_queue_is_marked(app: Lowkiq, browser: Browser, queue_name: str, server_url: str) -> None:
    """Jobs pile up there on purpose; where the pause did not reach every shard, that is said too."""
    worker = declare(app, queue_name, FailingHandler(), shards_count=3)
    assert "paused" not in browser.get("/").words
    app.operate(worker).pause(3_600.0)
    assert " paused " in browser.get("/").words
    with redis.Redis.from_url(server_url) as admin:
        admin.hdel(app.core.queues.agreed(worker).shards[1].key("meta"), "paused_until")
    assert "paused: 2 of 3 shards" in browser.get("/").words


def test_a_queue_that_fails_shows_it_in_its_trend(
    worker: Any, app: Lowkiq, handler: FailingHandler, browser: Browser, clock: ManualClock
) -> None:
    """More failures than jobs done are drawn as failures are."""
    worker.push_many([{"id": n} for n in range(3)])
    app.drain()
    clock.advance(30)
    assert 'class="line" d="M' in _trend(browser)

    handler.failing = {"0", "1", "2", "3"}
    worker.push_many([{"id": n} for n in range(4)])
    app.drain()
    clock.advance(30)
    assert 'class="line failed" d="M' in _trend(browser)


def test_a_queue_that_was_made_otherwise_is_marked(
    worker: Any, make_browser: MakeBrowser, clock: ManualClock, server_url: str
) -> None:
    """A declaration that differs from the one in Redis does not keep the page from being shown."""
    worker.push_many([{"id": 1}])
    other = Lowkiq(Config(redis_url=server_url), clock=clock)
    declare(other, worker.queue_name, FailingHandler(), shards_count=7)

    words = make_browser(app=other).get("/").words
    assert "mismatched The queue's declaration in Redis differs from the app's" in words
    assert "declared otherwise" not in make_browser().get("/").words
    other.core.backend.client.close()


def test_the_lag_of_a_paused_queue_stands_apart(
    app: Lowkiq, browser: Browser, queue_name: str, clock: ManualClock
) -> None:
    """P9: it is told in the queue's own row, and the number above all queues tells it apart."""
    worker: Any = declare(app, queue_name, FailingHandler())
    worker.push_many([{"id": 1}])
    app.operate(worker).pause()
    clock.advance(90)
    words = browser.get("/").words

    assert "Oldest due job 0 s paused 1m 30s" in words
    assert "Due now 0 1 more paused" in words
    assert "0 s paused 1m 30s" in words
    assert f'lowkiq_queue_paused_lag_seconds{{queue="{queue_name}"}} 90.0' in browser.get("/metrics").text
    assert f'lowkiq_queue_lag_seconds{{queue="{queue_name}"}} 0.0' in browser.get("/metrics").text
