"""The page of one queue: its numbers, its chart, its tabs, its shards and its pause."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from lowkiq_lambda import BatchJob, Lowkiq, Rate, Rejected, Worker
from lowkiq_lambda.dashboard.pages import queue_page
from lowkiq_lambda.operate.inspect.activity import record_action
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.store.shard.history import Recorder
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.activity import ActivityEntry
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import FailingHandler, Notes
from tests.kit.web import Browser
from tests.kit.workers import declare


def test_a_page_shows_its_queue_and_no_other(
    app: Lowkiq, browser: Browser, queue_name: str, clock: ManualClock
) -> None:
    """SK-21: numbers, chart and shards of the queue; tabs count what their lists hold; a part is only what changes."""
    handler = FailingHandler()
    handler.failing = {"0"}
    worker: Any = declare(app, queue_name, handler, shards_count=2)
    other: Any = declare(app, f"{queue_name}-other", FailingHandler())
    worker.push_many([{"id": number} for number in range(5)])
    other.push_many([{"id": number} for number in range(9)])
    app.drain()
    worker.push_many([{"id": "late", "delay": 600}])
    clock.advance(90.0)

    page = browser.get(f"/queue?queue={queue_name}&span=1h")

    assert "Queue Waiting 2 In flight 0 Morgue 0 Errors Shards 2 Recovered Limits Job" in page.words
    assert "ended 4 failed 1" in page.words
    assert "Fresh 1 Retries 1 Morgue 0" in page.words
    assert f'href="./queue?queue={queue_name}&amp;span=6h"' in page.text
    part = browser.part(f"/queue?queue={queue_name}")
    assert ("<html" in part.text, "Pause for that long" in part.words) == (False, False)
    assert 404 == browser.get("/queue?queue=nobody").status


def test_the_chart_and_the_numbers_beside_it_have_one_word_for_one_thing(
    app: Lowkiq, browser: Browser, queue_name: str, clock: ManualClock
) -> None:
    """P9: what was refused has ended and is not done; done and refused add up to what the chart has."""

    def perform(_worker: Worker, job: BatchJob) -> None:
        if job.id == "0":
            raise Rejected("no such product")

    declare(app, queue_name, Notes(), perform_job=perform).push_many([{"id": number} for number in range(3)])
    app.drain()
    clock.advance(90.0)

    words = browser.get(f"/queue?queue={queue_name}&span=1h").words

    assert "ended 3 failed 0" in words
    assert ("Done 2" in words, "Refused 1" in words, "done 3" in words) == (True, True, False)


def test_a_queue_is_paused_for_a_typed_time_from_its_page(
    app: Lowkiq, worker: Any, browser: Browser, make_browser: MakeBrowser, clock: ManualClock
) -> None:
    """P9: ten minutes are typed as 10m; the confirmation has them, and leads back to the page."""
    page = f"/queue?queue={worker.queue_name}"
    asked = browser.get(f"/actions/queue?queue={worker.queue_name}&back=queue&seconds=other&length=10m&do=pause")
    assert 'name="length" value="10m"' in asked.text
    fields = {"queue": worker.queue_name, "do": "pause", "seconds": "other", "length": "10m", "back": "queue"}

    answer = browser.send("/actions/queue", fields)

    assert answer.location.endswith(page)
    (shard,) = app.operate(worker).shards()
    assert clock.time() + 600 == shard.paused_until
    assert "Paused for 10m" in browser.follow(answer).words
    assert "Pause for that long" not in make_browser(READER).get(page).words


def test_a_lag_beyond_the_limit_is_marked(
    app: Lowkiq, queue_name: str, make_browser: MakeBrowser, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In red on each page, and in the title of the tab, which is seen where the page is not; a pause is no lag."""
    worker: Any = declare(app, queue_name, FailingHandler())
    worker.push_many([{"id": 1}])
    clock.advance(60.0)
    page = make_browser().get("/").text
    assert ("<title>Overview · lowkiq</title>" in page, 'class="late"' in page) == (True, False)
    monkeypatch.setenv("LOWKIQ_DASHBOARD_LAG_LIMIT", "60")
    browser = make_browser()

    assert "<title>1 late · Overview · lowkiq</title>" in browser.get("/").text
    assert 'data-title="1 late · Overview · lowkiq"' in browser.part("/").text
    assert 'data-name="Lag" class="late"' in browser.get("/").text
    assert f"<title>late · {queue_name} · lowkiq</title>" in browser.get(f"/queue?queue={queue_name}").text
    assert 'data-name="Lag" class="late"' in browser.get(f"/shards?queue={queue_name}").text

    app.operate(worker).pause()
    assert "<title>Overview · lowkiq</title>" in browser.get("/").text
    assert f"<title>paused · {queue_name} · lowkiq</title>" in browser.get(f"/queue?queue={queue_name}").text


def test_a_queue_begins_with_how_it_does_in_a_sentence(
    app: Lowkiq, browser: Browser, queue_name: str, clock: ManualClock
) -> None:
    """When it is empty, or what keeps it from that: a time that is to come, a pause, nobody at work, a blocked head."""
    worker: Any = declare(app, queue_name, FailingHandler(), batch_size=1)

    def says() -> str:
        return browser.get(f"/queue?queue={queue_name}").words

    assert "It is empty." in says()
    worker.push_many([{"id": f"later {number}", "delay": 6_000} for number in range(2)])
    assert "Nothing is due. 2 ids wait for a later time." in says()
    worker.push_many([{"id": number} for number in range(30)])
    clock.advance(60.0)
    assert "30 ids are due, and none has ended in the last half minute. 2 ids wait for a later time." in says()
    app.drain()
    worker.push_many([{"id": number} for number in range(10)])
    clock.advance(12.0)
    assert "At 60 ids a minute it is empty in 10 s, at 2027-01-15 08:01:22 UTC . 10 ids are due" in says()
    app.operate(worker).pause()
    assert "It is paused, and 10 ids are due. 2 ids wait for a later time." in says()


