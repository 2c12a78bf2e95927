"""A page that is left open: it follows what happens, rests when nobody looks, and says when it cannot."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from lowkiq_lambda import Config, Lowkiq
from tests.browser.conftest import Visit
from tests.browser.looks import look_around
from tests.kit.examples import mostly_nightly
from tests.kit.servers import MakeServer, Server

LONG = 60_000
"""Milliseconds in which a page that refreshes itself would have done so many times."""
SOON = 10_000
"""Milliseconds in which it does so at least once, also when Redis is away."""

HIDE = """hidden => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def durable(make_server: MakeServer) -> Server:
    """A server that may be stopped, and comes back with what it had."""
    return make_server(appendonly=True)


@pytest.fixture
def app(durable: Server) -> Iterator[Lowkiq]:
    """An app on a server of its own."""
    app = Lowkiq(Config(redis_url=durable.url, redis_timeout=0.2))
    yield app
    app.core.backend.client.close()
    app.core.drains.drainer._backend.client.close()


def watch(visit: Visit) -> Page:
    """The overview, in a window whose time the test can move on."""
    page = visit()
    page.clock.install()
    page.reload()
    return page


def pass_time(page: Page, milliseconds: int = SOON) -> None:
    """Let the page's own clock run."""
    page.clock.run_for(milliseconds)


def total(page: Page, name: str) -> Any:
    """One of the numbers above all queues."""
    return page.locator(".totals > div").filter(has=page.get_by_text(name, exact=True)).locator("data")


def test_numbers_follow_a_replay_by_themselves(app: Lowkiq, worker: Any, visit: Visit) -> None:
    """What is pushed and drained while the page is open changes its numbers; nobody has to load it again."""
    page = watch(visit)
    row = page.get_by_role("row", name=worker.queue_name)
    expect(total(page, "Waiting")).to_have_text("0")

    worker.push_many([{"id": number} for number in range(300)])
    pass_time(page)
    expect(total(page, "Waiting")).to_have_text("300")
    expect(row.locator('[data-name="Waiting"]')).to_have_text("300")

    app.drain()
    pass_time(page)
    expect(total(page, "Waiting")).to_have_text("0")
    expect(row.locator('[data-name="Done"]')).to_have_text("300")


def test_a_hidden_page_asks_for_nothing(worker: Any, visit: Visit) -> None:
    """While nobody can see it no request leaves; when it is seen again it is fresh at once."""
    page = watch(visit)
    expect(page.get_by_role("status")).to_have_text("live")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.evaluate(HIDE, True)  # noqa: FBT003 - the script's argument
    expect(page.get_by_role("status")).to_have_text("paused")
    worker.push_many([{"id": 1}])
    pass_time(page, LONG)
    assert [] == asked

    page.evaluate(HIDE, False)  # noqa: FBT003 - the script's argument
    expect(total(page, "Waiting")).to_have_text("1")
    expect(page.get_by_role("status")).to_have_text("live")


def test_a_page_whose_answer_is_late_says_how_old_its_numbers_are(worker: Any, visit: Visit) -> None:
    """P9: it is not "live" until somebody gives up waiting, and is so again with the answer."""
    page, held = watch(visit), list[Route]()
    worker.push_many([{"id": 1}])
    pass_time(page)
    expect(total(page, "Waiting")).to_have_text("1")

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/*", hold)

    pass_time(page, 4_000)

    expect(page.get_by_role("status")).to_have_text(re.compile(r"^as of \d\d:\d\d:\d\d$"))
    expect(page.locator("#live")).to_have_attribute("data-state", "late")
    for route in held:
        route.continue_()
    page.unroute("**/*")
    expect(page.get_by_role("status")).to_have_text("live")


