"""Tasks by day, by night and on a phone, a task that goes on while somebody looks, and one that is cancelled."""

import pytest
from playwright.sync_api import expect

from lowkiq_lambda import BatchJob, Lowkiq, Rejected, Worker
from lowkiq_lambda.tasks.task import Task
from tests.browser.conftest import Visit
from tests.browser.looks import look_around
from tests.browser.pictures import picture
from tests.kit.handlers import Notes
from tests.kit.workers import declare


def enrol(_worker: Worker, job: BatchJob) -> None:
    """Enrol a product; one in seven cannot be, and one breaks."""
    for step in ("read the product", "fetched its pictures", "asked the shop", "checked the price"):
        job.note(step)
    number = int(job.id.rpartition(" ")[2])
    if number == 5:
        raise ValueError("the shop answered 503: Service Unavailable, and did so again when it was asked again")
    if number % 7 == 0:
        raise Rejected(f"the seller of product {number} is not qualified for this category")


@pytest.fixture
def task(app: Lowkiq, queue_name: str) -> Task:
    """A task of 14 items, of which 3 wait."""
    worker = declare(app, queue_name, Notes(), perform_job=enrol, shards_count=3, max_retry_count=0)
    task = app.task("Enrol the products of Globex")
    with task:
        task.push_many(worker, [{"id": f"product {number}", "item": f"row {number}"} for number in range(1, 11)])
        task.push_many(worker, [{"id": f"{'long-name-of-a-product-' * 6} 14", "item": "the-longest-label-of-all-" * 4}])
        task.push_many(worker, [{"id": f"later {number}", "delay": 3_600} for number in range(41, 44)])
    app.drain()
    return task


def test_a23_pages_of_tasks_suit_everybody(task: Task, visit: Visit, complaints: list[str]) -> None:
    """A-23, A-38: the list, and a task with what failed first and why; a status shows its items alone."""
    page = visit("tasks")
    assert [] == look_around(page, "tasks")

    page.locator(f'a[href$="{task.id}"]').click()
    expect(page.locator("tbody tr").first).to_contain_text("the seller of product 7 is not qualified")
    expect(page.locator("#live")).to_have_text("live")
    assert [] == look_around(page, "task")
    page.locator("#status-enqueued").click()
    expect(page.locator("tbody tr")).to_have_count(3)
    assert [] == complaints


def test_a_task_is_seen_to_go_on_and_is_cancelled(app: Lowkiq, task: Task, visit: Visit, complaints: list[str]) -> None:
    """The page follows by itself and keeps opened details; its button asks before it cancels."""
    page = visit(f"task?id={task.id}")
    earlier = page.locator("main details").first
    earlier.locator("summary").click()
    expect(page.get_by_text("11 of 14 items have ended.")).to_be_visible()

    (worker,) = app.workers
    app.operate(worker).waiting.delete(["later 41"])
    expect(page.get_by_text("12 of 14 items have ended.")).to_be_visible(timeout=30_000)
    expect(earlier).to_have_attribute("open", "")
    picture(page, "task-details")

    page.get_by_role("button", name="Cancel the task…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cancel the task?")
    assert [] == look_around(page, "ask-cancel-task")
    page.locator("main").get_by_role("button", name="Cancel the task").click()

    expect(page.get_by_text("14 of 14 items have ended.")).to_be_visible()
    expect(page.locator("h1 .badge")).to_have_text("cancelled")
    assert [] == complaints
