"""Keys for those who prefer them, the switches of a browser, and the bar of a phone. Nothing needs them."""

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.looks import PHONE, look_around


def test_the_rows_are_walked_and_pages_opened_by_keys(worker: Any, visit: Visit, complaints: list[str]) -> None:
    """J and k lead from row to row, Enter opens one; g and a letter lead to a page, and a question mark tells all."""
    worker.push_many([{"id": "a"}, {"id": "b"}])
    page = visit(f"waiting?queue={worker.queue_name}&by=id")
    links = page.locator("tbody th a")

    page.keyboard.press("j")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("a")

    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", level=1)).to_have_text("Errors")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.get_by_role("link", name=worker.queue_name, exact=True)).to_be_visible()

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("the next row")
    assert [] == look_around(page, "keys")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert [] == complaints


def test_a_typed_letter_is_no_key(visit: Visit) -> None:
    """A name with a j, a g or a question mark can be searched for."""
    page = visit()
    page.keyboard.press("/")
    page.keyboard.type("goj?")

    expect(page.get_by_role("searchbox")).to_have_value("goj?")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_browser_keeps_its_theme_and_its_zone(worker: Any, visit: Visit) -> None:
    """A switch of the theme counts at once, one of the times for the next page; both for all pages that follow."""
    worker.push_many([{"id": "a", "due_at": 1_800_000_000}])
    page = visit(f"waiting?queue={worker.queue_name}")
    background = "getComputedStyle(document.body).backgroundColor"
    bright, due = page.evaluate(background), page.locator("tbody time").first
    expect(due).to_have_attribute("title", "2027-01-15 09:00:00")

    page.get_by_role("group", name="Theme").get_by_role("button", name="dark").click()
    dark = page.evaluate(background)
    page.get_by_role("group", name="Clock").get_by_role("button", name="UTC").click()
    expect(due).to_have_attribute("title", "2027-01-15 08:00:00")
    expect(page.locator("footer")).to_have_text("All times are in UTC.")
    page.goto(page.url.replace("waiting", "queue"))

    assert bright != dark == page.evaluate(background)
    expect(page.get_by_role("button", name="dark")).to_have_attribute("aria-pressed", "true")
    assert [] == look_around(page, "dark-by-choice")


def test_a_page_tells_how_old_its_numbers_are(worker: Any, visit: Visit) -> None:
    """Beside the word for screen readers, which changes with the state alone."""
    page = visit(f"queue?queue={worker.queue_name}")
    expect(page.locator("#age")).to_have_text(", 1 s ago")
    expect(page.get_by_role("status")).to_have_text("live")


def test_a_phone_has_a_bar_of_four(worker: Any, visit: Visit) -> None:
    """Always in sight; the fourth opens the other pages. A queue is a line."""
    worker.push_many([{"id": n} for n in range(3)])
    page = visit(viewport=PHONE)
    bar = page.get_by_role("navigation", name="Main")
    expect(bar).to_be_in_viewport(ratio=1)
    expect(bar.get_by_role("link")).to_have_count(3)

    row = page.get_by_role("row").filter(has_text=worker.queue_name).bounding_box()
    assert row is not None
    assert row["height"] < 60
    bar.get_by_text("More").click()
    bar.get_by_role("link", name="Activity").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Activity")


def test_without_scripts_there_is_nothing_to_switch(worker: Any, visit: Visit) -> None:
    """Everything else works: the pages that the bar has behind its fourth part open by a click."""
    page = visit(f"queue?queue={worker.queue_name}", java_script_enabled=False, viewport=PHONE)

    expect(page.get_by_text("Theme")).to_be_hidden()
    page.get_by_text("More", exact=True).click()
    page.get_by_role("link", name="Schedules").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Schedules")
