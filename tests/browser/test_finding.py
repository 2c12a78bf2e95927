"""The search box by keyboard, and rows that are ticked, sorted and copied."""

from typing import Any

from playwright.sync_api import expect

from lowkiq_lambda import Lowkiq
from tests.browser.conftest import Visit
from tests.browser.killing import kill
from tests.browser.looks import look_around
from tests.kit.handlers import FailingHandler


def test_sk21_a_job_is_found_by_keyboard_from_any_page(worker: Any, visit: Visit, complaints: list[str]) -> None:
    """SK-21: a slash or ctrl-k, the id and Enter lead to the job; a slash that is typed into a field stays there."""
    worker.push_many([{"id": "a/4711"}])
    page = visit("schedules")
    box = page.get_by_role("searchbox", name="Search ids, queues and pages")

    page.keyboard.press("/")
    expect(box).to_be_focused()
    page.keyboard.type("a/47")
    expect(box).to_have_value("a/47")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Ids that begin with it")).to_be_visible()
    assert [] == look_around(page, "found")

    page.keyboard.press("Control+k")
    expect(box).to_be_focused()
    page.keyboard.type("a/4711")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="a/4711").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("a/4711")
    assert [] == complaints


def test_what_is_ticked_keeps_its_actions_in_sight(
    app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit
) -> None:
    """Far down in a long list the heads of its columns and the actions on the ticked rows are still there."""
    kill(app, worker, handler, [{"id": f"dead-{number:02}"} for number in range(60)])
    page = visit(f"morgue?queue={worker.queue_name}")
    rows = page.locator("tbody tr")
    actions = page.get_by_role("group", name="Actions on the selected jobs")
    expect(actions).not_to_be_in_viewport()

    rows.nth(3).get_by_role("checkbox").check()
    rows.nth(6).get_by_role("checkbox").click(modifiers=["Shift"])
    expect(actions).to_contain_text("4 selected")
    rows.nth(30).scroll_into_view_if_needed()
    expect(actions).to_be_in_viewport(ratio=0.9)
    expect(page.get_by_role("columnheader", name="Died")).to_be_in_viewport(ratio=0.9)
    # A row that is half under what stays in sight would count as too small.
    page.evaluate("document.querySelectorAll('.selection, thead th').forEach((part) => part.style.position = 'static')")
    assert [] == look_around(page, "ticked")


def test_an_id_is_copied(worker: Any, visit: Visit) -> None:
    """A button beside the id puts it into the clipboard."""
    worker.push_many([{"id": "order 4711", "payload": {"n": 1}}])
    page = visit(f"job?queue={worker.queue_name}&id=order+4711", permissions=["clipboard-read", "clipboard-write"])

    page.get_by_role("button", name="Copy the id").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    assert "order 4711" == page.evaluate("navigator.clipboard.readText()")
