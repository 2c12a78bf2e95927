"""Makes tasks: checks what code gives, and writes the record of a new one."""

from base64 import b64encode
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from lowkiq_lambda.base.errors import BackendError, DeclarationError, JobError, NoSuchTask, TaskClosed
from lowkiq_lambda.declare.worker import refuse_without_score, worker_of
from lowkiq_lambda.jobs.job import is_number
from lowkiq_lambda.store.shard.codec import dump_json
from lowkiq_lambda.tasks.items import plain_of
from lowkiq_lambda.tasks.record import ABANDONED_IN, Callback, TaskRecord, new_id

if TYPE_CHECKING:
    from lowkiq_lambda.declare.pushable import AnyWorker
    from lowkiq_lambda.tasks.operations import TaskOperations

NAME_LENGTH: Final = 200
UNUSED_IN: Final = 86_400.0
"""Seconds for which a task waits for another one below it that nobody pushes to or closes: its maker may have died."""
LONGEST: Final = 366 * 86_400.0
CALLBACK_BYTES: Final = 64 * 1024
"""Of a callback's payload: it lies in the record, which each push reads and writes."""
MOST_LEVELS: Final = 8


class TaskOptions(TypedDict, total=False):
    """Options of few tasks: further callbacks, each a worker and a payload, and `keep_params`."""

    on_success: "tuple[AnyWorker, object] | None"
    on_failure: "tuple[AnyWorker, object] | None"
    keep_params: bool


def make(
    operations: "TaskOperations",
    name: str,
    callback: "tuple[AnyWorker, object] | None",
    expires_in: float | timedelta | None,
    parent: str | None = None,
    **options: Unpack[TaskOptions],
) -> str:
    """Make a task, an item of `parent` if there is one; its id. Raises DeclarationError, JobError, TaskClosed."""
    if unknown := [*(options.keys() - TaskOptions.__annotations__.keys())]:
        raise DeclarationError(f"A task has no option {unknown[0]!r}: it has {', '.join(TaskOptions.__annotations__)}.")
    core = operations.core
    success, failure = options.get("on_success"), options.get("on_failure")
    record = TaskRecord(
        name=_name(name),
        created_at=operations.records.now(),
        expires_in=core.config.task_max_age if expires_in is None else _seconds(expires_in),
        abandoned_in=ABANDONED_IN,
        callback=_callback(operations, "on_complete", callback),
        success=_callback(operations, "on_success", success),
        failure=_callback(operations, "on_failure", failure),
        watches_success=success is not None,
        watches_failure=failure is not None,
        keep_params=bool(options.get("keep_params")),
    )
    if parent is not None:
        above = operations.records.get(parent).record
        record = _below(parent, above, record)
        record = record if "keep_params" in options else record.changed(keep_params=above.keep_params)
    task_id = new_id()
    # Before its parent knows of it: a record that nobody knows of is forgotten, and keeps nobody waiting.
    stored = operations.records.add(task_id, record)
    if parent is not None:
        try:
            operations.adopt(parent, task_id)
        except (NoSuchTask, TaskClosed):
            with suppress(BackendError):
                operations.records.swap(stored, None)
            raise
    core.connections.has_made_task = True
    return task_id


def _below(parent_id: str, parent: TaskRecord, record: TaskRecord) -> TaskRecord:
    if parent.level + 1 >= MOST_LEVELS:
        raise TaskClosed(
            f"The task {parent_id} ({parent.name}) has {parent.level} above it: {MOST_LEVELS} levels are all."
        )
    return record.changed(
        parent=parent_id,
        level=parent.level + 1,
        abandoned_in=UNUSED_IN,
        expires_in=max(record.expires_in, parent.expires_in),
        watches_success=record.watches_success or parent.watches_success,
        watches_failure=record.watches_failure or parent.watches_failure,
    )


def _name(name: str) -> str:
    value: object = name
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_LENGTH:
        raise DeclarationError(f"A task has a name of 1 to {NAME_LENGTH} letters, not {name!r}.")
    # Its value, of whatever class it is.
    name = str.__str__(value)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise DeclarationError(f"A task's name holds a lone surrogate: {name!r}.") from None
    return name


def _callback(operations: "TaskOperations", option: str, target_and_payload: object) -> Callback | None:
    if target_and_payload is None:
        return None
    if not isinstance(target_and_payload, tuple) or len(target_and_payload) != 2:  # noqa: PLR2004 - a pair
        raise DeclarationError(f"{option} is a worker and a payload, in a tuple, not {target_and_payload!r}.")
    target, payload = target_and_payload
    worker = worker_of(target)
    if worker.queue_name not in operations.core.queues:
        raise DeclarationError(f"{option}: {worker.__name__} is not a worker of this app.")
    refuse_without_score(worker, option)
    dump = operations.core.config.dump_payload or dump_json
    try:
        dumped = dump(plain_of(worker, payload))
    except JobError as error:
        if worker.payload is None:
            raise
        raise JobError(f"{option}: the payload {error.reason}") from error.__cause__
    if len(dumped) > CALLBACK_BYTES:
        raise JobError(f"{option}: the payload has {len(dumped):,} bytes, more than {CALLBACK_BYTES:,}")
    return Callback(worker.queue_name, b64encode(dumped).decode())


def _seconds(expires_in: float | timedelta) -> float:
    value: object = expires_in.total_seconds() if isinstance(expires_in, timedelta) else expires_in
    if not isinstance(value, int | float) or not is_number(value) or not 0 < value <= LONGEST:
        raise DeclarationError(
            f"expires_in must be seconds, above 0 and at most 366 days, or a timedelta, not {value!r}."
        )
    return float(value)
