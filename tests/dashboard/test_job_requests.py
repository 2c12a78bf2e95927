"""Stop a job for good, pause it and resume it: by the pages and the API, in words, and by whom."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TypeAlias
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import BatchJob, Lowkiq, Worker
from lowkiq_lambda.operate.presentation.requests import answer_words
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.web import Browser
from tests.kit.workers import declare, jobs_of

ACTIVITY = "lowkiq_lambda.activity"
OWN_END, YIELD = "nothing stops its handler; if it hangs, evict", "stops at its next yield"
AWAIT = "is cancelled at its next await"

Look: TypeAlias = Callable[[], object]


@pytest.fixture
def worker(app: Lowkiq, queue_name: str) -> type[Worker]:
    """One with two jobs that wait."""
    made = declare(app, queue_name, Notes())
    made.push_many(jobs_of("ab"))
    return made


def page(browser: Browser, path: str, worker: type[Worker], **query: str) -> str:
    """The text of a page of the worker's queue."""
    return browser.get(f"/{path}?{urlencode({'queue': worker.queue_name, **query})}").text


def test_a_job_is_paused_resumed_and_stopped_by_its_page(
    app: Lowkiq, make_browser: MakeBrowser, worker: type[Worker], caplog: pytest.LogCaptureFixture
) -> None:
    """Each act is asked for, done, told on the page, and logged."""
    caplog.set_level(logging.INFO, ACTIVITY)
    browser, queue = make_browser(), worker.queue_name

    assert "Pause this job…" in page(browser, "job", worker, id="a")
    assert "Resume…" not in page(browser, "job", worker, id="a")
    assert "It is not performed before the end" in page(browser, "actions/job", worker, do="pause", id="a")
    browser.send("/actions/job", {"queue": queue, "id": "a", "do": "pause", "seconds": "300"})
    text = page(browser, "job", worker, id="a")
    assert "The job itself is paused." in text
    assert "It is paused by" in text
    assert "Resume…" in text
    browser.send("/actions/job", {"queue": queue, "id": "a", "do": "resume"})
    assert [] == app.operate(worker).requests()
    assert "stopped at once" in page(browser, "actions/job", worker, do="cancel", id="a")
    browser.send("/actions/job", {"queue": queue, "id": "a", "do": "cancel"})

    assert look(app, worker, "a") is None
    assert ["pause_job", "resume_job", "cancel"] == [record.__dict__["action"] for record in caplog.records]


def test_a_reader_can_do_none_of_it(app: Lowkiq, make_browser: MakeBrowser, worker: type[Worker]) -> None:
    """Neither by a form nor by a button."""
    browser = make_browser(READER)

    assert "Stop for good" not in page(browser, "job", worker, id="a")
    assert 403 == browser.post("/actions/job", {"queue": worker.queue_name, "id": "a", "do": "cancel"}).status
    assert look(app, worker, "a") is not None


def plain(look_at: Look) -> dict[str, object]:
    """A handler that is a plain function."""
    return {"perform": lambda _self, _batch: look_at()}


def generator(look_at: Look) -> dict[str, object]:
    """A handler that yields a cursor."""

    def perform_job(_self: Worker, _job: BatchJob) -> Iterator[int]:
        look_at()
        yield 1

    return {"perform_job": perform_job}


def coroutine(look_at: Look) -> dict[str, object]:
    """A handler that is awaited."""

    async def perform(_self: Worker, _batch: object) -> None:
        await asyncio.to_thread(look_at)

    return {"perform": perform}


@pytest.mark.parametrize(
    ("handler", "words"),
    [(plain, (OWN_END, OWN_END)), (generator, (YIELD, YIELD)), (coroutine, (AWAIT, OWN_END))],
)
def test_what_stops_a_run_is_told_by_its_handler(
    app: Lowkiq,
    make_browser: MakeBrowser,
    queue_name: str,
    handler: Callable[[Look], dict[str, object]],
    words: tuple[str, str],
) -> None:
    """By the pages before a cancel and a pause, and by the answers after them."""
    browser, looks = make_browser(), list[list[str]]()

    def look_at() -> None:
        desk = app.operate(made)
        pages = [page(browser, "actions/job", made, do=do, id="a") for do in ("cancel", "pause")]
        paused, cancelled = desk.pause_jobs(["a"], 10), desk.cancel(["a"])
        looks.append([*pages, *answer_words("cancel", cancelled), *answer_words("pause_job", paused)])

    made = declare(app, queue_name, Notes(), **handler(look_at))
    made.push("a", 1)
    app.drain()

    assert [True] * 4 == [word in text for word, text in zip(words * 2, looks[0], strict=True)]
    assert ("Evict is on the page" in looks[0][0]) == (handler is plain)
