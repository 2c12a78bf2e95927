"""A queue for each test, and what it takes to look at it."""

from pathlib import Path

import pytest

from tests.chaos.stage import Stage
from tests.servers import Server


@pytest.fixture
def stage(server: Server, queue_name: str, tmp_path: Path) -> Stage:
    """A queue of one shard, with a journal."""
    return Stage(url=server.url, queue_name=queue_name, journal=str(tmp_path / "journal"))
