"""The page of a job that is left open: it follows the job, and what a person is doing on it stays."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from lowkiq_lambda import Lowkiq
from tests.browser.conftest import Visit
from tests.kit.handlers import FailingHandler
from tests.kit.workers import declare

SOON = 20_000
"""Milliseconds in which a page refreshes itself at least once."""
SELECT = """element => getSelection().selectAllChildren(element)"""
SELECTED = "getSelection().toString()"


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """A worker whose jobs are tried again after a minute."""
    return declare(app, queue_name, handler, max_retry_count=1)


def watch(visit: Visit, worker: Any, job_id: str) -> Page:
    """The job's page, in a window whose time the test can move on; it is not loaded again."""
    page = visit(f"job?queue={worker.queue_name}&id={job_id}")
    page.clock.install()
    page.reload()
    page.evaluate("window.isFirst = true")
    return page


def pass_time(page: Page) -> None:
    """Let the page's own clock run, and wait until it has been refreshed."""
    with page.expect_response(lambda response: "hx-request" in response.request.headers):
        page.clock.run_for(SOON)


def button(page: Page, name: str) -> Locator:
    """One of those that act on the job."""
    return page.locator("form.toolbar").get_by_role("button", name=name, exact=True)


def test_a_jobs_page_follows_the_job(app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit) -> None:
    """A push, a new due time, a failure, a death and the end: badge, times, payloads and buttons follow."""
    worker.push_many([{"id": "a", "payload": "first", "score": 1, "delay": 3_600}])
    page = watch(visit, worker, "a")
    due = page.locator("main h2 + p time")
    expect(page.locator("article")).to_have_count(1)
    expect(page.get_by_role("heading", name="Waiting")).to_contain_text("fresh")
    expect(button(page, "Run now")).to_be_visible()
    before = due.get_attribute("datetime")

    worker.push_many([{"id": "a", "payload": "second", "score": 2}])
    app.operate(worker).waiting.run_now(everything=True)
    pass_time(page)
    expect(page.locator("article")).to_have_count(2)
    expect(page.get_by_role("heading", name="2 payloads")).to_be_visible()
    expect(button(page, "Run now")).to_have_count(0)
    assert before != due.get_attribute("datetime")

    handler.failing = {"a"}
    app.drain()
    pass_time(page)
    expect(page.get_by_role("heading", name="Waiting")).to_contain_text("retry 1")
    expect(page.get_by_role("region", name="Last error")).to_have_text("a is broken")
    expect(page.get_by_role("list", name="Its stages")).to_contain_text("Try 1 failed")
    expect(button(page, "Kill")).to_be_visible()

    app.operate(worker).waiting.kill(everything=True)
    pass_time(page)
    expect(page.get_by_role("heading", name="In the morgue")).to_be_visible()
    expect(page.get_by_role("heading", name="Waiting")).to_have_count(0)
    expect(button(page, "Requeue")).to_be_visible()
    expect(button(page, "Kill")).to_have_count(0)

    handler.failing = set()
    app.operate(worker).morgue.requeue(["a"])
    app.drain()
    pass_time(page)
    expect(page.get_by_text("The queue has no job of this id")).to_be_visible()
    expect(page.locator("article")).to_have_count(0)
    expect(page.locator("form.toolbar")).to_have_count(0)
    assert page.evaluate("window.isFirst")


def test_what_a_person_does_outlives_a_refresh(worker: Any, visit: Visit) -> None:
    """An open part, a selected text that changes, a half typed id, and the focus."""
    worker.push_many([{"id": "a", "payload": number, "score": number, "delay": 3_600} for number in range(9)])
    page = watch(visit, worker, "a")
    page.get_by_text("4 more").click()
    page.get_by_label("Id of the job").fill("half an i")
    delete = button(page, "Delete")
    delete.focus()
    answer = page.locator(".answer")
    answer.evaluate(SELECT)
    selected = page.evaluate(SELECTED)

    worker.push_many([{"id": "a", "payload": 9, "score": 9}])
    pass_time(page)
    expect(page.locator("article")).to_have_count(10)

    assert selected
    assert "It is not due yet" in selected
    assert selected == page.evaluate(SELECTED)
    expect(page.get_by_role("heading", name="10 payloads")).to_be_visible()
    expect(page.locator("summary").filter(has_text=re.compile(r"^5 more$"))).to_have_count(1)
    expect(page.get_by_role("region", name="Payload 10, waiting")).to_be_visible()
    expect(page.get_by_label("Id of the job")).to_have_value("half an i")
    expect(delete).to_be_focused()


def test_a_selected_text_is_brought_up_to_date_when_it_is_let_go(worker: Any, visit: Visit) -> None:
    """What is kept as it was for somebody who copies it is not kept for good."""
    worker.push_many([{"id": "a", "delay": 3_600}])
    page = watch(visit, worker, "a")
    answer = page.locator(".answer")
    answer.evaluate(SELECT)
    worker.app.operate(worker).waiting.run_now(everything=True)
    pass_time(page)
    expect(answer).to_contain_text("It is not due yet")

    page.evaluate("getSelection().removeAllRanges()")
    pass_time(page)
    expect(answer).to_contain_text("It has been due for")
