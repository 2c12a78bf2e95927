"""A task and the open tasks below it, as they stand: what a cancel of the task is about to change."""

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from lowkiq_lambda.base.errors import NoSuchTask
from lowkiq_lambda.tasks.views import Progress, Status

if TYPE_CHECKING:
    from lowkiq_lambda.tasks.tasks import Tasks


class Family(NamedTuple):
    """The task, and the open tasks below it, at all levels."""

    top: Progress
    below: tuple[Progress, ...]

    def count(self, *statuses: Status) -> int:
        """Their items with one of these statuses."""
        return sum(one.counts[status] for one in (self.top, *self.below) for status in statuses)

    def would_touch(self, *, running: bool) -> int:
        """How many items a cancel deletes, and with `running` stops, at most."""
        return self.count("enqueued", "running") if running else self.count("enqueued")

    def again(self, tasks: "Tasks") -> "Family":
        """The same tasks as they stand now. Raises NoSuchTask, BackendError."""
        # One of those below may be forgotten by then.
        below = tuple(_progress(tasks, one.id) or one for one in self.below)
        return Family(tasks.get(self.top.id).progress(), below)


def family_of(tasks: "Tasks", task_id: str) -> Family:
    """That of the task. Raises NoSuchTask, BackendError."""
    family = [tasks.get(task_id).progress()]
    for one in family:
        # The list grows as it is gone through.
        open_below = [child for child, state in one.children.items() if state == "open"]
        family += [below for child in open_below if (below := _progress(tasks, child)) is not None]
    return Family(family[0], tuple(family[1:]))


def _progress(tasks: "Tasks", task_id: str) -> Progress | None:
    with suppress(NoSuchTask):
        return tasks.get(task_id).progress()
    return None
