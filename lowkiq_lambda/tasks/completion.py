"""When a task is complete, and the job that is pushed then.

An item is open or has ended, and only its shard has that state; no call sees all shards at one moment. So a reader
counts twice: if all items had ended in the first wave, and the second wave finds the very same, then there was a moment
between the two at which no item was open. After that, only code outside the task could add an item, and a closed task
rejects those pushes. The record that the reader replaces is still the one that it read before both waves, so no queue
and no item came to the task meanwhile. Nor did a queue move to other shards (places.py).
tests/tasks/test_model.py tries all orders of these steps.
"""

import logging
from base64 import b64decode
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.store.shard.codec import load_json
from lowkiq_lambda.tasks.items import ItemCounts, TaskItems
from lowkiq_lambda.tasks.places import Places
from lowkiq_lambda.tasks.record import COMPLETING, Stored, TaskRecords

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

    def look(self, stored: Stored, counts: ItemCounts | None = None) -> Stored:
        """The task as it stands, completed if it is complete. Raises BackendError, QueueMismatch.

        `counts`: its items, if they were counted after it was read.
        """
        record = stored.record
        if record.is_over or record.is_open or not self._has_callback(stored):
            return stored
        if record.state == "completing":
            return self._push_again(stored)
        items = self._items_of(stored)
        first = items.counts() if counts is None else counts
        if first.open or first != items.counts() or not self._places.have_stayed(items.layouts):
            return stored
        return self._complete(stored)

    def _has_callback(self, stored: Stored) -> bool:
        """Whether this app can push what there is to be pushed; else another one has to."""
        callback = stored.record.callback
        return callback is None or stored.record.state == "cancelled" or callback.queue_name in self._core.queues

    def _complete(self, stored: Stored) -> Stored:
        now = self._records.now()
        if stored.record.callback is None or stored.record.state == "cancelled":
            return self._swapped(stored, completed_at=now)
        marked = self._records.swap(stored, stored.record.changed(completing_at=now))
        return self._push(marked) if marked else self._records.get(stored.id)

    def _push_again(self, stored: Stored) -> Stored:
        """Push the callback again if the process that marked the task has not confirmed its push in time."""
        now = self._records.now()
        if now - (stored.record.completing_at or 0.0) < COMPLETING:
            return stored
        marked = self._records.swap(stored, stored.record.changed(completing_at=now))
        return self._push(marked) if marked else self._records.get(stored.id)

    def _push(self, stored: Stored) -> Stored:
        self._push_callback(stored)
        return self._swapped(stored, completed_at=self._records.now())

    def _push_callback(self, stored: Stored) -> list[Pushed]:
        """The receipt of its key absorbs a repeated push."""
        callback = stored.record.callback
        if callback is None:
            return []
        worker = self._core.queues[callback.queue_name].worker
        load = self._core.config.load_payload or load_json
        job = {"id": stored.id, "payload": load(b64decode(callback.payload))}
        return self._core.pushes.push_or_raise(worker, [{**job, "key": f"task:{stored.id}", "key_ttl": RECEIPT_TTL}])

    def _swapped(self, stored: Stored, *, completed_at: float) -> Stored:
        return self._records.swap(stored, stored.record.changed(completed_at=completed_at)) or self._records.get(
            stored.id
        )
