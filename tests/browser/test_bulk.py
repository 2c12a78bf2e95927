"""What is done to many jobs at once: told before, watched, interrupted, gone on with."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from lowkiq_lambda import Config, Lowkiq, MorgueLimits
from tests.browser.conftest import Visit
from tests.browser.looks import look_around
from tests.kit.handlers import FailingHandler
from tests.kit.steering import ask, confirm, expect_done
from tests.kit.workers import declare

MANY = 12_000
GATEWAY: dict[str, Any] = {
    "status": 502,
    "content_type": "application/json",
    "body": '{"message":"Internal server error"}',
}


@pytest.fixture
def app(server_url: str) -> Iterator[Lowkiq]:
    """An app whose morgues are large."""
    app = Lowkiq(Config(redis_url=server_url, redis_timeout=5.0, morgue=MorgueLimits(entries=2 * MANY)))
    yield app
    app.core.backend.client.close()
    app.core.drains.drainer._backend.client.close()


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """A worker that has killed twelve thousand ids."""
    worker = declare(app, queue_name, handler, shards_count=3, max_retry_count=0, batch_size=1000)
    handler.failing = {str(number) for number in range(MANY)}
    worker.push_many([{"id": name} for name in handler.failing])
    app.drain()
    handler.failing = set()
    return worker


def told(page: Page) -> tuple[int, int]:
    """How many ids the page says were looked at, and how many it says were changed; its bar agrees."""
    looked_at, _of, changed = re.findall(r"\d[\d,]*", page.get_by_role("status").inner_text())
    handled = int(looked_at.replace(",", ""))
    expect(page.get_by_role("progressbar")).to_have_attribute("value", str(handled))
    return handled, int(changed.replace(",", ""))


@pytest.mark.nightly("another action of many steps is part of each check")
def test_putting_many_back_shows_how_far_it_is_and_can_be_interrupted(app: Lowkiq, worker: Any, visit: Visit) -> None:
    """What is shown is what was done; it stays done when it is interrupted; going on changes each of the rest once."""

    def in_redis() -> tuple[int, int]:
        """How many wait, and how many are in the morgue."""
        queue = app.operate.metrics()[worker.queue_name]
        return queue.length, queue.morgue_length

    page = visit(f"morgue?queue={worker.queue_name}")
    page.get_by_role("button", name="Requeue all").click()
    expect(page.get_by_text("12,000 ids of the queue")).to_be_visible()
    assert (0, MANY) == in_redis()
    steps: list[Route] = []

    def hold(route: Route) -> None:
        """The steps that the page goes on with by itself, after the one that was confirmed."""
        steps.append(route)
        if len(steps) == 1:
            route.continue_()

    page.route("**/actions/step", hold)
    confirm(page, "Requeue")
    interrupt = page.get_by_role("button", name="Pause")
    expect(interrupt).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_attribute("max", str(MANY))
    first, changed = told(page)
    assert 0 < first == changed < MANY
    assert (first, MANY - first) == in_redis()
    found = look_around(page, "running")

    interrupt.click()
    _, step = steps
    step.continue_()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    second, changed = told(page)
    assert first < second == changed < MANY
    assert (second, MANY - second) == in_redis()
    found += look_around(page, "interrupted")
    assert (second, MANY - second) == in_redis()

    page.unroute("**/actions/step")
    page.get_by_role("button", name="Continue").click()
    expect_done(page, "12,000 ids were")
    assert (MANY, 0) == in_redis()
    assert [] == [*found, *look_around(page, "all-done")]


def test_a_step_without_an_answer_stops_the_action(
    app: Lowkiq, worker: Any, visit: Visit, complaints: list[str]
) -> None:
    """What a gateway says in our place is not put into the page, which says why it stands, and goes on from there."""
    ways: Iterator[Callable[[Route], None]] = iter(
        [lambda route: route.continue_(), lambda route: route.fulfill(**GATEWAY), lambda route: route.abort()]
    )

    def fail(route: Route) -> None:
        """After the step that was confirmed: a gateway's answer, then none at all."""
        next(ways)(route)

    page = visit(f"morgue?queue={worker.queue_name}")
    ask(page, "Requeue all")
    page.route("**/actions/step", fail)
    confirm(page, "Requeue")
    notice, go_on = page.locator("#notice"), page.get_by_role("button", name="Continue")
    expect(notice).to_contain_text("The server responded with an error (502)")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    stopped_at = told(page)
    found = look_around(page, "stopped")
    go_on.click()
    expect(notice).to_contain_text("The server is unreachable")
    assert stopped_at == told(page)

    page.unroute("**/actions/step")
    go_on.click()
    expect_done(page, "12,000 ids were")
    expect(notice).to_be_empty()
    assert [] == found
    assert (MANY, 0) == (
        app.operate.metrics()[worker.queue_name].length,
        app.operate.metrics()[worker.queue_name].morgue_length,
    )
    assert any("502" in complaint for complaint in complaints)
    complaints.clear()


def test_only_what_a_search_finds_is_deleted(app: Lowkiq, worker: Any, visit: Visit) -> None:
    """The result of a search, all of it and nothing else, is what an action on it changes."""
    page = visit(f"morgue?queue={worker.queue_name}&find=119")
    expect(page.get_by_role("heading", name="Found")).to_contain_text(re.compile(r"\d+ on this page"))

    page.get_by_role("button", name="Delete all that fit").click()
    confirm(page, "Delete")
    expect_done(page, "111 ids were")  # 119, 1190 to 1199, 11900 to 11999

    assert MANY - 111 == app.operate.metrics()[worker.queue_name].morgue_length
