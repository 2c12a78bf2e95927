"""An id of a worker, to which jobs are pushed that ask whether it has work."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lowkiq_lambda import Lowkiq, Pushed, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.workers import declare

T = TypeVar("T")


class Case:
    """A worker of one id, 7, whose handler pushes while it runs, if the test says so."""

    def __init__(self, app: Lowkiq, clock: ManualClock, queue_name: str, **fields: Any) -> None:
        self.app, self.clock = app, clock
        self.notes = Notes()
        self.worker = declare(app, queue_name, self.notes, **fields)

    def push(self, payload: object = "new", **options: Any) -> Pushed:
        """One job of the id."""
        return self.worker.push(7, payload, **options)

    @property
    def ran(self) -> list[object]:
        """The payloads that were handed over, in order."""
        return [payload for batch in self.notes.batches for payload in batch.get("7", [])]

    @property
    def waiting(self) -> list[object]:
        """The payloads that wait under the id."""
        job = look(self.app, self.worker, "7")
        return [payload for payload, _ in job.payloads] if job else []

    def while_running(self, call: Callable[[], T]) -> T:
        """What the call returns while the id runs for the first time, and nothing waits under it."""
        results: list[T] = []

        def meanwhile(_batch: object) -> None:
            self.notes.then = None
            results.append(call())

        self.notes.then = meanwhile
        self.push("old")
        self.app.drain()
        return results[0]


class WatchingPushes:
    """An observer of pushes and of drains."""

    def __init__(self) -> None:
        self.conflicts: list[tuple[str, object, str]] = []

    def settled(self, _event: object) -> None:
        """Nothing."""

    def conflict(self, worker: type[Worker], job: Mapping[str, Any], pushed: Pushed) -> None:
        """Note the queue, the id and the reason."""
        self.conflicts.append((worker.queue_name, job["id"], pushed.dropped))
