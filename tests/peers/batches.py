"""A worker of jobs that end as their ids say, and a worker of callbacks that notes what it was told."""

from typing import TYPE_CHECKING, Any

from lowkiq_lambda import Lowkiq, Rejected, Worker
from lowkiq_lambda.tasks.task import Task
from tests.kit.handlers import Notes
from tests.kit.workers import declare

if TYPE_CHECKING:
    from collections.abc import Callable


class Batches:
    """Jobs whose ids begin with "failing" are dead at once until they are `repaired`; with "rejected" they fail."""

    def __init__(self, app: Lowkiq, name: str) -> None:
        self.app = app
        self.handler = Notes(self._perform)
        self.told = Notes()
        self.is_repaired = False
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.worker = declare(app, name, self.handler, max_retry_count=0, batch_size=10)
        self.callback: type[Worker] = declare(app, f"{name}-callbacks", self.told)

    def _perform(self, batch: Any) -> None:
        for job_id in batch:
            if act := self.meanwhile.pop(job_id, None):
                act()
            if job_id.startswith("rejected"):
                batch.fail(job_id, Rejected("not qualified"))
            elif job_id.startswith("failing") and not self.is_repaired:
                batch.fail(job_id, OSError("no connection"))

    def task(self, name: str, parent: Task | None = None, **more: Any) -> Task:
        """A task with all callbacks, whose payloads are name and event."""
        make = parent.task if parent else self.app.task
        return make(
            name,
            (self.callback, [name, "complete"]),
            on_success=(self.callback, [name, "success"]),
            on_failure=(self.callback, [name, "failure"]),
            **more,
        )

    def push(self, task: Task, *ids: str) -> None:
        """Jobs of these ids."""
        task.push_many(self.worker, [{"id": one} for one in ids])

    def drain(self) -> None:
        """Until nothing is due, callbacks of callbacks too."""
        for _ in range(3):
            self.app.drain()

    @property
    def events(self) -> list[str]:
        """Of all callbacks that ran, "name event"; sorted, as those of two tasks have no order."""
        own = [payload for batch in self.told.batches for payloads in batch.values() for payload in payloads]
        return sorted(" ".join(one) for one in own)
