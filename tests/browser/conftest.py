"""A browser that the tests share, windows of it, and a dashboard to look at."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard import Account, Auth, dashboard
from lowkiq_lambda.dashboard.security.sessions import COOKIE
from tests.browser.serving import Served
from tests.e2e.browser import find_browser
from tests.store.support import Handler, declare

OPERATOR, READER = "open sesame", "only look"
AUTH = Auth([Account("olga", OPERATOR, "operator"), Account("rita", READER, "reader")])
PATIENCE = 15_000.0
"""Milliseconds that a page may take on a machine that has other things to do."""

OpenWindow: TypeAlias = Callable[..., Page]
Visit: TypeAlias = Callable[..., Page]

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A browser of this machine, without a window on its screen."""
    program = find_browser()
    if program is None:
        pytest.skip("there is no browser: install Chromium, or name one by LOWKIQ_TEST_BROWSER")
    # Left with the package: while it runs, no other loop can in this thread.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--disable-gpu", "--disable-quic"])
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What the consoles said: nothing, or what the test expects and takes out."""
    found: list[str] = []
    yield found
    assert [] == found


@pytest.fixture
def open_window(chromium: Browser, complaints: list[str]) -> Iterator[OpenWindow]:
    """Opens windows that know nothing of each other; `options` are those of Playwright's contexts."""

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    with ExitStack() as stack:

        def open_window(**options: Any) -> Page:
            context = chromium.new_context(**{"locale": "en-GB", "timezone_id": "Europe/Vienna", **options})
            stack.callback(context.close)
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.on("console", note)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            return page

        yield open_window


@pytest.fixture
def app(server_url: str) -> Iterator[Lowkiq]:
    """An app without workers, by the server's clock."""
    app = Lowkiq(Config(redis_url=server_url, redis_timeout=5.0))
    yield app
    app.backend.client.close()
    app.drainer._backend.client.close()


@pytest.fixture
def handler() -> Handler:
    """What the worker does."""
    return Handler()


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, handler: Handler) -> Any:
    """A worker of three shards, whose jobs are dead when they have failed once."""
    return declare(app, queue_name, handler, shards_count=3, max_retry_count=0)


@pytest.fixture
def site(app: Lowkiq) -> Iterator[str]:
    """The address of the app's dashboard."""
    with Served(dashboard(app, auth=AUTH)) as served:
        yield f"{served.origin}/"


@pytest.fixture
def visit(site: str, open_window: OpenWindow) -> Visit:
    """Opens a page of the site in a window of somebody who has signed in before."""

    def visit(path: str = "", password: str = OPERATOR, **options: Any) -> Page:
        cookie = AUTH.sign_in(password, time.time())
        assert cookie is not None
        page = open_window(**options)
        page.context.add_cookies([{"name": COOKIE, "value": cookie, "url": site}])
        page.goto(site + path)
        return page

    return visit
