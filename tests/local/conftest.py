"""Stages for daemons in processes of their own, and apps for daemons in this one."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq
from tests.kit.apps import MakeApp, close_app
from tests.kit.servers import Server
from tests.kit.stage import Stage
from tests.local.programs import Project

APP = "tests.local.app:app"
"""The app of daemons in processes of their own."""


@pytest.fixture
def stage(server: Server, queue_name: str, tmp_path: Path) -> Iterator[Stage]:
    """A queue of one shard on the shared server."""
    with closing(Stage(server, queue_name, tmp_path, APP)) as made:
        yield made


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project of several programs, whose app names `embedded:`; its queue has three shards."""
    with Project(tmp_path) as made:
        yield made


@pytest.fixture
def make_app(server_url: str) -> Iterator[MakeApp]:
    """Builds apps on the shared server, with the settings that they are given, that go by the real clock."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Lowkiq:
            app = Lowkiq(Config(**{"redis_url": server_url, **settings}))
            stack.callback(close_app, app)
            return app

        yield make
