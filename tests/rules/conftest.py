"""Apps on the shared server, with a clock that stands still until the test moves it."""

from collections.abc import Iterator
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.rules.support import MakeApp


@pytest.fixture
def clock() -> ManualClock:
    """The time, for the test, the app and the server."""
    return ManualClock()


@pytest.fixture
def make_app(server_url: str, clock: ManualClock) -> Iterator[MakeApp]:
    """Builds apps with the settings that they are given."""
    made: list[Lowkiq] = []

    def make(**settings: Any) -> Lowkiq:
        app = Lowkiq(Config(redis_url=server_url, **settings), clock=clock)
        made.append(app)
        return app

    yield make
    for app in made:
        app.backend.client.close()
        app.drainer._backend.client.close()


@pytest.fixture
def app(make_app: MakeApp) -> Lowkiq:
    """An app with default settings."""
    return make_app()
