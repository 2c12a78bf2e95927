"""Acts on a task, by its id: on the record and the items together."""

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.base.error_text import headline
from lowkiq_lambda.base.errors import LowkiqError, NoSuchTask, TaskClosed
from lowkiq_lambda.engine.batch import running
from lowkiq_lambda.engine.failure import ErrorText
from lowkiq_lambda.store.shard.keys import TRACKING
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.store.shard.nodes import FOREVER
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import ReplyShape
from lowkiq_lambda.tasks.completion import Completion
from lowkiq_lambda.tasks.items import MOST_ERRORS, ItemCounts, TaskItems, item_page
from lowkiq_lambda.tasks.places import Places
from lowkiq_lambda.tasks.record import ABANDONED_IN, MOST_ITEMS, Stored, TaskRecord, TaskRecords, id_bytes
from lowkiq_lambda.tasks.views import ItemError, ItemPage, Progress, Status

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core


logger = logging.getLogger(__name__)

POLLS: Final = (1.0, 30.0)
"""Seconds: the shortest and the longest time until it is worth asking again."""
POLL_SHARE: Final = 1 / 20
"""Of a task's age."""

MOST_CHILDREN: Final = 1_000

MOVE_PATIENCE: Final = 60.0
"""Seconds for which a cancel waits for a move between shards that stands still."""
MOVE_POLL: Final = 0.25


