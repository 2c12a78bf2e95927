"""The runs of a queue by day, by night and on a phone; the filter is a plain form."""

import time
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from lowkiq_lambda import Batch, Lowkiq
from tests.browser.conftest import Visit
from tests.browser.looks import look_around
from tests.kit.workers import declare, jobs_of


@pytest.fixture
def queue(app: Lowkiq) -> str:
    """A queue that has run a few ids, with errors and long names."""

    def handle(batch: Batch) -> None:
        for job_id in batch:
            if job_id.startswith("order-3"):
                batch.fail(
                    job_id, TimeoutError("the ERP did not answer within 30 seconds, at the third of three tries")
                )

    name = f"SyncOrder-{uuid4().hex[:8]}"
    worker = declare(app, name, handle, keep_runs=1_000, shards_count=2, batch_size=10)
    worker.push_many(jobs_of([*(f"order-{number}" for number in range(25, 45)), f"{'long-name-of-an-order-' * 6}1"]))
    app.drain()
    return name


def test_b2_an_operator_looks_for_what_ran(queue: str, visit: Visit, complaints: list[str]) -> None:
    """B-2: the page suits everybody, and its form selects what ran at a moment."""
    page = visit(f"runs?queue={queue}")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(21)
    expect(rows.filter(has_text="order-31")).to_contain_text("the ERP did not answer")
    assert [] == look_around(page, "runs")

    page.get_by_label("What ran at").fill(str(int(time.time())))
    page.get_by_label("Outcome").select_option("retried")
    page.locator("main").get_by_role("button", name="Show", exact=True).click()
    expect(rows).to_have_count(10)
    page.get_by_label("What ran at").fill("a quarter past")
    page.locator("main").get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#at-hint")).to_contain_text("is not a moment")
    assert [] == look_around(page, "runs-wrong")
    assert [message for message in complaints if "400" not in message] == []
    complaints.clear()
