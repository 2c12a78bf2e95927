"""One task: what code does with it."""

import math
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from msgspec import UNSET

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.declare.worker import AnyWorker, JobOptions, one_job, worker_of
from lowkiq_lambda.jobs.job import ItemRef, Pushed
from lowkiq_lambda.push.pushes import raise_conflicts
from lowkiq_lambda.tasks.record import id_bytes
from lowkiq_lambda.tasks.views import ItemPage, Progress, Status

if TYPE_CHECKING:
    from lowkiq_lambda.declare.worker import Id
    from lowkiq_lambda.tasks.operations import TaskOperations

LABEL_BYTES: Final = 200


class Task:
    """The result of `app.task(...)` and of `app.tasks.get(id)`. Methods raise NoSuchTask and BackendError.

    As a context manager it is closed at the end of the block; an exception leaves it open.
    """

    def __init__(self, task_id: str, operations: "TaskOperations") -> None:
        self._raw = id_bytes(task_id)
        self._operations = operations
        self.id: Final = task_id
        """16 letters, digits, `-` and `_` that nobody can guess."""

    def __repr__(self) -> str:
        return f"Task({self.id!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def push_many(self, worker: AnyWorker, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
        """Push jobs, each an item of this task, until Redis has them all; their field `item` is a label for people.

        Raises what that does, and TaskClosed, with nothing written.
        """
        if isinstance(jobs, Mapping):
            raise JobError("push_many takes a list of jobs, not one job: write push_many(worker, [{...}])")
        listed = list(jobs)
        labels = [_label(position, job) for position, job in enumerate(listed)]
        queue = self._operations.core.queues.agreed(worker_of(worker))
        if not listed:
            return []
        # The numbers and the queue stand in the record before any job does: a reader that finds the task complete has
        # looked at all queues that could have any.
        last = self._operations.register(self.id, queue.worker.queue_name, queue.shards.layout.before, len(listed))
        numbers = range(last - len(listed) + 1, last + 1)
        items = (ItemRef(self._raw, number, label) for number, label in zip(numbers, labels, strict=True))
        # A job that waited in this process would be no item yet: the task could be complete without it.
        tracked = [{**job, "item": item} for job, item in zip(listed, items, strict=True)]
        pushed = self._operations.core.pushes.push_or_raise(worker, tracked)
        raise_conflicts(queue.worker, tracked, pushed)
        return pushed

    def push(
        self,
        worker: AnyWorker,
        id: "Id",
        payload: object = UNSET,
        *,
        item: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Pushed:
        """Push one job, an item of this task, as `push_many` does; `item` is a label for people."""
        job = one_job(id, payload, options)
        return self.push_many(worker, [job if item is None else {**job, "item": item}])[0]

    def close(self) -> None:
        """No more pushes from outside: when all items have ended, the task is complete. Harmless to repeat."""
        self._operations.close(self.id)

    def cancel(self, seconds: float = math.inf, *, running: bool = False) -> int:
        """Delete waiting items, unless somebody else pushed them too. Harmless to repeat.

        Running items finish. With `running` they are asked to stop, as `app.operate(worker).cancel` does, unless their
        run has payloads that somebody else pushed: an item of a run that does not end well is cancelled then.
        The task takes no pushes from then on, and its callback is not pushed. A complete task stays as it is.
        Returns how many items still wait, at most: 0, as a rule. Some are left if `seconds` were over before, or if
        a move between shards that has them has rested for a minute. The duty "tasks" deletes them within minutes,
        and until then they may be performed.
        """
        return self._operations.cancel(self.id, seconds, running=running)

    def progress(self) -> Progress:
        """The progress of the task. If it turns out to be complete, it is completed."""
        return self._operations.progress(self.id)

    def items(self, status: Status | None = None, after: str | None = None, limit: int = 100) -> ItemPage:
        """Items of one status, or all: those that failed first, then by number. Raises ValueError for a bad argument.

        `after`: the `next` of the page before.
        """
        return self._operations.items(self.id, status, after, limit)


def _label(position: int, job: Mapping[str, Any]) -> str:
    anything: object = job
    if not isinstance(anything, Mapping):
        raise JobError(f"a job is a mapping with an id, not {type(job).__name__}", position=position)
    value: object = job.get("item", "")
    if not isinstance(value, str):
        raise JobError(f"must be a str, not {type(value).__name__}", position=position, field="item")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise JobError("holds a lone surrogate, which cannot be stored", position=position, field="item") from None
    if size > LABEL_BYTES:
        raise JobError(f"has {size:,} bytes, more than {LABEL_BYTES}", position=position, field="item")
    return value
