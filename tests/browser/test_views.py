"""A view that an operator saves, opens and deletes on a phone, without scripts."""

from typing import Any

from playwright.sync_api import expect

from lowkiq_lambda import Lowkiq
from tests.browser.accessibility import overhang
from tests.browser.conftest import Visit
from tests.browser.killing import kill
from tests.browser.looks import PHONE, look_around
from tests.kit.handlers import FailingHandler


def test_a_view_is_saved_opened_and_deleted_on_a_phone(
    app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit, complaints: list[str]
) -> None:
    """The morgue with its filter gets a name; the search page has the link, and the button that deletes it."""
    kill(app, worker, handler, [{"id": "order-1"}, {"id": "mail-1"}])
    morgue, name = f"morgue?queue={worker.queue_name}&find=order-", f"Stuck {worker.queue_name}"
    page = visit(morgue, java_script_enabled=False, viewport=PHONE)
    page.get_by_text("Save this view").click()
    page.get_by_label("Name of the view").fill(name)
    assert 0 == overhang(page)
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("heading", name="Saved views")).to_be_visible()
    assert 0 == overhang(page)
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("textbox", name="Id begins with")).to_have_value("order-")
    expect(page.locator("tbody tr")).to_have_count(1)

    # The checks of both pages are scripts.
    other = visit(morgue, viewport=PHONE)
    other.get_by_text("Save this view").click()
    assert [] == look_around(other, "view-form")
    other.goto(other.url.partition("morgue")[0] + "search")
    assert [] == look_around(other, "views")

    page.goto(other.url)
    page.get_by_role("button", name=f"Delete the view {name}").click()
    expect(page.get_by_role("link", name=name)).to_have_count(0)
    assert [] == complaints
