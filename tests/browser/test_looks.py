"""Every page, by day, by night and on a phone: readable for everybody, and nothing sticks out."""

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from lowkiq_lambda import Lowkiq
from tests.browser.accessibility import overhang, violations
from tests.browser.conftest import OpenWindow, Visit
from tests.browser.pictures import picture
from tests.store.support import Handler, declare

DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}
LONG_ID = "order/2024-11-03/" + "0123456789abcdef" * 12
PAGES = {
    "overview": "",
    "waiting": "waiting?queue={queue}",
    "retries": "waiting?queue={retried}&by=retry_count&range=gte&value=0",
    "processing": "processing?queue={queue}",
    "morgue": "morgue?queue={queue}",
    "shards": "shards?queue={queue}",
    "job-waiting": "job?queue={queue}&id=waits-1",
    "job-dead": "job?queue={queue}&id=dead-1",
    "job-retried": "job?queue={retried}&id=dead-1",
    "empty-waiting": "waiting?queue={idle}",
    "empty-processing": "processing?queue={idle}",
    "empty-morgue": "morgue?queue={idle}",
    "nothing-here": "no-such-page",
}


@pytest.fixture
def queues(app: Lowkiq) -> Iterator[dict[str, str]]:
    """Names of a queue with jobs that wait, run and are dead, of one with failed ones, and of one without any."""
    suffix = uuid4().hex[:8]
    names = {"queue": f"SyncOrder-{suffix}", "idle": f"MailDigest-{suffix}", "retried": f"CountClicks-{suffix}"}
    handler, looked, began = Handler(), threading.Event(), threading.Event()
    busy = declare(app, names["queue"], handler, shards_count=1, max_retry_count=0)
    declare(app, names["idle"], handler, shards_count=2)
    retried = declare(app, names["retried"], handler, shards_count=2)

    handler.failing, handler.words = {f"dead-{number}" for number in range(4)} | {LONG_ID}, "met a closed warehouse"
    for worker in (busy, retried):
        worker.perform_async([{"id": name, "payload": {"to": name}} for name in sorted(handler.failing)])
    app.drain()

    def perform() -> None:
        began.set()
        looked.wait()

    handler.meanwhile, handler.failing = perform, set()
    busy.perform_async([{"id": f"runs-{number}", "payload": [number]} for number in range(3)])
    drain = threading.Thread(target=app.drain)
    drain.start()
    began.wait()
    busy.perform_async([{"id": f"waits-{number}", "payload": {"n": number}, "score": number} for number in range(6)])
    busy.perform_async([{"id": f"{LONG_ID}{number}", "payload": {"text": LONG_ID * 9}} for number in range(3)])
    yield names
    looked.set()
    drain.join()


def look_around(page: Page, name: str) -> list[str]:
    """What is wrong with the page in either scheme and on a phone."""
    page.set_viewport_size(DESK)
    page.emulate_media(color_scheme="light")
    picture(page, f"{name}-light")
    found = violations(page)
    page.emulate_media(color_scheme="dark")
    picture(page, f"{name}-dark")
    found += [f"dark: {violation}" for violation in violations(page, of_colour_only=True)]
    page.set_viewport_size(PHONE)
    picture(page, f"{name}-phone")
    found += [f"phone: {violation}" for violation in violations(page)]
    return [*found, *([f"{overhang(page)} pixels too wide for a phone"] if overhang(page) else [])]


def test_every_page_suits_everybody(queues: dict[str, str], site: str, visit: Visit, complaints: list[str]) -> None:
    """No page violates WCAG A or AA, in light or dark; none is wider than a phone; none breaks its own policy."""
    page, found = visit(viewport=DESK, reduced_motion="reduce"), {}
    for name, address in PAGES.items():
        page.goto(site + address.format(**queues))
        expect(page.locator("main")).to_be_visible()
        found[name] = look_around(page, name)

    assert [] == [f"{name}: {trouble}" for name, troubles in found.items() for trouble in troubles]
    assert all("404" in complaint for complaint in complaints)
    complaints.clear()


def test_the_door_suits_everybody(site: str, open_window: OpenWindow) -> None:
    """As every page, the one that asks for the password."""
    page = open_window(viewport=DESK)
    page.goto(site)

    assert [] == look_around(page, "sign-in")
    assert page.get_by_label("Password").is_visible()
