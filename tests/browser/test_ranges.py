"""A range of the chart, as a person types it: in the viewer's zone, or in UTC without scripts."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.looks import look_around


def show(page: Page, zone: str, since: str) -> None:
    """Fill in the form."""
    page.get_by_text("Range…").click()
    page.get_by_label(f"From ({zone})").fill(since)
    page.get_by_role("form", name="Range of the chart").get_by_role("button").click()


def test_a_range_is_typed_in_the_viewers_zone(worker: Any, visit: Visit) -> None:
    """The address has it in UTC, for others; after a refresh the field has it as it was typed."""
    page = visit(f"queue?queue={worker.queue_name}")
    began = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=3)
    typed = f"{began.astimezone(ZoneInfo('Europe/Vienna')):%Y-%m-%dT%H:%M}"

    show(page, "Europe/Vienna", typed)

    expect(page).to_have_url(re.compile(rf"&since={began:%Y-%m-%dT%H}%3A{began:%M}&until=$"))
    with page.expect_response(re.compile("since=")):
        pass
    expect(page.get_by_label("From (Europe/Vienna)")).to_have_value(typed)
    assert [] == look_around(page, "queue-range")


def test_a_range_needs_no_script(worker: Any, visit: Visit, complaints: list[str]) -> None:
    """Then it is in UTC, as its label says; a range that cannot be is refused with its reason."""
    page = visit(f"queue?queue={worker.queue_name}", java_script_enabled=False)
    began = f"{datetime.now(UTC) - timedelta(hours=2):%Y-%m-%dT%H:%M}"

    show(page, "UTC", began)
    expect(page.get_by_label("From (UTC)")).to_have_value(began)
    expect(page.get_by_role("heading", name=began.replace("T", " "))).to_be_visible()
    page.goto(page.url.split("&")[0])
    show(page, "UTC", "2999-01-01T00:00")
    expect(page.get_by_text("the range is in the future")).to_be_visible()
    assert ["400"] == [word for complaint in complaints for word in re.findall(r"\b400\b", complaint)]
    complaints.clear()


@pytest.mark.usefixtures("worker")
def test_an_overview_of_a_range_suits_everybody(visit: Visit) -> None:
    """No page violates WCAG A or AA, in light or dark, and none is wider than a phone."""
    page = visit("?since=20m+ago&until=10m+ago&sort=lag&way=desc")

    expect(page.get_by_role("form", name="Range of the chart")).to_be_visible()
    assert [] == look_around(page, "overview-range")
