"""Ids come back as an operator chooses on the page: tried first, then done, with scripts and without."""

from typing import Any

import pytest
from playwright.sync_api import expect

from lowkiq_lambda import Lowkiq
from tests.browser.conftest import Visit
from tests.kit.handlers import FailingHandler
from tests.kit.steering import ask, confirm, expect_done
from tests.kit.workers import declare


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """A worker that has killed two ids."""
    worker = declare(app, queue_name, handler, max_retry_count=0)
    handler.failing = {"a", "b"}
    worker.push_many([{"id": name, "score": 1} for name in "ab"])
    app.drain()
    handler.failing = set()
    return worker


def test_a_requeue_is_tried_and_then_done(app: Lowkiq, worker: Any, visit: Visit) -> None:
    """The dry run keeps what was chosen and changes nothing; the answer does what was chosen."""
    worker.push(id="a", score=2)
    page = visit(f"morgue?queue={worker.queue_name}")
    ask(page, "Requeue all")
    page.get_by_label("Order of the payloads").select_option("unless_newer")
    page.get_by_label("Ids a second").fill("0.5")
    page.get_by_label("Reason").fill("to see")
    page.get_by_role("button", name="Dry run").click()

    expect(page.get_by_role("heading", name="Dry run of the first 2")).to_be_visible()
    expect(page.get_by_text("a: stays: a newer payload waits or runs")).to_be_visible()
    expect(page.get_by_text("1 id would wait again, 1 would not; nothing was changed.")).to_be_visible()
    assert 2 == app.operate.metrics()[worker.queue_name].morgue_length
    expect(page.get_by_label("Ids a second")).to_have_value("0.5")
    expect(page.get_by_label("Order of the payloads")).to_have_value("unless_newer")
    expect(page.get_by_label("Reason")).to_have_value("to see")

    confirm(page, "Requeue")
    expect_done(page, "1 id was")
    assert 1 == app.operate.metrics()[worker.queue_name].morgue_length
