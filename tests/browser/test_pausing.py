"""Pause and resume: what is asked before, what is shown meanwhile, and that nobody drains."""

import re
from typing import Any

from playwright.sync_api import expect

from lowkiq_lambda import Lowkiq
from tests.browser.conftest import Visit
from tests.kit.steering import confirm


def test_a_paused_queue_says_so_and_waits_until_it_is_resumed(app: Lowkiq, worker: Any, visit: Visit) -> None:
    """Nothing is performed between the two, and a job's page tells why."""
    page = visit(f"shards?queue={worker.queue_name}")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("3 shards")).to_be_visible()
    confirm(page, "Pause")
    expect(page.locator("tbody").get_by_text("paused", exact=True)).to_have_count(3)

    worker.push_many([{"id": "held-back"}])
    app.drain()
    shards = page.url
    page.goto(shards.replace("shards", "job") + "&id=held-back")
    expect(page.get_by_text("Its queue is paused until an operator resumes it")).to_be_visible()

    page.goto(shards)
    page.get_by_role("button", name="Resume").click()
    confirm(page, "Resume")
    expect(page.locator("tbody").get_by_text("paused", exact=True)).to_have_count(0)
    app.drain()

    assert 1 == app.operate.metrics()[worker.queue_name].done


def test_a_pause_ends_by_itself(worker: Any, visit: Visit) -> None:
    """A pause for an hour says how long it lasts."""
    page = visit(f"shards?queue={worker.queue_name}")
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("For how long").select_option("for an hour")
    confirm(page, "Pause")

    expect(page.locator("td[data-name=Pause]").first).to_have_text(re.compile("for (1h|59m .*)"))
