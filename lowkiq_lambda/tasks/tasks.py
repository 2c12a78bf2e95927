"""`app.tasks`: makes tasks, finds them, lists them."""

from base64 import b64encode
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.base.errors import BackendError, DeclarationError, JobError, NoSuchTask
from lowkiq_lambda.declare.worker import AnyWorker, refuse_without_score, worker_of
from lowkiq_lambda.jobs.job import is_number
from lowkiq_lambda.store.shard.codec import dump_json
from lowkiq_lambda.tasks.items import check_limit
from lowkiq_lambda.tasks.operations import TaskOperations
from lowkiq_lambda.tasks.record import Callback, TaskRecord, id_text, new_id
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import TaskPage

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.declare.worker import Worker

NAME_LENGTH: Final = 200
ABANDONED_IN: Final = 30 * 86_400.0
"""Seconds for which a task that never completes is kept after its last push."""
LONGEST: Final = 366 * 86_400.0
CALLBACK_BYTES: Final = 64 * 1024
"""Of a callback's payload: it lies in the record, which each push reads and writes."""


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
    ) -> Task:
        """Make a task, for `app.task`. Raises DeclarationError, JobError."""
        value: object = name
        if not isinstance(value, str) or not 1 <= len(value) <= NAME_LENGTH:
            raise DeclarationError(f"A task has a name of 1 to {NAME_LENGTH} letters, not {name!r}.")
        # Its value, of whatever class it is.
        name = str.__str__(value)
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DeclarationError(f"A task's name holds a lone surrogate: {name!r}.") from None
        config = self._core.config
        record = TaskRecord(
            name=name,
            created_at=self._operations.records.now(),
            expires_in=config.task_max_age if expires_in is None else _seconds(expires_in),
            abandoned_in=ABANDONED_IN,
            callback=None if on_complete is None else self._callback(on_complete),
        )
        task_id = new_id()
        self._operations.records.add(task_id, record)
        self._core.connections.has_made_task = True
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

    def look_at(self, tasks: Iterable[bytes], remaining: Callable[[], float]) -> None:
        """Complete those tasks that are complete, given by the bytes of their ids, while there is time.

        Where Redis cannot serve now, the duty "tasks" looks later.
        """
        hasty = TaskOperations(self._core, retry_for=0.0)
        for task in tasks:
            if remaining() > 0:
                with suppress(BackendError, NoSuchTask):
                    hasty.look(hasty.records.get(id_text(task)))

    def upkeep(self, remaining: Callable[[], float]) -> dict[str, int]:
        """What the duty "tasks" does, while `remaining` (seconds) is more than 0; counts of what was done."""
        from lowkiq_lambda.tasks.upkeep import Upkeep  # noqa: PLC0415 - most processes have no use for it

        return Upkeep(self._operations).run(remaining)

    def _callback(self, on_complete: object) -> Callback:
        if not isinstance(on_complete, tuple) or len(on_complete) != 2:  # noqa: PLR2004 - a pair
            raise DeclarationError(f"on_complete is a worker and a payload, in a tuple, not {on_complete!r}.")
        target, payload = on_complete
        worker = worker_of(target)
        if worker.queue_name not in self._core.queues:
            raise DeclarationError(f"on_complete: {worker.__name__} is not a worker of this app.")
        refuse_without_score(worker, "on_complete")
        dump = self._core.config.dump_payload or dump_json
        dumped = dump(_plain(worker, payload))
        if len(dumped) > CALLBACK_BYTES:
            raise JobError(f"on_complete: the payload has {len(dumped):,} bytes, more than {CALLBACK_BYTES:,}")
        return Callback(worker.queue_name, b64encode(dumped).decode())


def _plain(worker: "type[Worker[Any]]", payload: object) -> object:
    """The payload of a callback as JSON values. Raises JobError if it is not of the worker's type."""
    if worker.payload is None:
        return payload
    from lowkiq_lambda.declare.payloads import plain_payload  # noqa: PLC0415 - only where a type is declared: cold start

    try:
        return plain_payload(worker.payload, payload)
    except JobError as error:
        raise JobError(f"on_complete: the payload {error.reason}") from error.__cause__


def _seconds(expires_in: float | timedelta) -> float:
    value: object = expires_in.total_seconds() if isinstance(expires_in, timedelta) else expires_in
    if not isinstance(value, int | float) or not is_number(value) or not 0 < value <= LONGEST:
        raise DeclarationError(
            f"expires_in must be seconds, above 0 and at most 366 days, or a timedelta, not {value!r}."
        )
    return float(value)


def _position(after: str) -> tuple[str, str]:
    """Time and id that the page before ended with."""
    value: object = after
    expires_at, _, task_id = after.partition("-") if isinstance(value, str) else ("", "", "")
    try:
        float(expires_at)
    except ValueError:
        raise ValueError(f"after={after!r} is not the `next` of a page of tasks.") from None
    return expires_at, task_id
