"""A queue for each test, what it takes to look at it, and the verification at the end of each test."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.scenario import Scenario
from tests.kit.servers import Server
from tests.kit.verifying import VerifiedQueues, verified

QUEUES: Final = pytest.StashKey[VerifiedQueues]()


@pytest.fixture
def scenario(server: Server, queue_name: str, tmp_path: Path) -> Scenario:
    """A queue of one shard, with a journal."""
    return Scenario(url=server.url, queue_name=queue_name, journal=str(tmp_path / "journal"))


@pytest.fixture(autouse=True)
def _verify(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the queues that the test opens record everything, unless the test says why not."""
    # Of its own, as a test may undo its patches.
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.get_closest_marker("unverified"):
            request.node.stash[QUEUES] = verified(patch)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judge them while the test's servers are there."""
    result = yield
    queues = item.stash.get(QUEUES, None)
    found = [str(violation) for report in queues.reports() for violation in report.violations] if queues else []
    assert [] == found, "the verification of the test's queues"
    return result
