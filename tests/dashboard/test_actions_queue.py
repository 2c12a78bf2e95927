"""What operators do to a queue, by the pages."""

import logging
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import FailingHandler
from tests.kit.web import Answer, Browser

ACTIVITY = "lowkiq_lambda.activity"


def asked(browser: Browser, worker: Any, do: str) -> Answer:
    """Where a button of the shards' page leads."""
    return browser.get(f"/actions/queue?{urlencode({'queue': worker.queue_name, 'do': do})}")


def order(browser: Browser, worker: Any, do: str, **fields: str) -> Answer:
    """Say that it is meant."""
    return browser.send("/actions/queue", {"queue": worker.queue_name, "do": do, **fields})


def paused_for(app: Lowkiq, worker: Any) -> float | None:
    """Seconds that are left of a pause."""
    (shard,) = app.operate(worker).shards()
    return shard.paused_until - shard.at if shard.paused_until is not None else None


def test_a_queue_is_paused_and_resumed(
    app: Lowkiq, worker: Any, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """Asked first, then done; and each is noted."""
    caplog.set_level(logging.INFO, ACTIVITY)
    worker.push_many([{"id": "a"}])
    assert "1 shard , with 1 waiting id" in asked(browser, worker, "pause").words
    assert (None, []) == (paused_for(app, worker), caplog.records)

    answer = order(browser, worker, "pause")
    assert (303, float("inf")) == (answer.status, paused_for(app, worker))
    shown = browser.follow(answer).words
    assert "until resumed" in shown
    assert {} == {outcome: n for outcome, n in app.drain().items() if n}
    assert "will perform the due jobs again" in asked(browser, worker, "resume").words
    order(browser, worker, "resume")
    assert (None, 1) == (paused_for(app, worker), app.drain()["done"])
    order(browser, worker, "resume")
    noted = [(record.action, record.changed) for record in caplog.records]  # type: ignore[attr-defined]  # the log sets it
    assert [("pause", 1), ("resume", 1), ("resume", 0)] == noted


def test_drains_forget_how_long_batches_took(
    app: Lowkiq, worker: Any, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """Asked first, then done; and it is noted."""
    caplog.set_level(logging.INFO, ACTIVITY)
    worker.push_many([{"id": "a"}])
    app.drain()
    key = app.core.queues.agreed(worker).shards[0].key("meta")
    assert "do not expect a batch as slow" in asked(browser, worker, "forget_timing").words
    assert app.core.backend.client.hexists(key, "pace")

    answer = order(browser, worker, "forget_timing", reason="the ERP is back")

    assert (303, False) == (answer.status, app.core.backend.client.hexists(key, "pace"))
    (line,) = [vars(record) for record in caplog.records]
    assert ("forget timing", 1, "the ERP is back") == tuple(line[name] for name in ("action", "changed", "reason"))


def test_a_pause_for_a_time(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """As many seconds as were chosen; what is no time is refused."""
    order(browser, worker, "pause", seconds="300")
    assert 300 == paused_for(app, worker)
    for wrong in ("-1", "0", "nan", "x", "inf"):
        assert 400 == order(browser, worker, "pause", seconds=wrong).status


def test_a_holder_is_evicted(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """By the button of its shard; who asks again finds nothing to do once it has let go."""
    caplog.set_level(logging.INFO, ACTIVITY)
    answers: list[Answer] = []
    pages: list[Answer] = []
    buttons: list[str] = []

    def meanwhile() -> None:
        (shard,) = app.operate(worker).shards()
        buttons.append(f"evict:0:{shard.token}")
        pages.append(browser.get(f"/shards?queue={worker.queue_name}"))
        answers.append(asked(browser, worker, buttons[0]))
        pages.append(browser.get(f"/shards?queue={worker.queue_name}"))
        answers.append(order(browser, worker, buttons[0]))
        answers.append(browser.follow(answers[1]))
        answers.append(browser.get(f"/job?queue={worker.queue_name}&id=a"))

    handler.meanwhile = meanwhile
    worker.push_many([{"id": "a"}])
    app.drain()
    assert buttons[0] in pages[0].text
    assert "is accepted any more" not in pages[1].words
    assert "do not count as failed" in answers[0].words
    assert 303 == answers[1].status
    assert "Shard 0 : its holder was evicted or gave up" in answers[2].words
    assert "fenced" in answers[2].words
    assert "which was evicted or gave up. The lease ends in" in answers[3].words
    assert 1 == app.operate.metrics()[worker.queue_name].in_flight
    (record,) = (record for record in caplog.records if record.name == ACTIVITY)
    assert ("olga", 1) == (record.who, record.changed)  # type: ignore[attr-defined]  # the log sets it
    assert buttons[0] not in browser.get(f"/shards?queue={worker.queue_name}").text
    assert "Nothing to do" in asked(browser, worker, buttons[0]).words
    assert "Nothing to do" in asked(browser, worker, "evict:0:1").words
    assert "Nothing to do" in browser.follow(order(browser, worker, "evict:0:1")).words


def test_only_a_pause_can_be_resumed(worker: Any, browser: Browser) -> None:
    """The button is there while the queue is paused; who asks later is told that there is nothing to do."""
    page = f"/shards?queue={worker.queue_name}"
    assert 'value="resume"' not in browser.get(page).text
    assert "Nothing to do" in asked(browser, worker, "resume").words

    order(browser, worker, "pause")
    assert 'value="resume"' in browser.get(page).text
    assert "Nothing to do" not in asked(browser, worker, "resume").words


@pytest.mark.parametrize("do", ["", "stop", "evict", "evict:1:1", "evict:-1:1", "evict:x:1"])
def test_an_order_that_is_none(worker: Any, browser: Browser, do: str) -> None:
    """It is refused."""
    if not do.startswith("evict"):
        assert 400 == asked(browser, worker, do).status
    assert 400 == order(browser, worker, do).status


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [
        ("90 s", 90),
        ("15 min", 900),
        ("2 h 30 min", 9_000),
        ("2h30m", 9_000),
        ("1 day and 12 hours", 129_600),
        (" 1.5 H ", 5_400),
        ("until resumed", float("inf")),
    ],
)
def test_a_pause_for_a_time_that_is_typed(
    app: Lowkiq, worker: Any, browser: Browser, typed: str, seconds: float
) -> None:
    """As people write it."""
    order(browser, worker, "pause", seconds="other", length=typed)

    assert seconds == paused_for(app, worker)


@pytest.mark.parametrize("typed", ["", "90", "soon", "-5 min", "0 s", "1 h or so", "999999999 d", "9" * 5_000 + " s"])
def test_a_time_that_cannot_be_read_is_asked_for_again(app: Lowkiq, worker: Any, browser: Browser, typed: str) -> None:
    """Nothing is paused; the question stands there again, with what was typed and what is wrong with it."""
    answer = order(browser, worker, "pause", seconds="other", length=typed, back="morgue")
    assert (303, None) == (answer.status, paused_for(app, worker))
    again = browser.follow(answer)

    assert 'aria-invalid="true"' in again.text
    assert f'value="{typed[:100]}"' in again.text
    assert f"./morgue?queue={worker.queue_name}" in again.text or "../morgue?queue=" in again.text


@pytest.mark.parametrize("page", ["waiting", "processing", "morgue", "shards", "job"])
def test_a_queue_is_paused_from_each_of_its_pages(
    worker: Any, browser: Browser, make_browser: MakeBrowser, page: str
) -> None:
    """The button is on all of them, for operators, and leads back to where it was."""
    path = f"/{page}?queue={worker.queue_name}"
    assert 'value="pause"' in browser.get(path).text
    assert 'value="pause"' not in make_browser(READER).get(path).text

    assert browser.follow(order(browser, worker, "pause", back=page)).url.endswith(path)
    assert 'value="resume"' in browser.get(path).text
    assert browser.follow(order(browser, worker, "resume", back=page)).url.endswith(path)
    assert browser.follow(order(browser, worker, "resume", back="//evil.example")).url.endswith(
        f"/shards?queue={worker.queue_name}"
    )
