"""A worker and what it does, as most of these tests need them."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.claimed_shard import ClaimedShard
from tests.kit.desk import Desk, MakeDesk
from tests.kit.handlers import FailingHandler
from tests.kit.servers import Server
from tests.kit.workers import declare


@pytest.fixture
def make_desk(make_app: MakeApp, clock: ManualClock, server: Server, queue_name: str) -> MakeDesk:
    """Declares a worker of one shard in an app with the settings given, with `fields` of its own."""

    def make(fields: Mapping[str, Any] | None = None, **settings: Any) -> Desk:
        app, handler = make_app(**settings), FailingHandler()
        worker = declare(app, handler=handler, **{"queue_name": queue_name, **(fields or {})})
        return Desk(app, clock, worker, handler, server.admin)

    return make


@pytest.fixture
def desk(make_desk: MakeDesk) -> Desk:
    """With a worker of one shard, and default settings."""
    return make_desk()


@pytest.fixture
def shard(server: Server, queue_name: str) -> Iterator[ClaimedShard]:
    """A shard of its own, and whoever holds it."""
    shard = ClaimedShard(server, queue_name)
    with shard.holders:
        yield shard
