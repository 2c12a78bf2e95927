"""The duty that looks after tasks."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.duties.duty import TASKS
from lowkiq_lambda.duties.runner import DutyRunner

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.clock import Clock


class TaskDuty:
    """Once a minute: completes tasks whose drain could not, goes on with cancels, verifies, forgets."""

    name: Final = TASKS
    every: Final = 60.0

    def run(self, app: "Lowkiq", remaining: Callable[[], float]) -> dict[str, int]:
        """ItemCounts of what was done. Raises BackendError."""
        return app.tasks.upkeep(remaining)


def task_runner(app: "Lowkiq", clock: "Clock") -> DutyRunner:
    """What runs the duty: it waits for no other one."""
    return DutyRunner(app, [TaskDuty()], clock, name=TASKS)
