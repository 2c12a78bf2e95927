"""When a task is complete, has failed or succeeded, and the jobs that are pushed then.

An item is open or has ended, and only its shard has that state; no call sees all shards at one moment. So a reader
counts twice: if all items had ended in the first wave, and the second wave finds the very same, then there was a moment
between the two at which no item was open. After that, only code outside the task could add an item, and a closed task
rejects those pushes. The record that the reader replaces is still the one that it read before both waves, so no queue
and no item came to the task meanwhile, and no task below it, as these stand there with their states. Nor did a queue
move to other shards (places.py).
tests/tasks/test_model.py tries all orders of these steps.
"""

import logging
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.base.errors import LowkiqError, NoSuchTask
from lowkiq_lambda.jobs.job import ALWAYS
from lowkiq_lambda.store.shard.codec import load_json
from lowkiq_lambda.tasks.items import ItemCounts, TaskItems
from lowkiq_lambda.tasks.places import Places
from lowkiq_lambda.tasks.record import COMPLETING, Callback, Stored, TaskRecord, TaskRecords
from lowkiq_lambda.tasks.views import ChildState

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core

logger = logging.getLogger(__name__)

RECEIPT_TTL: Final = 60 * 86_400.0
"""Seconds for which the callback is remembered: longer than any record that is still `completing`."""

ItemsOf = Callable[[Stored], TaskItems]


class Completion:
    """Completes tasks of one app, whenever a caller looks at them."""

    def __init__(self, core: "Core", records: TaskRecords, items_of: ItemsOf, places: Places) -> None:
        self._core = core
        self._places = places
        self._records = records
        self._items_of = items_of

    def look(self, stored: Stored, counts: ItemCounts | None = None, *, has_failed: bool = False) -> Stored:
        """The task as it stands, completed if it is complete. Raises BackendError, QueueMismatch.

        `counts`: its items, if they were counted after it was read. `has_failed`: an item is known to have failed.
        """
        if stored.record.awaits_failure:
            counts = counts or (None if has_failed else self._items_of(stored).counts())
            if has_failed or (counts and counts.has_failures):
                # The counts are older than this record.
                stored, counts = self._fail(stored), None
        record = stored.record
        if record.is_over:
            return self._succeed(stored)
        if record.is_open or not (record.state == "cancelled" or self._can_push(record.callback)):
            return stored
        if record.state == "completing":
            return self._push_again(stored)
        items = self._items_of(stored)
        first = items.counts() if counts is None else counts
        if first.open or record.open_children or first != items.counts() or not self._places.have_stayed(items.layouts):
            return stored
        return self._succeed(self._complete(stored))

    def _can_push(self, callback: Callback | None) -> bool:
        """Whether this app can push what there is to be pushed; else another one has to."""
        return callback is None or callback.queue_name in self._core.queues

    def _complete(self, stored: Stored) -> Stored:
        record = stored.record
        if record.state == "cancelled" or (record.callback is None and record.parent is None):
            return self._end(stored)
        marked = self._records.swap(stored, record.changed(completing_at=self._records.now()))
        return self._push_and_end(marked) if marked else self._records.get(stored.id)

    def _push_again(self, stored: Stored) -> Stored:
        """Push the callback again if the process that marked the task has not confirmed its push in time."""
        now = self._records.now()
        if now - (stored.record.completing_at or 0.0) < COMPLETING:
            return stored
        marked = self._records.swap(stored, stored.record.changed(completing_at=now))
        return self._push_and_end(marked) if marked else self._records.get(stored.id)

    def _push_and_end(self, stored: Stored) -> Stored:
        self._push(stored, stored.record.callback, "")
        return self._end(stored)

    def _end(self, stored: Stored) -> Stored:
        """The parent is told before: nobody looks at a task that is over."""
        state: ChildState = "cancelled" if stored.record.state == "cancelled" else "completed"
        self.tell_parent(stored, state)
        ended = stored.record.changed(completed_at=self._records.now())
        after = self._records.swap(stored, ended) or self._records.get(stored.id)
        self.look_at_parent(stored)
        return after

    def _push(self, stored: Stored, callback: Callback | None, end: str) -> None:
        """The receipt of its key absorbs a repeated push."""
        if callback is None:
            return
        worker = self._core.queues[callback.queue_name].worker
        load = self._core.config.load_payload or load_json
        # The callbacks of a task have one id: with `unique` of their worker the later ones would be dropped.
        job = {"id": stored.id, "payload": load(b64decode(callback.payload)), "unless": ALWAYS}
        self._core.pushes.push_or_raise(worker, [{**job, "key": f"task:{stored.id}{end}", "key_ttl": RECEIPT_TTL}])

    def _fail(self, stored: Stored) -> Stored:
        """Push `on_failure` of the task and of those above it; it is noted once all of them are pushed.

        So where a process dies, or the queue is another app's, the next look does it again.
        """
        is_told = self._fail_parent(stored.record.parent)
        if not self._can_push(stored.record.failure):
            return stored
        self._push(stored, stored.record.failure, ":failure")
        now = self._records.now()
        return self._records.change(stored.id, lambda record: record.changed(failed_at=now)) if is_told else stored

    def _fail_parent(self, parent_id: str | None) -> bool:
        parent = self._there(parent_id)
        return parent is None or not parent.record.awaits_failure or not self._fail(parent).record.awaits_failure

    def _succeed(self, stored: Stored) -> Stored:
        """Push `on_success` if the task is complete, and all of it ended well.

        One wave is enough: a complete task takes no pushes, and an item that has ended well stays so.
        """
        record = stored.record
        is_good = record.awaits_success and all(state == "succeeded" for state in record.children.values())
        if not is_good or not self._can_push(record.success):
            return stored
        items = self._items_of(stored)
        if not items.counts().are_good or not self._places.have_stayed(items.layouts):
            return stored
        self._push(stored, record.success, ":success")
        self.tell_parent(stored, "succeeded")
        now = self._records.now()
        after = self._records.change(stored.id, lambda record: record.changed(succeeded_at=now))
        self.look_at_parent(stored)
        return after

    def tell_parent(self, stored: Stored, state: ChildState) -> None:
        """Note the state of the task in the record above it, if there is one. Raises BackendError."""

        def change(record: TaskRecord) -> TaskRecord:
            before = record.children.get(stored.id)
            is_later = before == "open" or (before == "completed" and state == "succeeded")
            return record.changed(children={**record.children, stored.id: state}) if is_later else record

        if stored.record.parent is not None:
            with suppress(NoSuchTask):
                self._records.change(stored.record.parent, change)

    def look_at_parent(self, stored: Stored) -> None:
        """Complete the task above it, if that is complete now; the duty does where this fails."""
        with suppress(LowkiqError):
            parent = self._there(stored.record.parent)
            if parent:
                self.look(parent)

    def _there(self, task_id: str | None) -> Stored | None:
        if task_id is None:
            return None
        try:
            return self._records.get(task_id)
        except NoSuchTask:
            return None
