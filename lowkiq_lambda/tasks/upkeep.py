"""Background work on tasks: completion, cancels, verification, and removal."""

from collections import Counter
from collections.abc import Callable
from random import randint
from typing import TYPE_CHECKING, Final, TypeAlias

from lowkiq_lambda.base.errors import BackendError, LowkiqError
from lowkiq_lambda.tasks.operations import TaskOperations
from lowkiq_lambda.tasks.record import Stored

if TYPE_CHECKING:
    from lowkiq_lambda.tasks.views import ChildState

Remaining: TypeAlias = Callable[[], float]
"""Seconds."""
MOST_AT_ONCE: Final = 200
"""Tasks that one run looks at; the others have waited less."""
VERIFIED_EVERY: Final = 3_600.0
"""Seconds after the last push, and between two verifications."""
FORGOTTEN_AT_ONCE: Final = 1_000


class Upkeep:
    """One run of the duty "tasks": counts what it did, by words for the summary."""

    def __init__(self, operations: TaskOperations) -> None:
        self._operations = operations
        self._records = operations.records
        self._done: Counter[str] = Counter()

    def run(self, remaining: Remaining) -> dict[str, int]:
        """Look at open tasks, the one with the oldest look first, and forget tasks that are over.

        A problem with one task is logged, and the other tasks still have their turn. Raises BackendError.
        """
        # Apps that share a server take turns: because the numbers differ, no app always gets the same tasks.
        most = randint(MOST_AT_ONCE // 2, MOST_AT_ONCE)  # noqa: S311 - as said above
        open_tasks, over = self._records.look(most)
        forgotten = {stored.id for stored in over}
        going_on = [stored for stored in open_tasks if stored.id not in forgotten]
        for act, tasks in ((self._look, going_on), (self._forget, over)):
            for stored in tasks:
                if remaining() <= 0:
                    return dict(self._done)
                self._try(act, stored, remaining)
        return dict(self._done)

    def _try(self, act: Callable[[Stored, Remaining], None], stored: Stored, remaining: Remaining) -> None:
        try:
            act(stored, remaining)
        except BackendError:
            raise
        except LowkiqError as error:
            self._operations.log("a task could not be looked after: %s", stored, error)
            self._done["problems"] += 1

    def _look(self, stored: Stored, remaining: Remaining) -> None:
        self._done["looked"] += 1
        if stored.record.state == "cancelled":
            self._operations.cancel_children(stored, remaining)
            self._operations.withdraw(stored, remaining)
        if self._operations.look(stored).record.is_over:
            self._done["completed"] += not stored.record.is_over
        elif self._records.now() - self._verified_at(stored) >= VERIFIED_EVERY:
            self._verify(stored, remaining)

    def _verified_at(self, stored: Stored) -> float:
        return max(stored.record.last_change, stored.record.verified_at or 0.0)

    def _verify(self, stored: Stored, remaining: Remaining) -> None:
        """Each open item must belong to a job that exists: otherwise a key was evicted, or deleted by hand."""
        items = self._operations.items_of(stored)
        if not self._operations.places.have_stayed(items.layouts):
            # A moving item is in two shards, or in no shard, for a moment.
            return
        missing, is_through = items.verify(remaining)
        if missing:
            self._done["lost"] += missing
        if is_through:
            self._records.swap(stored, stored.record.changed(verified_at=self._records.now()))

    def _forget(self, stored: Stored, remaining: Remaining) -> None:
        """The mark comes first, because a marked task takes no pushes."""
        if stored.record.expires_at > self._records.now():
            return
        if not self._operations.places.have_stayed(self._operations.items_of(stored).layouts):
            return
        if stored.record.completed_at is None and not stored.record.expired:
            if self._waits_for_children(stored):
                return
            self._operations.completion.tell_parent(stored, "abandoned")
        marked = stored if stored.record.expired else self._records.swap(stored, stored.record.changed(expired=True))
        if marked and self._operations.items_of(marked).forget(FORGOTTEN_AT_ONCE, remaining):
            self._records.swap(marked, None)
            self._done["forgotten"] += 1
            self._operations.completion.look_at_parent(marked)

    def _waits_for_children(self, stored: Stored) -> bool:
        """Whether tasks below it go on: then it is kept as if it had been pushed to now."""
        is_there = {child: self._records.has(child) for child in stored.record.open_children}
        if not is_there:
            return False
        gone: dict[str, ChildState] = {child: "abandoned" for child, there in is_there.items() if not there}
        children = {**stored.record.children, **gone}
        self._records.swap(stored, stored.record.changed(pushed_at=self._records.now(), children=children))
        return True