def test_what_arrived_stands_over_what_was_done(
    app: Lowkiq, browser: Browser, worker: Any, clock: ManualClock, queue_name: str
) -> None:
    """Where somebody has looked each minute: in the chart, its table, the sentence and the API; null where not."""
    for _ in range(10):
        worker.push_many([{"id": number, "payload": number} for number in range(12)])
        app.drain()
        browser.get("/")
        clock.advance(60.0)

    page = browser.get(f"/queue?queue={queue_name}&span=1h")
    series = browser.get(f"/api/v1/history?queue={queue_name}&span=1h").json["series"]

    assert "arrived 108 ended 108 failed 0" in page.words
    assert 'class="line arrived"' in page.text
    assert "108 ids ended, done or refused, and 0 failed; at least 108 payloads arrived." in page.text
    assert "It is empty. Payloads arrive at 12 a minute." in page.words
    (table,) = re.findall(r"(?s)Values as a table.*?<tbody>(.*?)</tbody>", page.text)
    assert table.endswith("<td>60</td><td>60</td><td>0</td></tr>")
    assert 60 == len(series["arrived"])
    assert [12] * 9 == [count for count in series["arrived"] if count is not None]
    assert 'class="line arrived"' not in browser.get(f"/queue?queue={queue_name}&span=72h").text


def test_a_queue_tells_how_long_ids_waited_until_they_began(
    app: Lowkiq, browser: Browser, queue_name: str, clock: ManualClock
) -> None:
    """By half hours, as far as they are kept: a table with a shade for the share of each wait."""
    worker: Any = declare(app, queue_name, FailingHandler(), batch_size=1)
    assert "How long ids wait" not in browser.get(f"/queue?queue={queue_name}").words
    worker.push_many([{"id": number} for number in range(6)])
    clock.advance(30.0)
    app.drain()
    clock.advance(1_800.0)
    worker.push_many([{"id": number} for number in range(3)])
    app.drain()
    clock.advance(10.0)

    page = browser.get(f"/queue?queue={queue_name}")

    rows = re.findall(r'<tr><th scope="row">((?:up|over)[^<]*)</th>(.*?)</tr>', page.text)
    cells = {name: re.findall(r'class="h(\d)"><data value="(\d+)"', row) for name, row in rows}
    assert ["over 1h", "up to 1h", "up to 10m", "up to 1m", "up to 10 s", "up to 1 s"] == [*cells]
    assert [("5", "6"), ("0", "0")] == cells["up to 1m"]
    assert [("0", "0"), ("3", "3")] == cells["up to 1 s"]


def test_beside_the_numbers_stand_limits_errors_and_who_did_what(
    app: Lowkiq, browser: Browser, queue_name: str
) -> None:
    """The limit is refreshed with the numbers; errors and activity are read with the page alone."""
    handler = FailingHandler()
    handler.failing, handler.words = {"0", "1"}, "order 17 is unknown"
    worker: Any = declare(app, queue_name, handler, max_running=3, rate=Rate(100, per=60))
    assert "No id is retried or dead." in browser.get(f"/queue?queue={queue_name}").words
    worker.push_many([{"id": number} for number in range(2)])
    app.drain()
    act = ActivityEntry(at=1_800_000_000.0, who="olga", action="set_limits", queue=queue_name, reason="it is slow")
    record_action(app.core.backend, act)

    page, part = browser.get(f"/queue?queue={queue_name}"), browser.part(f"/queue?queue={queue_name}")

    assert "order # is unknown 2 ids, 2 in the last 24 h All errors" in page.words
    assert "olga set limits now : it is slow" in page.words
    for words in (page.words, part.words):
        assert "0 of 3 shards at once" in words
        assert "2 of 100 ids in 1m" in words
    assert ("order # is unknown" in part.words, "olga" in part.words) == (False, False)


def test_many_errors_are_not_counted_for_a_page_of_numbers(
    app: Lowkiq, browser: Browser, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leads to the page that counts them."""
    monkeypatch.setattr(queue_page, "_FEW", 1)
    handler = FailingHandler()
    handler.failing = {"0", "1"}
    worker: Any = declare(app, queue_name, handler)
    worker.push_many([{"id": number} for number in range(2)])
    app.drain()

    assert "2 ids failed last, too many to count them here." in browser.get(f"/queue?queue={queue_name}").words


def test_the_times_say_which_stretch_they_are_of(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """P9: an empty hour is no empty span; a long span has the days that are kept."""
    address = f"/queue?queue={worker.queue_name}&span=72h"
    assert "Wait p50 · p95, last hour nothing performed" in browser.get(address).words

    recorder, at = Recorder(app.core.backend, 30), app.core.clock.time() - 86_400.0
    past: dict[str, Any] = {"counts": {"done": 1}, "took": [1.0], "waited": [1.0]}
    recorder.note(SettledEvent(queue_name=worker.queue_name, shard=0, token=1, at=at, **past))
    recorder.flush()

    words = browser.get(address).words
    day = datetime.fromtimestamp(at, UTC).date().isoformat()
    assert (True, False) == (f"Wait p50 · p95, since {day} " in words, "nothing performed" in words)
