"""Schedule entries in a browser: what they look like, and how one is switched off and run."""

from typing import Any

import pytest
from playwright.sync_api import expect

from lowkiq_lambda import Lowkiq
from tests.browser.conftest import Visit
from tests.browser.looks import look_around
from tests.browser.pictures import picture
from tests.kit.examples import mostly_nightly
from tests.kit.steering import confirm
from tests.kit.waiting import eventually

LONG = "prices-of-all-shops-of-the-north-and-of-the-south"


OUT_OF_SIGHT = """() => {
    const [table] = document.querySelectorAll(".scroll");
    return table.scrollWidth - table.clientWidth;
}"""
"""How many pixels of the table are seen only by who scrolls it sideways."""
LOOKED_AT = [
    ("schedules", "schedules"),
    ("schedule", "schedule?queue={queue}&name=poll"),
    ("schedule-long", f"schedule?queue={{queue}}&name={LONG}"),
    ("schedule-elsewhere", "schedule?queue={queue}&name=gone"),
    ("schedule-ask", "actions/schedule?queue={queue}&name=poll&do=disable"),
    ("schedule-new", "actions/entry?queue={queue}"),
]


@pytest.fixture
def scheduled(app: Lowkiq, worker: Any) -> Any:
    """A worker with an entry that has fired, one with a long name, one that is off, and one of other code."""
    other = Lowkiq(app.config)
    same = other.worker(type("Noting", (worker,), {"queue_name": worker.queue_name}))
    other.cron("0 3 * * *", same, id="gone")
    other.schedules.tick()
    other.core.backend.client.close()
    app.every(1.0, worker, id="poll", missed="all", description="Asks each shop for its prices")
    app.cron("30 2,14 * * MON-FRI", worker, id=LONG, tz="America/Argentina/Buenos_Aires", jitter=60)
    app.schedules.put("made", worker, cron="0 4 1 * *", id="7")
    app.schedules.disable(worker, "made")
    app.schedules.tick()
    eventually(lambda: app.schedules.tick().fired)
    return worker


@pytest.mark.parametrize(("name", "path"), mostly_nightly(LOOKED_AT, LOOKED_AT[0]))
def test_pages_of_entries_suit_everybody(scheduled: Any, visit: Visit, name: str, path: str) -> None:
    """X-9: no page violates WCAG A or AA, in light or dark, and none is wider than a phone."""
    page = visit(path.format(queue=scheduled.queue_name))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert [] == look_around(page, name)


def test_the_list_has_room_for_all_columns(scheduled: Any, visit: Visit) -> None:
    """X-9: on no usual screen is one of them out of sight, as `look_around` says of a phone."""
    page = visit("schedules")
    hidden = []
    for width in (1280, 1024, 768, 390):
        page.set_viewport_size({"width": width, "height": 800})
        picture(page, f"schedules-{width}")
        hidden.append(page.evaluate(OUT_OF_SIGHT))
    assert [0] * 4 == hidden
    assert page.get_by_role("link", name=scheduled.queue_name, exact=True).is_visible()


def test_an_entry_is_switched_off_and_run(app: Lowkiq, scheduled: Any, visit: Visit) -> None:
    """X-9: from the overview to the entry; each action is asked about first."""
    page = visit()
    page.get_by_role("link", name="Schedules", exact=True).click()
    page.get_by_role("link", name="poll").click()
    page.get_by_role("button", name="Switch off…").click()
    expect(page.get_by_text("does not fire until it is switched on again")).to_be_visible()
    confirm(page, "Switch off")
    expect(page.get_by_text("None, as it is off.")).to_be_visible()
    page.get_by_role("button", name="Run now…").click()
    confirm(page, "Run now")
    expect(page.get_by_role("cell", name="run now")).to_be_visible()
    assert {"made": False, "poll": False} == {
        view.name: view.is_on for view in app.schedules.all(scheduled) if view.name in {"made", "poll"}
    }
