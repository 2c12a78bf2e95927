"""One server for all of these tests: each leaves its settings as they were, and its queues empty."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.servers import Server

Set: TypeAlias = Callable[..., None]
"""Takes settings of the server by their names; they last until the end of the test."""


@pytest.fixture(scope="module")
def kept_server() -> Iterator[Server]:
    """What `own` is made of."""
    with Server(appendonly=True, appendfsync="everysec") as started:
        yield started


@pytest.fixture
def own(kept_server: Server) -> Server:
    """A server as the docs want it, without a key."""
    kept_server.admin.flushall()
    return kept_server


@pytest.fixture
def settings(own: Server) -> Iterator[Set]:
    """Sets settings of the server for the test."""
    before: dict[str, Any] = {}

    def set_(**values: str | int) -> None:
        for name, value in values.items():
            setting = name.replace("_", "-")
            before.setdefault(setting, own.admin.config_get(setting)[setting])
            own.admin.config_set(setting, value)

    yield set_
    for setting, value in before.items():
        own.admin.config_set(setting, value)


@pytest.fixture
def app(own: Server, clock: ManualClock) -> Iterator[Lowkiq]:
    """An app whose time is the test's."""
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=clock)) as made:
        yield made


@contextmanager
def app_on(url: str) -> Iterator[Lowkiq]:
    """An app there, by the clocks of this machine and of the server."""
    with closing_app(Lowkiq(Config(redis_url=url))) as made:
        yield made
