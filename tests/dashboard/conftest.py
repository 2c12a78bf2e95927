"""An app on the shared server, its dashboard, and browsers that have signed in."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import close_app
from tests.kit.handlers import FailingHandler
from tests.kit.web import Browser
from tests.kit.workers import declare

MakeBrowser: TypeAlias = Callable[..., Browser]


@pytest.fixture
def clock() -> ManualClock:
    """The time, for the test, the app, its dashboard and the server."""
    return ManualClock()


@pytest.fixture
def namespace() -> str | None:
    """Of the app, where its tasks and processes must be the only ones on the server."""
    return None


@pytest.fixture
def app(server_url: str, clock: ManualClock, namespace: str | None) -> Iterator[Lowkiq]:
    """An app without workers."""
    app = Lowkiq(Config(redis_url=server_url, redis_timeout=1.0, namespace=namespace), clock=clock)
    yield app
    close_app(app)


@pytest.fixture
def handler() -> FailingHandler:
    """What the worker does."""
    return FailingHandler()


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """The app's only worker: one shard, batches of ten, tries again after a minute."""
    return declare(app, queue_name, handler)


@pytest.fixture
def make_browser(app: Lowkiq, clock: ManualClock) -> MakeBrowser:
    """Opens a browser on the app's dashboard, signed in by a password where one is given."""

    def make(password: str | None = OPERATOR, **options: Any) -> Browser:
        shown, auth = options.pop("app", app), options.pop("auth", AUTH)
        browser = Browser(dashboard(shown, **{"auth": auth, "clock": clock, **options}))
        if password is not None:
            browser.come_in(auth, password, clock.time())
        return browser

    return make


@pytest.fixture
def browser(make_browser: MakeBrowser) -> Browser:
    """An operator's."""
    return make_browser()
