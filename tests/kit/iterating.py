"""Jobs with a cursor that record their runs and items."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lowkiq_lambda import BatchJob, Lowkiq, Worker
from tests.kit.handlers import Notes
from tests.kit.workers import declare


class Begun(NamedTuple):
    """How a run of a job began."""

    id: str
    cursor: Any
    payloads: list[Any]


class Items:
    """Jobs of so many items. `before` is called with the job and the item's number before each, and may raise.

    The cursor is the number of the next item. `runs`, `done` and `ended` tell what ran, in order.
    """

    def __init__(self, count: int, before: Callable[[BatchJob, int], object] | None = None) -> None:
        self.count = count
        self.before = before
        self.runs: list[Begun] = []
        self.done: list[tuple[str, int]] = []
        self.ended: list[str] = []
        self.closed = 0
        self.exhausted = Notes()

    def perform_job(self, job: BatchJob) -> Iterator[int]:
        """The items that are left."""
        self.runs.append(Begun(job.id, job.cursor, list(job.payloads)))
        try:
            for item in range(job.cursor or 0, self.count):
                if self.before:
                    self.before(job, item)
                self.done.append((job.id, item))
                yield item + 1
        finally:
            self.closed += 1
        self.ended.append(job.id)

    def of(self, job_id: str) -> list[int]:
        """The items of one job, in order."""
        return [item for owner, item in self.done if owner == job_id]

    @property
    def cursors(self) -> list[Any]:
        """Where each run began."""
        return [run.cursor for run in self.runs]


def declare_items(app: Lowkiq, queue_name: str, items: Items, **fields: Any) -> type[Worker]:
    """A worker of one shard, whose jobs are these items, with retries after 10, 20, 30 ... seconds."""

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        yield from items.perform_job(job)

    return declare(app, queue_name, items.exhausted, **{"perform_job": perform_job, **fields})
