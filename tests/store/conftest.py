"""Apps on the shared server, with a clock that stands still until the test moves it."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.servers import Server
from tests.store.support import Desk, Handler, MakeApp, MakeDesk, declare


@pytest.fixture
def clock() -> ManualClock:
    """The time, for the test, the app and the server."""
    return ManualClock()


@pytest.fixture
def make_app(server_url: str, clock: ManualClock) -> Iterator[MakeApp]:
    """Builds apps with the settings that they are given."""
    made: list[Lowkiq] = []

    def make(**settings: Any) -> Lowkiq:
        app = Lowkiq(Config(**{"redis_url": server_url, **settings}), clock=clock)
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


@pytest.fixture
def queue_name() -> str:
    """A name that no other test has."""
    return f"queue-{uuid4().hex}"


@pytest.fixture
def make_desk(make_app: MakeApp, clock: ManualClock, server: Server, queue_name: str) -> MakeDesk:
    """Declares a worker of one shard in an app with the settings given, with `fields` of its own."""

    def make(fields: Mapping[str, Any] | None = None, **settings: Any) -> Desk:
        app, handler = make_app(**settings), Handler()
        worker = declare(app, handler=handler, **{"queue_name": queue_name, **(fields or {})})
        return Desk(app, clock, worker, handler, server.admin)

    return make


@pytest.fixture
def desk(make_desk: MakeDesk) -> Desk:
    """With a worker of one shard, and default settings."""
    return make_desk()
