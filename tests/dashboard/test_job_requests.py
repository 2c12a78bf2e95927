"""Stop a job for good, pause it and resume it: by the pages and the API, in words, and by whom."""

import logging
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq, Worker
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.web import Browser
from tests.kit.workers import declare, jobs_of

ACTIVITY = "lowkiq_lambda.activity"


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
