"""Queues that hold something of all."""

import pytest

from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.servers import Server
from tests.reshard.filled import Fill, FilledQueue


@pytest.fixture
def fill(make_app: MakeApp, queue_name: str, clock: ManualClock, server: Server) -> Fill:
    """Makes a queue of so many shards, in an app of its own, and fills it in so many rounds."""

    def make(shards_count: int, name: str = "", rounds: int = 4, **fields: object) -> FilledQueue:
        filled = FilledQueue(make_app(), f"{queue_name}{name}", clock, server.admin, shards_count, **fields)
        filled.fill(rounds)
        return filled

    return make
