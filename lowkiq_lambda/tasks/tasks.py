"""`app.tasks`: makes tasks, finds them, lists them."""

from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Unpack

from lowkiq_lambda.base.errors import BackendError, NoSuchTask
from lowkiq_lambda.tasks.items import check_limit
from lowkiq_lambda.tasks.making import TaskOptions, make
from lowkiq_lambda.tasks.operations import TaskOperations
from lowkiq_lambda.tasks.record import ID_BYTES, id_text
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import TaskPage

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.declare.pushable import AnyWorker


class Tasks:
    """All tasks on the app's server. Each method raises BackendError."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._operations = TaskOperations(core, core.config.redis_retry_for)

    def new(
        self,
        name: str,
        on_complete: "tuple[AnyWorker, object] | None" = None,
        expires_in: float | timedelta | None = None,
        **options: Unpack[TaskOptions],
    ) -> Task:
        """Make a task, for `app.task`. Raises DeclarationError, JobError."""
        task_id = make(self._operations, name, on_complete, expires_in, **options)
        return Task(task_id, self._operations)

    def get(self, task_id: str) -> Task:
        """The task of that id, without a call to Redis. Raises NoSuchTask for a text that is not an id of a task."""
        return Task(task_id, self._operations)

    def list(self, after: str | None = None, limit: int = 100) -> TaskPage:
        """All tasks, by the time of their removal: as a rule those that go on, then those that ended last.

        `after`: the `next` of the page before. Raises ValueError for a bad argument.
        """
        check_limit(limit)
        records = self._operations.records.page(None if after is None else _position(after), limit + 1)
        page = records[:limit]
        # A plus of the exponent would be a space in a URL.
        following = f"{page[-1].expires_at}-{page[-1].id}".replace("+", "") if len(records) > limit else None
        return TaskPage([one.record.summary(one.id) for one in page], following)

    def look_at(self, tasks: Collection[bytes], remaining: Callable[[], float]) -> None:
        """Complete those tasks that are complete, given by the bytes of their ids, while there is time.

        An id with a byte behind it is that of a task whose items have failed, and that wants to know of it.
        Where Redis cannot serve now, the duty "tasks" looks later.
        """
        hasty = TaskOperations(self._core, retry_for=0.0)
        failed = {task[:ID_BYTES] for task in tasks if len(task) > ID_BYTES}
        for task in {task[:ID_BYTES] for task in tasks}:
            if remaining() > 0:
                with suppress(BackendError, NoSuchTask):
                    hasty.look(hasty.records.get(id_text(task)), has_failed=task in failed)

    def upkeep(self, remaining: Callable[[], float]) -> dict[str, int]:
        """What the duty "tasks" does, while `remaining` (seconds) is more than 0; counts of what was done."""
        from lowkiq_lambda.tasks.upkeep import Upkeep  # noqa: PLC0415 - most processes have no use for it

        return Upkeep(self._operations).run(remaining)


def _position(after: str) -> tuple[str, str]:
    """Time and id that the page before ended with."""
    value: object = after
    expires_at, _, task_id = after.partition("-") if isinstance(value, str) else ("", "", "")
    try:
        float(expires_at)
    except ValueError:
        raise ValueError(f"after={after!r} is not the `next` of a page of tasks.") from None
    return expires_at, task_id
