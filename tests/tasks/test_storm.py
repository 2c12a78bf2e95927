"""A-37, A-40: a task over two queues whose daemons are killed ends with exact counts, and one callback."""

from pathlib import Path

from tests.kit.servers import Server
from tests.tasks.storm import storm

ITEMS = 600


def test_a37_each_item_ends_once_though_daemons_are_killed(server: Server, tmp_path: Path) -> None:
    """Done, failed and dead items, a third of them merged: every one ends as it has to, and the callback comes once.

    Two deaths are fewer than a job may have that runs alone.
    """
    verdict = storm(server, tmp_path, ITEMS, kills=2, seconds=0.2)

    assert [] == verdict.words
    assert verdict.operations["died"] == 2
    assert verdict.operations["completed"] == 1
