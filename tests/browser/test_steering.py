"""Every page without a mouse, and every action without a script."""

from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from lowkiq_lambda import Lowkiq
from tests.browser.conftest import Visit
from tests.browser.killing import kill
from tests.browser.looks import DESK, NARROW
from tests.kit.handlers import FailingHandler
from tests.kit.steering import ask, confirm, expect_done

NIGHTLY = pytest.mark.nightly("another of the list is part of each check")
PAGES = ("", "waiting?queue={queue}", "processing?queue={queue}", "morgue?queue={queue}", "shards?queue={queue}")
FOCUSABLE = """() => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")].filter(
    element => !element.disabled && element.type !== "hidden" && element.checkVisibility({ visibilityProperty: true })
).length"""
FOCUSED = """() => {
    const element = document.activeElement;
    if (element === document.body) return null;
    const box = element.getClientRects()[0];
    const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
    const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
    const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return {
        place: [...document.querySelectorAll("*")].indexOf(element),
        html: element.outerHTML.slice(0, 200),
        marked: getComputedStyle(element).outlineStyle !== "none",
        seen: right > left && bottom > top && element.contains(there),
    };
}"""


def tab_through(page: Page) -> list[dict[str, Any]]:
    """Where Tab leads to, one after the other, from the top of the page to its end."""
    places = list[dict[str, Any]]()
    for _ in range(page.evaluate(FOCUSABLE) + 1):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None or focused in places:
            break
        places.append(focused)
    return places


@pytest.mark.parametrize("size", [pytest.param(DESK, marks=NIGHTLY), NARROW], ids=["desk", "narrow"])
def test_tab_leads_through_every_page_in_order(
    app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit, size: ViewportSize
) -> None:
    """From the skip link to the last link: everything once, as it is read, marked, and hidden by nothing."""
    kill(app, worker, handler, [{"id": f"dead-{number}"} for number in range(20)])
    worker.push_many([{"id": f"later-{number}", "delay": 60} for number in range(20)])
    page = visit(viewport=size)
    # A refresh that changes nothing. One that is refused is a complaint, and a slow machine is here for long enough.
    page.route(
        "**/*", lambda route: route.fulfill(status=204) if "hx-request" in route.request.headers else route.continue_()
    )
    site = page.url
    for address in PAGES:
        page.goto(site + address.format(queue=worker.queue_name))
        places = tab_through(page)

        assert "skip" in places[0]["html"]
        assert page.evaluate(FOCUSABLE) == len(places)
        assert sorted(place["place"] for place in places) == [place["place"] for place in places]
        assert [] == [place["html"] for place in places if not (place["marked"] and place["seen"])]


def test_everything_can_be_done_without_scripts(
    app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit
) -> None:
    """Search, select, put back, delete all, pause for an hour, resume: forms and links are enough."""
    kill(app, worker, handler, [{"id": name} for name in ("one", "two", "three")])
    page = visit(f"morgue?queue={worker.queue_name}", java_script_enabled=False)
    page.get_by_label("Id begins with").fill("t")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Select two").check()
    page.get_by_role("group", name="Actions on the selected jobs").get_by_role("button", name="Requeue").click()
    confirm(page, "Requeue")
    expect_done(page, "1 id was")
    page.get_by_role("link", name="Back to the list").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Clear").click()
    page.get_by_role("button", name="Delete all").click()
    confirm(page, "Delete")
    expect_done(page, "2 ids were")

    page.goto(page.url.rpartition("/actions")[0] + f"/shards?queue={worker.queue_name}")
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("For how long").select_option("for an hour")
    confirm(page, "Pause")
    expect(page.get_by_text("no drain claims any")).to_be_visible()
    assert all(shard.is_paused for shard in app.operate(worker).shards())
    page.get_by_role("button", name="Resume").click()
    confirm(page, "Resume")
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)

    queue = app.operate.metrics()[worker.queue_name]
    assert (1, 0) == (queue.length, queue.morgue_length)
    assert not any(shard.is_paused for shard in app.operate(worker).shards())


