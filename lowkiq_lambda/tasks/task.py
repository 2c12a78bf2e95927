"""One task: what code does with it."""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, Unpack

from msgspec import UNSET

from lowkiq_lambda.base.errors import BackendError, Conflict, JobError, LowkiqError, SplitInterrupted
from lowkiq_lambda.declare.options import JobOptions
from lowkiq_lambda.declare.pushable import AnyWorker, one_job
from lowkiq_lambda.declare.worker import worker_of
from lowkiq_lambda.jobs.job import ItemRef, Pushed
from lowkiq_lambda.push.pushes import raise_conflicts
from lowkiq_lambda.tasks.items import packed_params, plain_of
from lowkiq_lambda.tasks.record import id_bytes
from lowkiq_lambda.tasks.views import ItemPage, Progress, Status

if TYPE_CHECKING:
    from lowkiq_lambda.declare.options import Id
    from lowkiq_lambda.tasks.making import TaskOptions
    from lowkiq_lambda.tasks.operations import TaskOperations

LABEL_BYTES: Final = 200


ITEMS_AT_ONCE: Final = 1_000
"""Of those that a split pushes."""


class Split(NamedTuple):
    """How many items a call of `split` has pushed, and of how many rows."""

    items: int
    rows: int


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
        record = self._operations.register(self.id, queue.worker.queue_name, queue.shards.layout.before, len(listed))
        numbers = range(record.next - len(listed) + 1, record.next + 1)
        items = (
            ItemRef(
                self._raw,
                number,
                label,
                _params(queue.worker, job, position) if record.keep_params else b"",
                record.watches_failure,
            )
            for position, (number, label, job) in enumerate(zip(numbers, labels, listed, strict=True))
        )
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

    def split(  # noqa: PLR0913 - what each item is made of
        self,
        worker: AnyWorker,
        rows: Iterable[Any],
        *,
        id: str,
        size: int = 1,
        payload: Callable[[list[Any], int], object] | None = None,
        label: Callable[[list[Any], int], str] | None = None,
        skip: int = 0,
    ) -> Split:
        """Push jobs of `size` rows each, items of this task with the ids `<id>:0001` and so on. Closes nothing.

        The payload is `{"rows": [...], "first": n}`, or what `payload(rows, first)` returns, where `first` is the
        number of the first row, from 1; the label says which rows, or is `label(rows, first)`. Rows are read as they
        are pushed, 1,000 items at a time. `skip`: so many rows were pushed before. Raises SplitInterrupted, whose
        `rows_done` is the `skip` of the next call, ValueError, and what `push_many` raises before any row is pushed.
        """
        _check_number("size", size, 1)
        _check_number("skip", skip, 0)
        if skip % size:
            raise ValueError(f"skip must be a multiple of size, {size}, not {skip}.")
        left, done = islice(rows, skip, None), skip
        make_payload, make_label = payload or _rows_payload, label or _rows_label
        while chunk := [*islice(left, size * ITEMS_AT_ONCE)]:
            parts = [(chunk[at : at + size], done + at + 1) for at in range(0, len(chunk), size)]
            jobs = [
                {
                    "id": f"{id}:{-(-first // size):04}",
                    "payload": make_payload(part, first),
                    "item": make_label(part, first),
                }
                for part, first in parts
            ]
            try:
                self.push_many(worker, jobs)
            except LowkiqError as error:
                # All of its jobs but those that were dropped are written.
                done += len(chunk) if isinstance(error, Conflict) else 0
                if done == skip and not isinstance(error, BackendError):
                    raise
                raise SplitInterrupted(f"{done:,} rows are pushed: {error}", rows_done=done) from error
            done += len(chunk)
        return Split(items=-(-(done - skip) // size), rows=done - skip)

    def task(
        self,
        name: str,
        on_complete: "tuple[AnyWorker, object] | None" = None,
        expires_in: float | timedelta | None = None,
        **options: Unpack["TaskOptions"],
    ) -> "Task":
        """A new task that is an item of this one: this one is complete only once that is. Options as of `app.task`.

        It keeps the params of its items if this one does, and is kept as long as this one at least. A failure in it is
        one of this task, too. Raises TaskClosed, also beyond 1,000 of them and 8 levels, DeclarationError and JobError.
        """
        from lowkiq_lambda.tasks.making import make  # noqa: PLC0415 - few tasks have others below them

        made = make(self._operations, name, on_complete, expires_in, self.id, **options)
        return Task(made, self._operations)

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

    def progress(self, errors: int = 0) -> Progress:
        """The progress of the task. If it turns out to be complete, it is completed.

        `errors`: of how many items that failed, died or were lost it tells, 0 to 100. Raises ValueError for others.
        """
        return self._operations.progress(self.id, errors)

    def items(self, status: Status | None = None, after: str | None = None, limit: int = 100) -> ItemPage:
        """Items of one status, or all: those that failed first, then by number. Raises ValueError for a bad argument.

        `after`: the `next` of the page before.
        """
        return self._operations.items(self.id, status, after, limit)


def _check_number(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer from {least} on, not {value!r}.")


def _rows_payload(rows: list[Any], first: int) -> object:
    return {"rows": rows, "first": first}


def _rows_label(rows: list[Any], first: int) -> str:
    return f"rows {first}-{first + len(rows) - 1}" if len(rows) > 1 else f"row {first}"


def _params(worker: AnyWorker, job: Mapping[str, Any], position: int) -> bytes:
    try:
        return packed_params(plain_of(worker_of(worker), job.get("payload")))
    except JobError as error:
        raise error.at(position) from error.__cause__


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
