"""One batch of a coroutine handler, to what came of each of its ids: as `perform.py`, awaited."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from lowkiq_lambda.base.error_text import call_safely, is_a
from lowkiq_lambda.base.errors import HandlerError, Rejected
from lowkiq_lambda.base.forks import awaited_in_parent_alone
from lowkiq_lambda.declare.worker import Worker, in_seconds
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.engine.perform import Performer, interruptions, is_failure, log_failure, returned
from lowkiq_lambda.jobs.retry import Later
from lowkiq_lambda.settings.protocols import ServerMiddleware, compose

NOT_AWAITED: Final = "The handler was not run: each server middleware must return await call_next()."


async def call(
    performer: Performer, middlewares: Sequence[ServerMiddleware], batch: Batch
) -> tuple[BaseException | None, BaseException | None]:
    """Await the handler within the server middlewares, coroutine functions all; the arguments of `Performer.end`."""
    within = AwaitedCall()
    error: BaseException | None = None
    try:
        if middlewares:
            dispose(await awaited_in_parent_alone(compose(middlewares, within.run)(performer.worker(), batch)))
            error = None if within.has_begun else HandlerError(NOT_AWAITED)
        else:
            await call_handler(performer.worker(), batch)
    except BaseException as raised:  # noqa: BLE001 - the outcome has it, and the log if it is a failure
        outcome = error = told(raised)
        if is_failure(performer.worker, outcome):
            log_failure("a batch failed", performer.worker, list(batch), outcome)
    return error, within.exited


class AwaitedCall:
    """The call of a handler within the server middlewares, which may make it, leave it, or make it again."""

    def __init__(self) -> None:
        self.has_begun = False
        self.exited: BaseException | None = None
        """The exception that ended the handler without a failure, even if a middleware changed it."""

    async def run(self, worker: Worker, batch: Batch) -> object:
        """As `call_handler`."""
        self.has_begun, self.exited = True, None
        try:
            return await call_handler(worker, batch)
        except interruptions() as error:
            self.exited = error
            raise


async def call_handler(worker: Worker, batch: Batch) -> object:
    """Await `perform` with the batch, or `perform_job` with each of its jobs."""
    perform: Callable[[Batch], Coroutine[Any, Any, object]] | None = getattr(worker, "perform", None)
    if perform is not None:
        return returned(await _limited(worker, perform(batch)))
    for job_id in batch.jobs_to_run():
        await _perform_job(worker, batch, job_id)
    return None


def _limited(worker: Worker, call: Awaitable[object]) -> Awaitable[object]:
    """The call in this process alone, and within the worker's `max_run_time`, if it has one."""
    alone = awaited_in_parent_alone(call)
    return alone if worker.max_run_time is None else _in_time(in_seconds(worker.max_run_time), alone)


async def _in_time(seconds: float, call: Awaitable[object]) -> object:
    """The result of the call. Raises TimeoutError if it takes longer."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await call
    except TimeoutError:
        # The handler may have had one of its own.
        if limit.expired():
            raise TimeoutError(f"ran longer than max_run_time = {seconds:g} s") from None
        raise


async def _perform_job(worker: Worker, batch: Batch, job_id: str) -> None:
    perform_job: Callable[[Any], Coroutine[Any, Any, object]] = worker.perform_job  # type: ignore[attr-defined]  # checked at declaration
    try:
        returned(await _limited(worker, perform_job(batch.job(job_id))), worker)
    except Later as later:
        batch.put_off(job_id, later)
    except Rejected as failed:
        batch.fail(job_id, failed)
    except BaseException as raised:  # noqa: BLE001 - the outcome has it, and the log if it is a failure
        error = told(raised)
        if is_a(error, interruptions()):
            raise error from None
        if is_failure(worker, error):
            log_failure("a job failed", worker, [job_id], error)
        batch.fail(job_id, error)
    else:
        batch.done(job_id)


def dispose(result: object) -> None:
    """Close what a middleware returned in place of its result: Python would warn of it, far from the place."""
    if inspect.iscoroutine(result):
        result.close()


def told(error: BaseException) -> BaseException:
    """The outcome of a handler that raised `error`: an interruption, too, if that broke off a cancelled handler.

    A time-out of the handler's own is not an interruption: it takes its cancellation back.
    """
    if is_a(error, interruptions()):
        return error
    text, broken = call_safely(_told, error)
    # An error that cannot be read counts as a failure, whatever its origin.
    return error if broken is not None or text is None else text


def _told(error: BaseException) -> BaseException:
    if is_a(error, BaseExceptionGroup) and error.split(interruptions())[1] is None:
        return _first_leaf(error)
    task = asyncio.current_task()
    if task is not None and task.cancelling() and _came_of_cancelling(error):
        return asyncio.CancelledError()
    return error


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _came_of_cancelling(error: BaseException) -> bool:
    visited: set[int] = set()
    before: BaseException | None = error
    while before is not None and id(before) not in visited:
        if isinstance(before, asyncio.CancelledError):
            return True
        visited.add(id(before))
        before = before.__context__
    return False
