"""The arguments and errors of handlers, and the outcome of each id, in the order in which they happened."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.jobs.job import JobView, MorgueJob, Outcome
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.testing.crashes import Crashes

in_handler: Final[ContextVar[bool]] = ContextVar("in_handler", default=False)
"""Whether this code runs in a handler that a drain of a test has called."""


class JobFailed(AssertionError):
    """A job failed in a drain of a test, and no exception tells of it: the text has the error that is kept."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did: lists of ids in the order in which it happened; one that had an outcome twice stands twice.

    `done`; `retried`: failed, and waits to be tried again; `dead`: failed for the last time; `blocked` for a dead head;
    `rejected`: ended with `Rejected`; `discarded`: a rule of the worker dropped a payload; `expired`: their time was
    over; `cancelled`: an operator stopped them for good; `interrupted`: went back as they were; `later`: go on later;
    `suspected`: run alone before a failure counts.
    `recovered`: a dead process had them, and handlers were given them again. `calls`: what handlers were given, (id,
    payloads) for each.
    """

    done: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    interrupted: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    suspected: list[str] = field(default_factory=list)
    recovered: list[str] = field(default_factory=list)
    calls: list[tuple[str, list[Any]]] = field(default_factory=list)

    def note(self, job_id: str, outcome: Outcome) -> None:
        """An id had this outcome."""
        getattr(self, "interrupted" if outcome == "returned" else outcome).append(job_id)


class Watcher:
    """An observer, and a server middleware, which fill what `drained` is."""

    def __init__(self, crashes: Crashes) -> None:
        self._crashes = crashes
        self.drained = Drained()
        self.errors: dict[tuple[str, str], BaseException] = {}
        """What handlers raised, by queue and id."""
        self.failed: list[tuple[str, str]] = []
        """Queue and id of what failed."""

    @contextmanager
    def watching(self, app: Lowkiq) -> Iterator[None]:
        """In the block it sees what is performed. No drain may be under way when it begins or ends."""
        app.observers.append(self)
        # The innermost, which sees what the handler does.
        app.server_middlewares.append(self)
        try:
            yield
        finally:
            app.server_middlewares.remove(self)
            app.observers.remove(self)

    def failure(self, app: Lowkiq) -> BaseException:
        """What the first handler raised that raised something; else the error that is kept of the first failed id."""
        for place in self.failed:
            if place in self.errors:
                return self.errors[place]
        queue_name, job_id = self.failed[0]
        queue = app.operate(app.core.queues[queue_name].worker)
        failures: list[JobView | MorgueJob] = [*queue.waiting.fetch([job_id]), *queue.morgue.fetch([job_id])]
        text = next((job.error for job in failures if job.error), "its error is not kept")
        return JobFailed(f"{queue_name}, id {job_id!r}, failed: {text}")

    def settled(self, event: SettledEvent) -> None:
        """Note the outcomes."""
        for job_id, outcome in event.outcomes.items():
            self.drained.note(job_id, outcome)
            if outcome in ("retried", "dead", "blocked"):
                self.failed.append((event.queue_name, job_id))

    def __call__(self, worker: Worker[Any], batch: Batch[Any], call_next: Callable[..., Any]) -> Any:  # noqa: ANN401 - what the handler returns
        """Around plain handlers."""
        with self._around(worker, batch) as is_dead:
            return None if is_dead else call_next()

    async def awaited(
        self,
        worker: Worker[Any],
        batch: Batch[Any],
        call_next: Callable[..., Awaitable[Any]],
    ) -> Any:  # noqa: ANN401 - what the handler returns
        """Around coroutine handlers."""
        with self._around(worker, batch) as is_dead:
            return None if is_dead else await call_next()

    @contextmanager
    def _around(self, worker: Worker[Any], batch: Batch[Any]) -> Iterator[bool]:
        if self._crashes.crashing.get(worker.queue_name) == "before_handler":
            yield True
            return
        for job_id, payloads in batch.items():
            self.drained.calls.append((job_id, payloads))
            if batch.job(job_id).repeated:
                self.drained.recovered.append(job_id)
        token = in_handler.set(True)
        try:
            yield False
        except BaseException as error:
            for job_id in batch:
                self.errors[worker.queue_name, job_id] = error
            raise
        finally:
            in_handler.reset(token)
            for job_id, marked in batch.failed.items():
                if isinstance(marked, BaseException):
                    self.errors[worker.queue_name, job_id] = marked
