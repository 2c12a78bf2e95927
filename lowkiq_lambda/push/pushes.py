"""The pushes of an app, within its client middlewares: all ways to push go through this."""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from lowkiq_lambda.base.errors import BackendUnavailable, DeclarationError, JobError
from lowkiq_lambda.declare.declaring import in_notebook
from lowkiq_lambda.declare.options import Job
from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import Worker, worker_of
from lowkiq_lambda.engine.queue import QueueRegistry
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.protocols import ClientMiddleware, Jobs, compose

if TYPE_CHECKING:
    from lowkiq_lambda.push.clients import PushClients
    from lowkiq_lambda.store.shard.waking import Waker

logger = logging.getLogger(__name__)
_warned_of_loop = False


class Pushes:
    """The pushes of one app.

    `clients`: the clients that push to the queues, made at the first call; `made_clients`: the same, if there are any;
    `waker`: what starts drains of the shards.
    """

    def __init__(
        self,
        queues: QueueRegistry,
        config: Callable[[], Config],
        *,
        clients: "Callable[[], PushClients]",
        made_clients: "Callable[[], PushClients | None]",
        waker: "Callable[[], Waker | None]",
    ) -> None:
        self.middlewares: list[ClientMiddleware] = []
        self._queues = queues
        self._config = config
        self._clients = clients
        self._made_clients = made_clients
        self._waker = waker

    def push_many(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """Push jobs through the client middlewares, as `when_unavailable` says."""
        return push_through(self.middlewares, self._push, worker_of(worker), jobs)

    def push_or_raise(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """As `push_many`, but Redis has the jobs when this returns: else it raises, whatever `when_unavailable` says.

        For callers that can push again, and must know that they have to.
        """
        return push_through(self.middlewares, self.push_past_middlewares, worker_of(worker), jobs)

    def push_past_middlewares(self, worker: type[Worker[Any]], jobs: Jobs) -> list[Pushed]:
        """As `push_or_raise`, for jobs that have been through the client middlewares elsewhere."""
        # The jobs that this process buffered before go first.
        if self.flush(0.0):
            raise BackendUnavailable
        return self.clients.of(self._queues.agreed(worker)).push(jobs)

    async def apush_many(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """`push_many` in a thread, beside the event loop. If cancelled, the push goes on, and its result is lost."""
        return await self.clients.threads.run(partial(self.push_many, worker, list(jobs)))

    def flush(self, seconds: float) -> int:
        """Write the jobs that are buffered in this process; how many are left after so many seconds."""
        clients = self._made_clients()
        return clients.redelivery.flush(seconds) if clients and clients.redelivery else 0

    def give_up(self) -> None:
        """Hand to `on_lost` the jobs that are buffered: for a process that ends at once, without its exit handlers."""
        clients = self._made_clients()
        if clients and clients.redelivery:
            clients.redelivery.give_up()

    def end(self) -> None:
        """End the threads that push; jobs that are still buffered go to `on_lost`."""
        if clients := self._made_clients():
            clients.end()

    @property
    def clients(self) -> "PushClients":
        """The clients that push to the queues."""
        return self._clients()

    @property
    def waker(self) -> "Waker | None":
        """Starts drains of shards that jobs are pushed to, if the settings ask for it; it knows which it has woken."""
        return self._waker()

    def _push(self, worker: type[Worker[Any]], jobs: Jobs) -> list[Pushed]:
        jobs = jobs if isinstance(jobs, list) else list(jobs)
        if self._config().when_unavailable != "raise":
            pushed = self.clients.reliable(self._queues.of(worker)).push(jobs)
        else:
            pushed = self.clients.of(self._queues.agreed(worker)).push(jobs)
        raise_conflicts(worker, jobs, pushed)
        return pushed


def raise_conflicts(worker: type[Worker[Any]], jobs: Sequence[Mapping[str, Any]], pushed: Sequence[Pushed]) -> None:
    """Raise Conflict if a job was dropped that asks for it."""
    if any(one.dropped for one in pushed):
        from lowkiq_lambda.push.conflicts import raise_conflicts  # noqa: PLC0415 - few pushes can be dropped

        raise_conflicts(worker, jobs, pushed)


def push_through(
    middlewares: Sequence[ClientMiddleware],
    push: Callable[[type[Worker[Any]], Jobs], list[Pushed]],
    worker: type[Worker[Any]],
    jobs: Jobs,
) -> list[Pushed]:
    """`push_within`, which says once in a process that it blocks an event loop."""
    _warn_if_on_loop(worker.__name__)
    return push_within(middlewares, push, worker, jobs)


def push_within(
    middlewares: Sequence[ClientMiddleware],
    push: Callable[[type[Worker[Any]], Jobs], list[Pushed]],
    worker: type[Worker[Any]],
    jobs: Jobs,
) -> list[Pushed]:
    """The result of `push` within the middlewares, or an error of one of them. Raises DeclarationError."""
    value: object = jobs
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise JobError(f"jobs are given as a list, not as one {type(value).__name__}: write [{{...}}]")
    if worker.payload is not None:
        push = _typed(push)
    # A middleware may change what it is given, which a Job does not let it do.
    value = [dict(job) if type(job) is Job else job for job in jobs]
    pushed: list[Pushed] | CoroutineType[Any, Any, Any] = compose(middlewares, push)(worker, value)
    if isinstance(pushed, CoroutineType):
        pushed.close()
        raise DeclarationError("A client middleware is a coroutine function: around a push all are plain functions.")
    return pushed


def _typed(
    push: Callable[[type[Worker[Any]], Jobs], list[Pushed]],
) -> Callable[[type[Worker[Any]], Jobs], list[Pushed]]:
    """`push`, for jobs whose payloads are of a declared type: from there on they are JSON values."""
    from lowkiq_lambda.declare.payloads import plain_jobs  # noqa: PLC0415 - only where a type is declared: cold start

    return lambda worker, jobs: push(worker, plain_jobs(worker.payload, jobs))


def _warn_if_on_loop(name: str) -> None:
    """Say once in a process that a push blocks the event loop on whose thread it was called."""
    global _warned_of_loop  # noqa: PLW0603 - once in a process
    if _warned_of_loop:
        return
    # If asyncio is not imported, no loop runs: a cold start need not import it. The public function raises without a
    # running loop, which costs a push more than this.
    running_loop = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    if running_loop is not None and running_loop() is not None and not in_notebook():
        _warned_of_loop = True
        sentence = "a push to %s blocks the event loop: write `await %s.apush(...)` or `await %s.apush_many(...)`"
        logger.warning(sentence, name, name, name)
