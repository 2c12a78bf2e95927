"""A-40: trees of tasks whose processes are killed at any call end with each callback once."""

import json
import subprocess
import sys

from tests.kit.servers import Server

KILLS = 8


def test_a40_each_callback_of_nested_tasks_is_pushed_once_though_processes_are_killed(server: Server) -> None:
    """None is pushed twice, wrongly or never, no task is complete too early, and none is stuck."""
    command = [sys.executable, "-m", "tests.tasks.nested_storm", str(KILLS), server.url]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)

    assert ([], KILLS) == (found["wrong"], found["kills"])
    assert found["tasks"] >= found["pushed"]["complete"] > 0
