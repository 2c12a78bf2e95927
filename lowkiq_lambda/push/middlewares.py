"""A push within the client middlewares of its app: what every way to push goes through."""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CoroutineType
from typing import Any, TypeAlias

from lowkiq_lambda.base.errors import DeclarationError, JobError
from lowkiq_lambda.declare.worker import Job, Worker
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.settings.protocols import ClientMiddleware, compose

Jobs: TypeAlias = Iterable[Mapping[str, Any]]

logger = logging.getLogger(__name__)
_warned_of_loop = False


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
    if running_loop is not None and running_loop() is not None:
        _warned_of_loop = True
        logger.warning("%s.push_many blocks the event loop: write `await %s.apush_many(...)`", name, name)
