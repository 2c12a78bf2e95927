"""Limits of a queue in a browser: what they look like, and how an operator changes and resets them."""

from typing import Any

import pytest
from playwright.sync_api import expect

from lowkiq_lambda import Lowkiq, Rate
from tests.browser.conftest import Visit
from tests.browser.looks import look_around
from tests.kit.examples import mostly_nightly
from tests.kit.handlers import Notes
from tests.kit.permits import come
from tests.kit.workers import declare

LOOKED_AT = [
    ("limits", "limits?queue={queue}"),
    ("limits-waiting", "limits?queue={queue}-reports"),
    ("limits-why", "job?queue={queue}&id=1"),
    ("limits-set", "actions/limits?queue={queue}&do=set&permits=two&ids=5&per=1+min"),
    ("limits-reset", "actions/limits?queue={queue}&do=reset"),
]


@pytest.fixture
def limited(app: Lowkiq, queue_name: str) -> Any:
    """A worker with two permits, both taken, a wait list, ids that are used up; and one that waits for it."""
    worker = declare(app, queue_name, Notes(), shards_count=5, max_running=2, rate=Rate(1_000, per=90), weight=2.5)
    waiting = declare(app, f"{queue_name}-reports", Notes(), waits_for=(queue_name,))
    for each in (worker, waiting):
        each.push_many([{"id": number} for number in range(9)])
    come(app, worker, 3, 1, 0, 4, want=500)
    return worker


@pytest.mark.parametrize(("name", "path"), mostly_nightly(LOOKED_AT, LOOKED_AT[0]))
def test_pages_of_limits_suit_everybody(limited: Any, visit: Visit, name: str, path: str) -> None:
    """X-35: no page violates WCAG A or AA, in light or dark, and none is wider than a phone."""
    page = visit(path.format(queue=limited.queue_name))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert [] == look_around(page, name)


def test_an_operator_changes_limits_and_resets_them(app: Lowkiq, limited: Any, visit: Visit) -> None:
    """X-30: from the page of the queue, with a form that says what counts now."""
    page = visit(f"limits?queue={limited.queue_name}")
    expect(page.get_by_text("2 of 2")).to_be_visible()
    page.get_by_role("button", name="Change…").click()
    page.get_by_label("Shards at once").fill("7")
    page.get_by_label("in any time of").fill("2 min")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_text("2 of 7")).to_be_visible()
    expect(page.get_by_text("1,000 ids in 2m")).to_be_visible()
    assert Rate(1_000, per=120) == app.operate(limited).limits.explain().rate
    page.get_by_role("button", name="Reset…").click()
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_text("2 of 2")).to_be_visible()
    assert not app.operate(limited).limits.explain().is_set