class TaskOperations:
    """The tasks of one app. Each method raises NoSuchTask, BackendError, and the errors in its own docstring."""

    def __init__(self, core: "Core", retry_for: float) -> None:
        self.core = core
        config = core.config
        self._retry_for = retry_for
        self._texts = ErrorText(config.format_error, config.dump_error, config.load_error)
        self.records = TaskRecords(core.backend, retry_for)
        self.places = Places(core, retry_for)
        self.completion = Completion(core, self.records, self.items_of, self.places)

    def items_of(self, stored: Stored) -> TaskItems:
        """The items of a task, in all queues that it was pushed to."""
        reader = ShardReader(self.core.backend, self._retry_for)
        return TaskItems(reader, id_bytes(stored.id), self.places.layouts(stored.record.queues), self._texts.read)

    def register(self, task_id: str, queue_name: str, shards_count: int, count: int) -> TaskRecord:
        """Give out numbers for so many items in that queue; the record, which has the last one. Raises TaskClosed."""

        def change(record: TaskRecord) -> TaskRecord:
            if record.next + count > MOST_ITEMS:
                raise TaskClosed(
                    f"The task {task_id} ({record.name}) has no numbers left: it had {record.next:,} items."
                )
            queues = {**record.queues, queue_name: shards_count}
            return record.changed(next=record.next + count, queues=queues)

        return self._take_in(task_id, change)

    def adopt(self, task_id: str, child_id: str) -> None:
        """Another task is an item of this one. Raises TaskClosed."""

        def change(record: TaskRecord) -> TaskRecord:
            if len(record.children) >= MOST_CHILDREN:
                raise TaskClosed(
                    f"The task {task_id} ({record.name}) has {MOST_CHILDREN:,} tasks below it: more may not be."
                )
            return record.changed(children={**record.children, child_id: "open"})

        self._take_in(task_id, change)

    def _take_in(self, task_id: str, change: Callable[[TaskRecord], TaskRecord]) -> TaskRecord:
        """Make the change, if the task takes items. Raises TaskClosed."""
        now = self.records.now()
        runs: bool | None = None

        def checked(record: TaskRecord) -> TaskRecord:
            nonlocal runs
            if record.state == "closed":
                runs = runs_in(self.core, task_id) if runs is None else runs
            if not (record.is_open or (record.state == "closed" and runs)):
                own = ", but from its own running items" if record.state == "closed" else ""
                raise TaskClosed(f"The task {task_id} ({record.name}) is {record.state}: it takes no more pushes{own}.")
            kept = record.abandoned_in if record.parent is None else ABANDONED_IN
            return change(record).changed(pushed_at=now, abandoned_in=kept)

        return self.records.change(task_id, checked).record

    def close(self, task_id: str) -> None:
        """No more pushes from outside."""
        now = self.records.now()
        stored = self.records.change(
            task_id, lambda record: record.changed(closed_at=now) if record.is_open else record
        )
        self.look(stored)

    def cancel(self, task_id: str, seconds: float = math.inf, *, running: bool = False) -> int:
        """No more pushes at all; what waits is withdrawn. How many items are left to the duty "tasks", at most.

        With `running` what runs for the task alone is asked to stop.
        """
        value: object = seconds
        if not (isinstance(value, int | float) and not isinstance(value, bool) and seconds >= 0):
            raise ValueError(f"seconds must be a number from 0 on, not {value!r}.")
        now, clock = self.records.now(), self.core.backend.clock
        ends_at = clock.monotonic() + min(seconds, FOREVER)

        def change(record: TaskRecord) -> TaskRecord:
            if record.state in {"open", "closed"}:
                return record.changed(cancelled_at=now, stops_running=bool(running))
            is_asked = record.state == "cancelled" and not record.is_over and running and not record.stops_running
            return record.changed(stops_running=True) if is_asked else record

        stored = self.records.change(task_id, change)
        left = 0
        if stored.record.state == "cancelled" and not stored.record.is_over:
            left = self.cancel_children(stored, remaining := lambda: ends_at - clock.monotonic())
            left += self.withdraw(stored, remaining, MOVE_PATIENCE)
            self.look(self.records.get(task_id))
        return left

    def cancel_children(self, stored: Stored, remaining: Callable[[], float]) -> int:
        """Cancel the tasks below a cancelled one, as the time allows; how many of their items are left, at most."""
        left = 0
        for child in stored.record.open_children:
            with suppress(NoSuchTask):
                left += self.cancel(child, max(0.0, remaining()), running=stored.record.stops_running)
        return left

    def withdraw(self, stored: Stored, remaining: Callable[[], float], patience: float = 0.0) -> int:
        """Delete waiting items of the task from this app's queues while there is time; how many are left, at most.

        It waits for items that a move between shards has under way, unless the move rests longer than `patience`. An
        app deletes only from its own queues, so an item of another queue is left to an app that has it. Raises
        QueueMismatch.
        """
        from lowkiq_lambda.tasks.cancelling import withdraw  # noqa: PLC0415 - few processes cancel anything

        own_queues = [self.core.queues[name] for name in stored.record.queues if name in self.core.queues]
        queues = [self.core.queues.agreed(queue.worker) for queue in own_queues]
        clock = self.core.backend.clock
        stands_since, before = clock.monotonic(), None
        while True:
            items = self.items_of(stored)
            are_withdrawn = withdraw(items, queues, remaining, stops_running=stored.record.stops_running)
            if self._have_stayed(items) and are_withdrawn:
                return 0
            counts = items.counts()
            if remaining() <= 0 or clock.monotonic() - stands_since >= patience:
                return counts.by_status["enqueued"]
            if counts != before:
                before, stands_since = counts, clock.monotonic()
            clock.sleep(max(0.0, min(MOVE_POLL, remaining())))

    def _have_stayed(self, items: TaskItems) -> bool:
        """Whether the queues have the shards that were looked at, and no move took items to one that had been."""
        # Each is asked, and so learned.
        are_settled = [self.places.have_stayed({name: layout}) for name, layout in items.layouts.items()]
        layouts = self.places.layouts({name: layout.after for name, layout in items.layouts.items()})
        return all(are_settled) or [*map(_move_of, layouts.values())] == [*map(_move_of, items.layouts.values())]

    def progress(self, task_id: str, errors: int = 0) -> Progress:
        """How far the task has come, with so many items that failed. Raises ValueError."""
        value: object = errors
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= errors <= MOST_ERRORS:
            raise ValueError(f"errors must be from 0 to {MOST_ERRORS}, not {errors!r}.")
        stored = self.records.get(task_id)
        counts, listed = self.items_of(stored).counts_and_errors(errors)
        return self._progress(self.look(stored, counts), counts, listed)

    def items(self, task_id: str, status: Status | None, after: str | None, limit: int) -> ItemPage:
        """A page of items. Raises ValueError."""
        return item_page(self.items_of(self.records.get(task_id)), status, after, limit)

    def look(self, stored: Stored, counts: ItemCounts | None = None, *, has_failed: bool = False) -> Stored:
        """The task, completed if it is complete. That it could not be is logged: the next look tries again."""
        try:
            return self.completion.look(stored, counts, has_failed=has_failed)
        except LowkiqError as error:
            self.log("a task could not be completed: %s", stored, error)
            return stored

    def log(self, text: str, stored: Stored, error: LowkiqError) -> None:
        """Log an error of a task that the next look tries again."""
        logger.warning(text, headline(error), extra={"task": stored.id, "task_name": stored.record.name})

    def _progress(self, stored: Stored, counts: ItemCounts, errors: tuple[ItemError, ...]) -> Progress:
        record = stored.record
        text = repr((record.version, record.state, *counts.by_status.items(), counts.revived, len(errors)))
        age = self.records.now() - record.created_at
        shortest, longest = POLLS
        return Progress(
            id=stored.id,
            name=record.name,
            state=record.state,
            counts=dict(counts.by_status),
            created_at=record.created_at,
            closed_at=record.closed_or_cancelled_at,
            cancelled_at=record.cancelled_at,
            completed_at=record.completed_at,
            expires_at=record.expires_at,
            failed_at=record.failed_at,
            succeeded_at=record.succeeded_at,
            parent=record.parent,
            children=record.children,
            errors=errors,
            version=sha256(text.encode()).hexdigest()[:16],
            next_poll=None if record.is_over else min(longest, max(shortest, age * POLL_SHARE)),
        )


def _move_of(layout: Layout) -> tuple[int, int, int]:
    """Of what shards and what move it tells, however far that has come."""
    return layout.before, layout.after, layout.epoch


class TaskRunsReply(ReplyShape, frozen=True):
    """The reply of task_runs.lua."""

    scripts = ("task_runs",)
    runs: int


def runs_in(core: "Core", task_id: str) -> bool:
    """Whether a handler of this thread, or coroutine, has an item of the task in flight. Raises BackendError."""
    queue_name, batch = running.get() or ("", None)
    queue = core.queues.get(queue_name)
    if queue is None or batch is None or batch.is_closed:
        return False
    ids = [*batch]
    # A batch is of one shard.
    shard = queue.shards.home_of(ids[0]).using((TRACKING,))
    reader = ShardReader(core.backend, core.config.redis_retry_for)
    (reply,) = reader.ask_each("task_runs", [(shard, (id_bytes(task_id), *ids))])
    return bool(TaskRunsReply.of(reply).runs)
