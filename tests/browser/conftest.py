"""A browser that the tests share, windows of it, and a dashboard to look at."""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard import dashboard
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.handlers import FailingHandler
from tests.kit.serving import Served
from tests.kit.windows import OpenWindow, running_browser, windows
from tests.kit.workers import declare

Visit: TypeAlias = Callable[..., Page]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A browser that the package's tests share."""
    with running_browser() as browser:
        yield browser


@pytest.fixture
def open_window(chromium: Browser, complaints: list[str]) -> Iterator[OpenWindow]:
    """Opens windows that know nothing of each other; `options` are those of Playwright's contexts."""
    with windows(chromium, complaints) as open_window:
        yield open_window


@pytest.fixture
def app(server_url: str) -> Iterator[Lowkiq]:
    """An app without workers, by the server's clock."""
    app = Lowkiq(Config(redis_url=server_url, redis_timeout=5.0))
    yield app
    app.core.backend.client.close()
    app.core.drains.drainer._backend.client.close()


@pytest.fixture
def handler() -> FailingHandler:
    """What the worker does."""
    return FailingHandler()


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
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
        scope = {"headers": [(b"host", urlsplit(site).netloc.encode())]}
        found = AUTH.sign_in(scope, password, time.time())
        page = open_window(**options)
        # A wrong password has no cookie, and the page would be the form.
        if found is not None:
            _, cookie = found
            page.context.add_cookies([{"name": cookie.name, "value": cookie.value, "url": site}])
        page.goto(site + path)
        return page

    return visit
