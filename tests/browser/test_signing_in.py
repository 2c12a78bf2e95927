"""Who gets in, by which door, and what he may do there."""

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import OPERATOR, READER
from tests.browser.windows import OpenWindow


def test_nobody_sees_a_page_before_he_has_signed_in(
    worker: Any, site: str, open_window: OpenWindow, complaints: list[str]
) -> None:
    """A wrong password is told; the right one leads to the page that was asked for; signing out ends it."""
    page = open_window()
    page.goto(f"{site}?span=1h")
    expect(page).to_have_title("Sign in · lowkiq")

    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("That is not the password.")).to_be_visible()
    assert ["401" in complaint for complaint in complaints] == [True]
    complaints.clear()

    page.get_by_label("Password").fill(OPERATOR)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name=worker.queue_name)).to_be_visible()

    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · lowkiq")
    page.goto(site)
    expect(page).to_have_title("Sign in · lowkiq")
    assert [] == page.context.cookies()


def test_signing_in_needs_no_pointer(worker: Any, site: str, open_window: OpenWindow) -> None:
    """The password's field has the focus, Enter sends it, and the first Tab after that skips to the content."""
    page = open_window()
    page.goto(site)
    expect(page.get_by_label("Password")).to_be_focused()

    page.keyboard.type(OPERATOR)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=worker.queue_name)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_the_cookie_is_out_of_reach_of_scripts(site: str, open_window: OpenWindow) -> None:
    """No script of the page, however it came there, can read who is signed in."""
    page = open_window()
    page.goto(site)
    page.get_by_label("Password").fill(READER)
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_text("read only")).to_be_visible()

    (cookie,) = page.context.cookies()

    assert (True, "Lax") == (cookie["httpOnly"], cookie["sameSite"])
    assert page.evaluate("document.cookie") == ""
