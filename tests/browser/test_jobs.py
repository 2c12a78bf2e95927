"""A job that failed: found, understood, put back, and seen done."""

from typing import Any

from playwright.sync_api import expect

from lowkiq_lambda import Batch, Lowkiq
from tests.browser.conftest import Visit
from tests.browser.killing import kill
from tests.browser.pictures import picture
from tests.kit.handlers import FailingHandler
from tests.kit.steering import confirm, expect_done, tab_to


def test_a_failed_job_is_found_requeued_and_seen_done(
    app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit
) -> None:
    """From the overview: its morgue, the search, the job with its error, putting it back, and the count of done."""
    handler.words = "met a closed warehouse"
    kill(app, worker, handler, [{"id": f"order-{number}", "payload": {"no": number}} for number in range(120)])
    handler.words = "has no such customer"
    kill(app, worker, handler, [{"id": "order-77", "payload": {"no": 77}}])
    page = visit()

    page.get_by_role("row", name=worker.queue_name).locator("td[data-name=Morgue] a").click()
    expect(page.get_by_role("heading", name="In the morgue")).to_contain_text("100 shown of 120")
    page.get_by_label("Error contains").fill("no such customer")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="order-77", exact=True).click()
    expect(page.get_by_role("region", name="Last error")).to_have_text("order-77 has no such customer")
    expect(page.locator(".timeline")).to_contain_text("order-77 has no such customer")
    expect(page.get_by_text("in the morgue for")).to_be_visible()

    page.get_by_role("group", name="in the morgue").get_by_role("button", name="Requeue").click()
    confirm(page, "Requeue")
    expect_done(page, "1 id was")
    app.drain()

    page.get_by_role("link", name="lowkiq", exact=True).click()
    row = page.get_by_role("row", name=worker.queue_name)
    expect(row.locator("td[data-name=Done]")).to_have_text("1")
    expect(row.locator("td[data-name=Morgue]")).to_have_text("119")


def test_a_job_is_requeued_without_a_pointer(app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit) -> None:
    """Tab, Space and Enter are enough, and each place that they lead to is seen to have the focus."""
    kill(app, worker, handler, [{"id": "first"}, {"id": "second"}])
    page = visit(f"morgue?queue={worker.queue_name}")

    tab_to(page, page.get_by_label("Select first"))
    page.keyboard.press("Space")
    expect(page.get_by_text("1 selected")).to_be_visible()
    tab_to(page, page.get_by_role("button", name="Requeue", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 id that you selected")).to_be_visible()
    tab_to(page, page.get_by_role("button", name="Requeue"))
    page.keyboard.press("Enter")
    expect_done(page, "1 id was")

    assert (1, 1) == (app.operate.stats()["total"]["length"], app.operate.stats()["total"]["morgue_length"])


def test_pages_lead_beyond_the_first_hundred(worker: Any, visit: Visit) -> None:
    """Paging shows every job once."""
    worker.push_many([{"id": f"{number:03}"} for number in range(250)])
    page, seen = visit(f"waiting?queue={worker.queue_name}&by=id"), []

    for shown in (100, 100, 50):
        expect(page.get_by_role("heading", name="Waiting")).to_contain_text(f"{shown} shown of 250")
        seen += page.locator("tbody th a").all_text_contents()
        if shown == 100:
            page.get_by_role("link", name="Next page").click()
            expect(page.get_by_role("link", name=seen[-1], exact=True)).to_have_count(0)

    assert [f"{number:03}" for number in range(250)] == sorted(seen)


def sync_order(batch: Batch) -> None:
    """Raises out of two calls."""

    def charge(order: dict[str, int]) -> int:
        return order["amount_cents"] + 1

    for _ in batch:
        try:
            charge({})
        except KeyError as error:
            raise ValueError("order 77 of the shop in Köln has no amount that could be charged") from error


def test_an_error_of_several_lines_is_its_first_in_lists_and_all_of_it_beside_the_job(
    app: Lowkiq, queue_name: str, visit: Visit
) -> None:
    """A list says `Type: message`; the job's page has the lines of the traceback one below the other."""
    worker = app.worker(queue_name=queue_name, max_retry_count=3, retry_in=lambda _count: 60)(sync_order)
    worker.push_many([{"id": "order-77"}, {"id": "order-78"}])
    app.drain()
    app.operate(worker.worker).waiting.run_now(everything=True)
    app.drain()

    page = visit(f"waiting?queue={queue_name}")
    row = page.get_by_role("row", name="order-77")
    said = "ValueError: order 77 of the shop in Köln has no amount that could be charged"
    expect(row.locator("td[data-name='Last error']")).to_have_text(said)
    picture(page, "errors-list")
    page.get_by_role("link", name="order-77", exact=True).click()

    error = page.get_by_role("region", name="Last error")
    lines = error.inner_text().splitlines()
    assert (said, "caused by KeyError: 'amount_cents'") == (lines[0], lines[-5])
    assert '    return order["amount_cents"] + 1' == lines[-1]
    errors = page.locator(".timeline pre")
    expect(errors).to_have_count(2)
    expect(errors.first).to_contain_text(said)
    expect(errors.first).to_contain_text('return order["amount_cents"] + 1')
    picture(page, "errors-job")
    page.set_viewport_size({"width": 400, "height": 800})
    picture(page, "errors-job-small")
