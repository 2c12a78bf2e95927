"""The records of tasks in Redis: read, and replaced where nobody else has done so since."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import BackendUnavailable, NoSuchTask, ShardDamaged
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import TASK_SLOT, TasksRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape, script
from lowkiq_lambda.tasks.record import TaskRecord


class SwapReply(ReplyShape, frozen=True):
    """What swap_task.lua answers; the record where that was another one, empty where there was none."""

    scripts = ("swap_task",)
    status: bytes
    record: bytes


class TaskRecordReply(ReplyShape, frozen=True):
    """What task_record.lua answers, empty where there is none."""

    scripts = ("task_record",)
    record: bytes


class LookReply(ReplyShape, frozen=True):
    """What look_at_tasks.lua answers: ids, each with its record behind it."""

    scripts = ("look_at_tasks",)
    open: list[bytes]
    over: list[bytes]


class ListTasksReply(ReplyShape, frozen=True):
    """What list_tasks.lua answers: ids, each with its time and its record behind it."""

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
        self._slot = TasksRef()

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

    def swap(self, stored: Stored, record: TaskRecord | None) -> Stored | None:
        """Replace the record by another one, or by none; None where it is not the one any more that was read."""
        text = b"" if record is None else record.written()
        return Stored(stored.id, text, record or stored.record) if self._swap(stored, text, record) is None else None

    def change(self, task_id: str, change: Callable[[TaskRecord], TaskRecord]) -> Stored:
        """Make the change, once more for each time that somebody else has come before. Raises NoSuchTask.

        `change` may raise; where it returns the record that it was given, nothing is written.
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
        """The open tasks whose last look, noted now, was longest ago; and tasks that are to be forgotten."""
        reply = LookReply.of(self._call("look_at_tasks", [most]))
        return [*_readable(reply.open)], [*_readable(reply.over)]

    def page(self, after: tuple[str, str] | None, limit: int) -> list[ListedTask]:
        """Tasks with the latest to be forgotten first, behind that time and id."""
        expires_at, task_id = after or ("+inf", "")
        reply = ListTasksReply.of(self._call("list_tasks", [expires_at, task_id, limit]))
        times = dict(zip(reply.tasks[::3], reply.tasks[1::3], strict=True))
        pairs = [part for position, part in enumerate(reply.tasks) if position % 3 != 1]
        return [ListedTask(one.id, times[one.id.encode()].decode(), one.record) for one in _readable(pairs)]

    def _swap(self, stored: Stored, text: bytes, record: TaskRecord | None) -> bytes | None:
        """None where it was replaced; else the record that is there."""
        is_open = "1" if record is not None and not record.is_over else ""
        expires_at = "" if record is None else repr(record.expires_at)
        reply = SwapReply.of(self._call("swap_task", [stored.id, stored.text, text, is_open, expires_at]))
        return None if reply.status == b"OK" else reply.record

    def _call(self, name: str, args: Sequence[Argument]) -> Reply:
        return self.backend.call(script(name, (TASK_SLOT,)), self._slot, args, self._retry_for)


def _stored(task_id: str, text: bytes) -> Stored:
    if not text:
        raise NoSuchTask(f"There is no task {task_id}: it was forgotten, or it is one of another server.")
    try:
        return Stored(task_id, text, TaskRecord.of(text))
    except msgspec.MsgspecError as error:
        raise ShardDamaged(f"The record of the task {task_id} holds what nobody of us has written: {error}.") from error


def _readable(pairs: Sequence[Any]) -> Iterator[Stored]:
    """What no version of the library has written keeps the others from nothing."""
    for task_id, text in zip(pairs[::2], pairs[1::2], strict=True):
        try:
            yield Stored(task_id.decode(), text, TaskRecord.of(text))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
