"""A queue for each test, and what it takes to look at it."""

from pathlib import Path

import pytest

from tests.chaos.scenario import Scenario
from tests.kit.servers import Server


@pytest.fixture
def scenario(server: Server, queue_name: str, tmp_path: Path) -> Scenario:
    """A queue of one shard, with a journal."""
    return Scenario(url=server.url, queue_name=queue_name, journal=str(tmp_path / "journal"))