def test_a_page_says_when_redis_is_away(durable: Server, worker: Any, visit: Visit, complaints: list[str]) -> None:
    """It keeps what it showed last, says that this is stale and why, and goes on by itself when Redis is back."""
    page = watch(visit)
    worker.push_many([{"id": 1}])
    pass_time(page)
    expect(total(page, "Waiting")).to_have_text("1")

    durable.stop()
    pass_time(page)
    expect(page.get_by_role("status")).to_have_text(re.compile(r"^Redis is unreachable, as of \d\d:\d\d:\d\d$"))
    expect(page.locator("#notice")).to_contain_text("Nothing answers at ")
    expect(total(page, "Waiting")).to_have_text("1")
    found = look_around(page, "redis-away")
    fresh = visit("shards?queue=" + worker.queue_name)
    expect(fresh.get_by_role("heading", name="Unavailable")).to_be_visible()
    assert [] == found + look_around(fresh, "redis-away-fresh")

    durable.start()
    worker.push_many([{"id": 2}])
    pass_time(page)
    expect(page.get_by_role("status")).to_have_text("live")
    expect(page.locator("#notice")).to_be_empty()
    expect(total(page, "Waiting")).to_have_text("2")
    assert all("503" in complaint for complaint in complaints), complaints
    complaints.clear()


def test_an_answer_that_is_not_ours_is_not_put_into_the_page(worker: Any, visit: Visit, complaints: list[str]) -> None:
    """A gateway's error, or none at all, leaves the page as it is; it says so, and not that Redis is away."""
    page = watch(visit)
    worker.push_many([{"id": 1}])
    pass_time(page)
    expect(total(page, "Waiting")).to_have_text("1")
    worker.push_many([{"id": 2}])

    answers: dict[str, Callable[[Route], None]] = {
        "no answer (502)": lambda route: route.fulfill(status=502, json={"message": "Internal server error"}),
        "no answer (503)": lambda route: route.fulfill(status=503, body="<h1>Service Unavailable</h1>"),
        "no answer (504)": lambda route: route.fulfill(status=504, body="<h1>Gateway Time-out</h1>"),
        "no connection": lambda route: route.abort(),
    }
    for state, answer in answers.items():
        page.route("**/*", answer)
        pass_time(page)
        expect(page.get_by_role("status")).to_have_text(re.compile(f"^{re.escape(state)}, as of "))
        expect(total(page, "Waiting")).to_have_text("1")
        expect(page.locator("#notice")).to_be_empty()
        assert [] == look_around(page, state.replace(" ", "-"))
        page.unroute("**/*")

    pass_time(page)
    expect(page.get_by_role("status")).to_have_text("live")
    expect(total(page, "Waiting")).to_have_text("2")
    complaints.clear()


def test_the_focus_stays_while_numbers_change(worker: Any, visit: Visit) -> None:
    """Who has come to a link by keyboard is still there after a refresh."""
    page = watch(visit)
    link = page.get_by_role("link", name=worker.queue_name, exact=True)
    link.focus()

    worker.push_many([{"id": 1}])
    pass_time(page)

    expect(total(page, "Waiting")).to_have_text("1")
    expect(link).to_be_focused()


@pytest.mark.parametrize("locale", mostly_nightly(["en-GB", "de-DE", "fa-IR"], "fa-IR"))
def test_numbers_and_times_have_one_form(worker: Any, visit: Visit, locale: str) -> None:
    """Whatever the browser's language: English numbers, times as they are typed, and their zone named."""
    at = 1_800_000_000  # 2027-01-15 08:00 UTC, 09:00 in Vienna
    worker.push_many([{"id": number, "due_at": at} for number in range(1_200)])
    page = visit(f"waiting?queue={worker.queue_name}", locale=locale)

    expect(page.get_by_role("heading", name="Waiting")).to_contain_text("1,200")
    expect(page.locator("tbody time").first).to_have_attribute("title", "2027-01-15 09:00:00")
    expect(page.locator("footer")).to_have_text("All times are in Europe/Vienna.")


def test_the_chart_speaks_of_seconds_alone(app: Lowkiq, worker: Any, visit: Visit) -> None:
    """What stands beside the pointer is a rate, as what stands at the upper edge is."""
    worker.push_many([{"id": number} for number in range(300)])
    app.drain()
    app.core.drains.drainer.history.flush()
    page = visit()
    chart = page.locator("[data-chart]")
    most = page.locator(".most").inner_text().removesuffix("/s")
    step = int(chart.get_attribute("data-step") or "")
    counts = [int(count) for count in (chart.get_attribute("data-ended") or "").split()]
    box = chart.locator("svg").bounding_box()
    assert box is not None
    place = counts.index(max(counts))
    page.mouse.move(box["x"] + box["width"] * place / (len(counts) - 1), box["y"] + 10)

    expect(page.locator(".tip")).to_contain_text(f"ended {max(counts) / step:.3g}/s")
    assert max(counts) / step <= float(most)
    assert step > 1
