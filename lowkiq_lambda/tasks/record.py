"""The record of a task, beside its items: one JSON text in Redis, replaced as a whole."""

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Self

import msgspec

from lowkiq_lambda.base.errors import BackendUnavailable, NoSuchTask, ShardDamaged
from lowkiq_lambda.store.shard.backend import Backend, ScriptCall
from lowkiq_lambda.store.shard.keys import TASK_SLOT, TasksRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape, script
from lowkiq_lambda.tasks.views import ChildState, State, TaskSummary

ID_BYTES: Final = 12
COMPLETING: Final = 30.0
"""Seconds for which one process pushes the callback; then another one does it again, and the receipt swallows that."""
MOST_ITEMS: Final = 2**32 - 1


ABANDONED_IN: Final = 30 * 86_400.0
"""Seconds for which a task that never completes is kept after its last push."""
COMPLETE: Final = 10**12
"""Beyond all Unix seconds: complete tasks that may succeed yet are in `open_tasks` by this and their last look."""


class Callback(NamedTuple):
    """A job that is pushed for a task: its queue, and its payload as the app dumps it, in base64."""

    queue_name: str
    payload: str


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task. Times are Unix seconds by the clock of its node; None: not yet.

    `version`: a random text, new with each change, so that no two records are ever equal. `next`: how many numbers of
    items were given out. `queues`: the shards_count of each queue that it was pushed to. `verified_at`: when its open
    items were last compared with the jobs that are there. `stops_running`: of a cancelled task, whether its runs are
    asked to end. `success`, `failure`: their callbacks; `watches_success`, `watches_failure`: whether this task, or one
    above it, has one. `keep_params`: whether items keep their payloads. `parent`: the task that it is an item of;
    `level`: how many tasks are above it; `children`: the states of those below it, by id. `expires_in`: seconds from
    its completion. `abandoned_in`: seconds from its last push, if it never completes.
    """

    version: str = ""
    name: str
    created_at: float
    expires_in: float
    abandoned_in: float
    callback: Callback | None = None
    next: int = 0
    queues: dict[str, int] = {}
    pushed_at: float | None = None
    closed_at: float | None = None
    cancelled_at: float | None = None
    completing_at: float | None = None
    completed_at: float | None = None
    verified_at: float | None = None
    success: Callback | None = None
    failure: Callback | None = None
    watches_success: bool = False
    watches_failure: bool = False
    succeeded_at: float | None = None
    failed_at: float | None = None
    keep_params: bool = False
    parent: str | None = None
    level: int = 0
    children: dict[str, ChildState] = {}
    expired: bool = False
    stops_running: bool = False

    @classmethod
    def of(cls, text: bytes) -> Self:
        """The record as it was written. Raises msgspec.MsgspecError."""
        return msgspec.json.decode(text, type=cls)

    def written(self) -> bytes:
        """It as a text that was never written before."""
        return msgspec.json.encode(self.changed(version=secrets.token_urlsafe(9)))

    def changed(self, **fields: object) -> Self:
        """The record with other values."""
        return msgspec.structs.replace(self, **fields)

    @property
    def state(self) -> State:
        """What became of it so far."""
        if self.expired:
            return "expired"
        if self.cancelled_at is not None:
            return "cancelled"
        if self.completed_at is not None:
            return "completed"
        if self.completing_at is not None:
            return "completing"
        return "open" if self.closed_at is None else "closed"

    @property
    def is_open(self) -> bool:
        """Whether it takes pushes from everybody."""
        return self.state == "open"

    @property
    def is_over(self) -> bool:
        """Whether it needs no more looks until its record is removed."""
        return self.completed_at is not None or self.expired

    @property
    def awaits_success(self) -> bool:
        """Whether it is complete, and may succeed yet."""
        is_over = self.expired or self.cancelled_at is not None or self.completed_at is None
        return self.watches_success and self.succeeded_at is None and not is_over

    @property
    def awaits_failure(self) -> bool:
        """Whether the first failure of an item is still to be told."""
        return self.watches_failure and self.failed_at is None and not self.expired and self.cancelled_at is None

    @property
    def open_children(self) -> list[str]:
        """The ids of tasks below it that go on."""
        return [child for child, state in self.children.items() if state == "open"]

    @property
    def last_change(self) -> float:
        """When it was last pushed to, closed or cancelled."""
        return max(at for at in (self.created_at, self.pushed_at, self.closed_at, self.cancelled_at) if at is not None)

    @property
    def closed_or_cancelled_at(self) -> float | None:
        """When it was closed; else when it was cancelled."""
        return self.cancelled_at if self.closed_at is None else self.closed_at

    @property
    def expires_at(self) -> float:
        """When it is forgotten."""
        if self.completed_at is not None:
            return self.completed_at + self.expires_in
        return self.last_change + self.abandoned_in

    def summary(self, task_id: str) -> TaskSummary:
        """It in a list."""
        return TaskSummary(
            id=task_id,
            name=self.name,
            state=self.state,
            pushed=self.next,
            created_at=self.created_at,
            closed_at=self.closed_or_cancelled_at,
            completed_at=self.completed_at,
        )


def new_id() -> str:
    """An id that nobody can guess, and that a command line does not take for an option."""
    while (task_id := id_text(secrets.token_bytes(ID_BYTES))).startswith("-"):
        pass
    return task_id


def id_text(raw: bytes) -> str:
    """The id of a task as people and programs have it."""
    return urlsafe_b64encode(raw).decode()


def id_bytes(task_id: str) -> bytes:
    """The id as shards have it. Raises NoSuchTask for a text that is not an id."""
    value: object = task_id
    try:
        raw = urlsafe_b64decode(task_id) if isinstance(value, str) else b""
    except ValueError:
        raw = b""
    if len(raw) != ID_BYTES or id_text(raw) != task_id:
        raise NoSuchTask(f"{task_id!r} is not the id of a task: that has 16 letters, digits, '-' and '_'.")
    return raw


class SwapReply(ReplyShape, frozen=True):
    """The reply of swap_task.lua: the record if it was another one, empty if there was no record."""

    scripts = ("swap_task",)
    status: bytes
    record: bytes


class TaskRecordReply(ReplyShape, frozen=True):
    """The reply of task_record.lua, empty if there is no record."""

    scripts = ("task_record",)
    record: bytes


class LookReply(ReplyShape, frozen=True):
    """The reply of look_at_tasks.lua: ids, each with its record behind it."""

    scripts = ("look_at_tasks",)
    open: list[bytes]
    over: list[bytes]


class OpenTasksReply(ReplyShape, frozen=True):
    """The reply of open_tasks.lua: how many there are, and ids, each with its record behind it."""

    scripts = ("open_tasks",)
    count: int
    tasks: list[bytes]


class ListTasksReply(ReplyShape, frozen=True):
    """The reply of list_tasks.lua: ids, each with its time and its record behind it."""

    scripts = ("list_tasks",)
    tasks: list[bytes]


class Stored(NamedTuple):
    """A record, and the text that it was read from."""

    id: str
    text: bytes
    record: TaskRecord


class ListedTask(NamedTuple):
    """A record of a list, and its place in that: when it is to be forgotten, as the server writes it."""

    id: str
    expires_at: str
    record: TaskRecord


class TaskRecords:
    """The calls about records. Each raises BackendError."""

    def __init__(self, backend: Backend, retry_for: float) -> None:
        self.backend = backend
        self._retry_for = retry_for
        self._slot = TasksRef(backend.prefix)

    def now(self) -> float:
        """Unix seconds by the clock of the records' node."""
        return self.backend.now(self._slot)

    def add(self, task_id: str, record: TaskRecord) -> Stored:
        """Write the record of a new task."""
        return self.swap(Stored(task_id, b"", record), record) or self.get(task_id)

    def get(self, task_id: str) -> Stored:
        """The record. Raises NoSuchTask."""
        reply = TaskRecordReply.of(self._call("task_record", [task_id]))
        return _stored(task_id, reply.record)

    def has(self, task_id: str) -> bool:
        """Whether there is a record of it."""
        return bool(TaskRecordReply.of(self._call("task_record", [task_id])).record)

    def swap(self, stored: Stored, record: TaskRecord | None) -> Stored | None:
        """Replace or delete the record; None if it has changed since it was read."""
        text = b"" if record is None else record.written()
        return Stored(stored.id, text, record or stored.record) if self._swap(stored, text, record) is None else None

    def change(self, task_id: str, change: Callable[[TaskRecord], TaskRecord]) -> Stored:
        """Make the change, and repeat it if another process has changed the record first. Raises NoSuchTask.

        `change` may raise. If it returns its argument unchanged, there is no write.
        """
        stored = self.get(task_id)
        retry_until = self.backend.clock.monotonic() + self._retry_for
        while (record := change(stored.record)) is not stored.record:
            text = record.written()
            current = self._swap(stored, text, record)
            if current is None:
                return Stored(task_id, text, TaskRecord.of(text))
            stored = _stored(task_id, current)
            # No longer from one time to the next: that would let those who came last go first.
            if not self.backend.wait_to_retry(0, retry_until):
                raise BackendUnavailable(
                    f"The task {task_id} is being changed by many at once: try again a little later."
                )
        return stored

    def look(self, most: int) -> tuple[list[Stored], list[Stored]]:
        """Those whose last look, noted now, was longest ago; and tasks that are to be forgotten.

        They are open tasks, and behind them as many complete ones that may succeed yet.
        """
        reply = LookReply.of(self._call("look_at_tasks", [most, COMPLETE]))
        return [*_readable(reply.open)], [*_readable(reply.over)]

    def page(self, after: tuple[str, str] | None, limit: int) -> list[ListedTask]:
        """Tasks with the latest to be forgotten first, after that time and id."""
        expires_at, task_id = after or ("+inf", "")
        reply = ListTasksReply.of(self._call("list_tasks", [expires_at, task_id, limit]))
        times = dict(zip(reply.tasks[::3], reply.tasks[1::3], strict=True))
        pairs = [part for position, part in enumerate(reply.tasks) if position % 3 != 1]
        return [ListedTask(one.id, times[one.id.encode()].decode(), one.record) for one in _readable(pairs)]

    def _swap(self, stored: Stored, text: bytes, record: TaskRecord | None) -> bytes | None:
        """None if it was replaced; else the record that is there."""
        least: Argument = ""
        if record is not None and (not record.is_over or record.awaits_success):
            least = COMPLETE if record.is_over else 0
        expires_at = "" if record is None else repr(record.expires_at)
        reply = SwapReply.of(self._call("swap_task", [stored.id, stored.text, text, least, expires_at]))
        return None if reply.status == b"OK" else reply.record

    def _call(self, name: str, args: Sequence[Argument]) -> Reply:
        return self.backend.call(script(name, (TASK_SLOT,)), self._slot, args, self._retry_for)


def open_tasks_call(prefix: str, most: int) -> ScriptCall:
    """The call for tasks that are not complete, so many of them; `prefix`: of the app's keys."""
    return script("open_tasks", (TASK_SLOT,)), TasksRef(prefix), [most, COMPLETE]


def open_tasks_in(reply: Reply) -> tuple[int, list[Stored]]:
    """How many tasks are open, and those in the reply."""
    parts = OpenTasksReply.of(reply)
    return parts.count, [*_readable(parts.tasks)]


def _stored(task_id: str, text: bytes) -> Stored:
    if not text:
        raise NoSuchTask(f"There is no task {task_id}: it was forgotten, or it is one of another server.")
    try:
        return Stored(task_id, text, TaskRecord.of(text))
    except msgspec.MsgspecError as error:
        raise ShardDamaged(f"The record of the task {task_id} holds what nobody of us has written: {error}.") from error


def _readable(pairs: Sequence[Any]) -> Iterator[Stored]:
    """The records that can be read. A record that no version of the library has written is skipped."""
    for task_id, text in zip(pairs[::2], pairs[1::2], strict=True):
        try:
            yield Stored(task_id.decode(), text, TaskRecord.of(text))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
