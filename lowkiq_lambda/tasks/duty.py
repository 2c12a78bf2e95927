"""The duty that looks after tasks."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.declare.duty import TASKS
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.tasks.tasks import Tasks

if TYPE_CHECKING:
    from lowkiq_lambda.base.clock import Clock
    from lowkiq_lambda.core import Core


class TaskDuty:
    """Once a minute: completes tasks whose drain could not, goes on with cancels, verifies, forgets."""

    name: Final = TASKS
    every: Final = 60.0

    def __init__(self, core: "Core") -> None:
        self._core = core

    def run(self, remaining: Callable[[], float]) -> dict[str, int]:
        """ItemCounts of what was done. Raises BackendError."""
        return self._core.part(Tasks).upkeep(remaining)


def task_runner(core: "Core", clock: "Clock") -> DutyRunner:
    """The runner of the duty, which does not wait for other duties."""
    return DutyRunner(core, [TaskDuty(core)], clock, name=TASKS)
