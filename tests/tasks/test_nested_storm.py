"""A-40: trees of tasks whose processes are killed at any call end with each callback once."""

from tests.kit.servers import Server
from tests.tasks.nested_storm import storm

KILLS = 16


def test_a40_each_callback_of_nested_tasks_is_pushed_once_though_processes_are_killed(server: Server) -> None:
    """None is pushed twice, wrongly or never, no task is complete too early, and none is stuck."""
    found = storm(server, KILLS)

    assert [] == found.wrong
    assert found.tasks >= found.pushed["complete"] > 0