def test_many_are_requeued_without_scripts(
    app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no script goes on with an action, its button does: after each step it asks about what is left."""
    monkeypatch.setattr("lowkiq_lambda.dashboard.pages.actions.IDS_IN_A_STEP", 1)
    kill(app, worker, handler, [{"id": f"dead-{number}"} for number in range(30)])
    page = visit(f"morgue?queue={worker.queue_name}", java_script_enabled=False)
    ask(page, "Requeue all")
    told = list[str]()
    while page.get_by_role("heading", name="?").is_visible():
        told.append(page.locator(".count").inner_text())
        with page.expect_navigation():
            confirm(page, "Requeue")
    expect_done(page, "30 ids were")

    assert 1 < len(told) == len(set(told))
    assert (30, 0) == (
        app.operate.metrics()[worker.queue_name].length,
        app.operate.metrics()[worker.queue_name].morgue_length,
    )


def test_a_time_is_typed_as_it_is_shown(worker: Any, visit: Visit) -> None:
    """In the viewer's zone: what is due in the hour before is not found, and the field still says what was typed."""
    at = 1_800_000_000  # 2027-01-15 08:00 UTC, 09:00 in Vienna
    worker.push_many([{"id": "before", "due_at": at - 1_800}, {"id": "behind", "due_at": at + 1_800}])
    page = visit(f"waiting?queue={worker.queue_name}")
    expect(page.get_by_label("Value")).to_be_hidden()
    page.get_by_label("Order by").select_option("due time")
    page.get_by_label("Range", exact=True).select_option("from a value on, ascending")
    page.get_by_label("Value").fill("2027-01-15 09:00")
    page.get_by_role("button", name="Show").click()

    expect(page.get_by_role("link", name="behind", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="before", exact=True)).to_have_count(0)
    expect(page.get_by_label("Value")).to_have_value("2027-01-15 09:00")


@pytest.mark.parametrize(
    ("typed", "upwards", "downwards"),
    [
        pytest.param("2027-01-15 09:00:58", {"second", "behind"}, {"before", "midnight", "second"}, marks=NIGHTLY),
        pytest.param("2027-01-15  09:00:58", {"second", "behind"}, {"before", "midnight", "second"}, marks=NIGHTLY),
        pytest.param("2027-01-15 09:00", {"second", "behind"}, {"before", "midnight", "second"}, marks=NIGHTLY),
        ("2027-01-15", {"midnight", "second", "behind"}, {"before", "midnight", "second"}),
    ],
)
def test_a_time_is_all_of_what_was_typed(
    worker: Any, visit: Visit, typed: str, upwards: set[str], downwards: set[str]
) -> None:
    """A second, a minute or a day of the viewer, from its beginning and up to its end; as a list has it, too."""
    at = 1_800_000_000  # 2027-01-15 08:00 UTC, 09:00 in Vienna
    times = {"before": -9 * 3_600 - 0.5, "midnight": -9 * 3_600, "second": 58.4, "behind": 86_400}
    worker.push_many([{"id": name, "due_at": at + ahead} for name, ahead in times.items()])
    for way, found in (("from a value on, ascending", upwards), ("up to a value, descending", downwards)):
        page = visit(f"waiting?queue={worker.queue_name}&by=due_at")
        page.get_by_label("Range", exact=True).select_option(way)
        page.get_by_label("Value").fill(typed)
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("heading", name="Waiting")).to_contain_text(f"{len(found)} on this page")
        assert found == set(page.locator("tbody th").all_inner_texts())


def test_a_time_out_of_a_list_is_found_by_it(worker: Any, visit: Visit) -> None:
    """What a list has as the title of a time may be pasted into the field, in a browser of whatever language."""
    at = 1_800_000_000
    worker.push_many([{"id": "before", "due_at": at - 1}, {"id": "behind", "due_at": at + 1}])
    page = visit(f"waiting?queue={worker.queue_name}&by=due_at", locale="ar-EG")
    shown = page.locator("tbody tr").nth(1).locator("time").get_attribute("title") or ""
    page.get_by_label("Range", exact=True).select_option("from a value on, ascending")
    page.get_by_label("Value").fill(shown)
    page.get_by_role("button", name="Show").click()

    expect(page.get_by_role("link", name="behind", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="before", exact=True)).to_have_count(0)
