"""Jobs that count, as those of job-iteration's tests do: each item is noted, and so is each begin and end."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lowkiq_lambda import BatchJob, Lowkiq, Worker
from lowkiq_lambda.iterate import sequence
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.workers import declare


class CountingItems:
    """Jobs over a loop; `before` is called with each item, and may raise. `notes` has what ran, in order."""

    def __init__(self, loop_of: Callable[[Any], Iterable[tuple[Any, Any]]], before: Any = lambda _item: None) -> None:
        self.loop_of = loop_of
        self.before = before
        self.items: list[Any] = []
        self.notes: list[str] = []

    def perform_job(self, job: BatchJob) -> Iterator[Any]:
        """The items that are left."""
        if job.is_first_run:
            self.notes.append("start")
        try:
            for item, cursor in job.follow(self.loop_of(job.cursor)):
                self.before(item)
                self.items.append(item)
                yield cursor
        finally:
            self.notes.append("shutdown")
        self.notes.append("complete")


def times(count: int) -> Callable[[Any], Iterable[tuple[int, int]]]:
    """A loop of so many numbers."""
    return lambda after: sequence(range(count), after)


class RunEvents:
    """An observer: what each settling says of runs of jobs with a cursor."""

    def __init__(self, app: Lowkiq) -> None:
        self.runs: list[tuple[str, bool, int, str]] = []
        self.seconds: list[float] = []
        app.observers.append(self)

    def settled(self, event: SettledEvent) -> None:
        """Note the outcome, whether it was resumed, its items and the last reason."""
        for job_id, run in event.cursor_runs.items():
            self.runs.append((event.outcomes[job_id], run.resumed, run.items, run.progress.reason))
            self.seconds.append(run.progress.seconds)


def start(app: Lowkiq, queue_name: str, counting: Any, **fields: Any) -> type[Worker]:
    """A queue with one such job, with the payload 5; a stopped job goes on after a second, so not in the same drain."""

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        yield from counting.perform_job(job)

    worker = declare(app, queue_name, Notes(), **{"perform_job": perform_job, "resume_in": 1, **fields})
    worker.push_many([{"id": "a", "payload": 5}])
    return worker


def drain(app: Lowkiq, clock: ManualClock, often: int = 1) -> list[dict[str, int]]:
    """The counts of drains; after each of them, what waits for its retry becomes due."""
    counts = []
    for _ in range(often):
        counts.append(dict(app.drain()))
        clock.advance(100)
    return counts
