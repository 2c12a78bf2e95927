"""Stages for daemons in processes of their own, and apps for daemons in this one."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from lowkiq_lambda import Config, Lowkiq
from tests.local.daemons import Stage
from tests.servers import Server

MakeApp: TypeAlias = Callable[..., Lowkiq]


@pytest.fixture
def stage(server: Server, queue_name: str, tmp_path: Path) -> Iterator[Stage]:
    """A queue of one shard on the shared server."""
    with closing(Stage(server, queue_name, tmp_path)) as made:
        yield made


@pytest.fixture
def make_app(server_url: str) -> Iterator[MakeApp]:
    """Builds apps with the settings that they are given, on the shared server."""
    made: list[Lowkiq] = []

    def make(**settings: Any) -> Lowkiq:
        made.append(Lowkiq(Config(**{"redis_url": server_url, **settings})))
        return made[-1]

    yield make
    for app in made:
        for used in (app._client_backend, app._drainer and app._drainer._backend):
            if used:
                used.client.close()
