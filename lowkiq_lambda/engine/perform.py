"""One batch through decoding, middlewares and the handler, to what came of each of its ids."""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import msgspec

from lowkiq_lambda.base.error_text import call_safely, headline, is_a, own_error
from lowkiq_lambda.base.errors import HandlerError, Rejected
from lowkiq_lambda.base.forks import end_child_of, this_process
from lowkiq_lambda.declare.worker import Worker, is_generator, shard_index
from lowkiq_lambda.engine.batch import Batch, running
from lowkiq_lambda.engine.lease import HandlerContext, LimitedRun
from lowkiq_lambda.jobs.job import PLACE, Delivery
from lowkiq_lambda.jobs.retry import Later, asked_of

if TYPE_CHECKING:
    from lowkiq_lambda.engine.iteration import Iteration, Run

logger = logging.getLogger(__name__)

Chain: TypeAlias = Callable[[Worker, Batch], Any]
"""The server middlewares around `Performer.handle`, or the latter alone."""
PerformIteration: TypeAlias = Callable[[Callable[[str], Any], Worker, Batch, str], None]
LOGGED_IDS: Final = 10
"""How many ids a line of the log names."""
_LOGGED: Final = 100
"""Characters of an id that it has."""
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
NOT_CALLED: Final = "The handler was not run: each server middleware must call call_next."

Kinds: TypeAlias = tuple[type[BaseException], ...]


def interruptions() -> Kinds:
    """The exceptions that end a handler without a failure: its payloads go back.

    Only an id that exits several times in a row has failed.
    """
    return (SystemExit, KeyboardInterrupt, GeneratorExit, *_cancellation())


def hook_errors() -> Kinds:
    """The exceptions that a user's hook may raise without harm: the outcome that it got stands."""
    return (Exception, SystemExit, GeneratorExit, *_cancellation())


def no_failures() -> Kinds:
    """The exceptions of a handler that decide how its jobs go on, and are not errors."""
    return (*interruptions(), Later, Rejected)


def is_failure(worker: type[Worker[Any]] | Worker[Any], error: BaseException) -> bool:
    """Whether a handler's exception is a failure of its jobs, and not how they go on, or a reason to discard them."""
    if is_a(error, no_failures()) or not worker.on_error:
        return not is_a(error, no_failures())
    from lowkiq_lambda.declare.error_rules import is_discarded  # noqa: PLC0415 - only for workers with rules

    return not is_discarded(worker.on_error, error)


def _cancellation() -> Kinds:
    # asyncio is a tenth of a cold start. If it is not imported, its exception cannot be raised.
    cancelled = getattr(sys.modules.get("asyncio"), "CancelledError", None)
    return (cancelled,) if cancelled else ()


class BatchContext(HandlerContext, Protocol):
    """The drain's part of the handlers' context."""

    def run_of(self, job_id: str) -> "Run":
        """The drain's side of a run of this job, whose `perform_job` yields a cursor."""
        ...

    def now(self) -> float:
        """Unix seconds by the shard's server. Raises BackendError if it has to be asked and can't."""
        ...


class RunLimiter(Protocol):
    """Limits the runs of a worker with a `max_run_time`."""

    def begin(self, context: HandlerContext, ids: Sequence[str]) -> LimitedRun:
        """A batch begins."""
        ...

    def look(self) -> None:
        """Warn of what runs too long; any thread may call it."""
        ...


class BatchResult(msgspec.Struct):
    """The result of a batch. Ids that are not in any field are done.

    `failed`: their own failures. `unattributed`: ids of an error without a named id. `returned`: ids that go back as
    they were; `exited_ids`: those of them that may have exited. `exit`: the exception that ended the batch without
    being a failure. `later`: ids that go on later; `iterations`: those of jobs with a cursor. `rejected`: ids that
    ended with business failures of payloads by their positions, or, as None, of all others. `ended`: payloads, by their
    positions, that ended though their ids go on, or end otherwise: with business failures, or None: well. `notes`:
    messages for items.
    """

    failed: dict[str, BaseException | str] = msgspec.field(default_factory=dict)
    unattributed: Sequence[str] = ()
    error: BaseException | None = None
    returned: Sequence[str] = ()
    exited_ids: Sequence[str] = ()
    exit: BaseException | None = None
    later: Mapping[str, Later] = _NOTHING
    rejected: Mapping[str, Mapping[int | None, Rejected]] = _NOTHING
    ended: Mapping[str, Mapping[int, Rejected | None]] = _NOTHING
    notes: Mapping[str, Sequence[str]] = _NOTHING
    iterations: "Mapping[str, Iteration]" = _NOTHING


ALL_DONE: Final = BatchResult()
"""The result of each batch that came to its end, and of which nothing else is to be told; it is never changed."""


class Performer(msgspec.Struct, frozen=True):
    """Performs the batches of one worker. `chain` puts the server middlewares around a handler."""

    worker: type[Worker[Any]]
    chain: Callable[[Chain], Chain]
    load_payload: Callable[[bytes], object]
    load_error: Callable[[bytes], str]
    iterate: "PerformIteration | None" = None
    """Runs one job whose `perform_job` is a generator; None if it is not."""
    limits: "RunLimiter | None" = None
    """Of runs, if the worker has a `max_run_time`."""

    def run(self, deliveries: Sequence[Delivery], context: BatchContext) -> BatchResult:
        """Hand the batch to a new worker object; what it raises ends up in the result."""
        batch, result = self.begin(deliveries, context)
        if batch is None:
            return result
        pid, error = this_process.pid, None
        try:
            handle = self.handle
            handler, worker = self.chain(handle), self.worker()
            handler(worker, batch)
        except BaseException as raised:  # noqa: BLE001 - the outcome has it, and the log if it is a failure
            end_child_of(pid, raised)
            error = raised
            if is_failure(self.worker, raised):
                log_failure("a batch failed", self.worker, list(batch), raised)
        else:
            # The handler's own end is looked at already: a child may come of what stands around it.
            if handler is not handle or this_process.pid != pid:
                end_child_of(pid)
            error = None if batch.has_begun else HandlerError(NOT_CALLED)
        return self.end(batch, result, error, batch.exited)

    def handle(self, worker: Worker, batch: Batch) -> object:
        """Call `perform`, or `perform_job` with each job; middlewares around it may leave that, or make it again."""
        batch.has_begun, batch.exited = True, None
        pid = this_process.pid
        try:
            perform = getattr(worker, "perform", None)
            if perform is not None:
                result = perform(batch)
                end_child_of(pid)
                return None if result is None else returned(result)
            for job_id in batch.jobs_to_run():
                try:
                    if self.iterate is None:
                        returned(worker.perform_job(batch.job(job_id)), worker)  # type: ignore[attr-defined]  # checked at declaration
                    else:
                        self.iterate(batch.run_of, worker, batch, job_id)
                except BaseException as error:
                    end_child_of(pid, error)
                    if is_a(error, interruptions()):
                        raise
                    _mark(worker, batch, job_id, error)
                else:
                    end_child_of(pid)
                    batch.done(job_id)
        except BaseException as error:
            end_child_of(pid, error)
            if is_a(error, interruptions()):
                batch.exited = error
            raise
        return None

    def begin(self, deliveries: Sequence[Delivery], context: BatchContext) -> tuple[Batch | None, BatchResult]:
        """The batch for the handler, None if no payload can be decoded; and its result, as far as known."""
        payloads: dict[str, list[Any]] = {}
        decoded: dict[str, Delivery] = {}
        broken: dict[str, BaseException | str] = {}
        load, expires = self.load_payload, False
        for delivery in deliveries:
            try:
                payloads[delivery.id] = [load(entry[PLACE:]) for entry in delivery.entries]
            except BaseException as error:  # noqa: BLE001 - passed on, what a codec raises would hold up the shard
                own = own_error(error, lambda entries: [load(entry[PLACE:]) for entry in entries], delivery.entries)
                broken[delivery.id] = self._undecodable(own, delivery)
            else:
                decoded[delivery.id] = delivery
                expires = expires or bool(delivery.expiries)
        result = BatchResult(failed=broken) if broken else ALL_DONE
        if not payloads:
            return None, result
        limit = None if self.limits is None else self.limits.begin(context, [*decoded])
        batch = Batch(payloads, decoded, limit or context, self.load_error, ordered=self.worker.ordered)
        if limit is not None:
            batch.limit = limit
        if expires:
            batch.now = context.now
        if self.iterate is not None:
            batch.run_of = context.run_of
        running.set((self.worker.queue_name, batch))
        return batch, result

    def end(
        self, batch: Batch, result: BatchResult, error: BaseException | None, exited: BaseException | None
    ) -> BatchResult:
        """Close the batch. `error` came out of the middlewares; `exited` ended the handler without being a failure."""
        _, left = batch.close()
        if batch.limit is not None:
            batch.limit.end()
        if error is None and not (left or batch.tells_more):
            return result
        return self._sum_up(BatchResult(failed={**result.failed}), batch, error, exited)

    def _sum_up(
        self, result: BatchResult, batch: Batch, error: BaseException | None, exited: BaseException | None
    ) -> BatchResult:
        """Note what came of the batch's ids in the result, which has those that could not be decoded."""
        marks, left = batch.close()
        is_alone = len(batch) + len(result.failed) == 1
        if left and exited is not None and not is_a(error, interruptions()):
            # A middleware swallowed the exit. It counts for unfinished ids all the same: they would run for ever.
            error = exited
        result.failed.update({job_id: mark for job_id, mark in marks.items() if mark is not None})
        result.returned, result.iterations, result.notes = left, batch.iterations, batch.notes
        over = [job_id for job_id in batch.overdue if job_id not in left]
        rest = [job_id for job_id in batch if job_id not in marks and job_id not in left and job_id not in over]
        if is_a(error, Later):
            # One that cannot be says of no id that it is to go on later: it is an error as any other.
            _, broken = call_safely(asked_of, error)
            error = error if broken is None else broken
        if is_a(error, interruptions()):
            result.returned, result.exit = [*left, *rest], error
            result.exited_ids = left[:1] or rest
        elif is_a(error, Later):
            result.failed.update(dict.fromkeys(rest, error))
        elif error is not None and is_alone and rest:
            result.failed[rest[0]] = error
        elif error is not None:
            result.unattributed, result.error = rest, error
        if result.failed:
            result.later = {job_id: mark for job_id, mark in result.failed.items() if is_a(mark, Later)}
            result.failed = {job_id: mark for job_id, mark in result.failed.items() if job_id not in result.later}
        if (batch.done_payloads or batch.rejected_payloads) and not batch.is_iterated:
            _end_payloads(result, batch)
        self._reject(result, batch)
        if over:
            result.returned = [*result.returned, *over]
        return result

    def _reject(self, result: BatchResult, batch: Batch) -> None:
        """Take what ended with a business failure out of what failed."""
        if is_a(result.error, Rejected) and not self.worker.isolate:
            result.failed, result.unattributed = (
                {**result.failed, **dict.fromkeys(result.unattributed, result.error)},
                (),
            )
        wholly = {job_id: mark for job_id, mark in result.failed.items() if is_a(mark, Rejected)}
        result.failed = {job_id: mark for job_id, mark in result.failed.items() if job_id not in wholly}
        stays = {*result.failed, *result.later, *result.returned, *result.unattributed}
        rejected: dict[str, dict[int | None, Rejected]] = {job_id: {None: error} for job_id, error in wholly.items()}
        for job_id, own in batch.rejected_payloads.items():
            if job_id not in stays and job_id not in result.ended:
                rejected.setdefault(job_id, {}).update(own.items())
        if not rejected:
            return
        result.rejected = rejected
        first = next(error for own in rejected.values() for error in own.values())
        logger.info("jobs ended, the first of them with %s", headline(first), extra=about(self.worker, list(rejected)))

    def _undecodable(self, error: BaseException, delivery: Delivery) -> str:
        wrong = None
        if self.worker.payload is not None:
            from lowkiq_lambda.declare.payloads import wrong_payload  # noqa: PLC0415 - only where a type is declared

            wrong = wrong_payload(delivery.entries, self.load_payload)
        return wrong or f"a payload cannot be decoded: {headline(error)}"


def _end_payloads(result: BatchResult, batch: Batch) -> None:
    """Note which payloads ended of ids that did not; an id of which all payloads ended has ended, too."""
    from lowkiq_lambda.engine.partial import ended_payloads  # noqa: PLC0415 - imported lazily: cold start

    goes_on = {*result.failed, *result.later, *result.returned, *result.unattributed}
    result.ended, over = ended_payloads(batch.done_payloads, batch.rejected_payloads, batch.delivered, goes_on)
    if not over:
        return
    result.failed = {job_id: mark for job_id, mark in result.failed.items() if job_id not in over}
    result.later = {job_id: mark for job_id, mark in result.later.items() if job_id not in over}
    result.returned, result.exited_ids, result.unattributed = (
        [job_id for job_id in ids if job_id not in over]
        for ids in (result.returned, result.exited_ids, result.unattributed)
    )


def iterate_for(worker: type[Worker[Any]]) -> PerformIteration | None:
    """The function that runs a `perform_job` that is a generator; None if it is not."""
    if not is_generator(worker):
        return None
    from lowkiq_lambda.engine.iteration import perform_iteration  # noqa: PLC0415 - imported lazily: cold start

    return perform_iteration


def about(worker: type[Worker[Any]] | Worker, ids: Sequence[str]) -> dict[str, object]:
    """The fields of a line of the log about ids of one shard: how many they are, and the first of them, each cut."""
    names = [job_id[:_LOGGED] + "…" * (len(job_id) > _LOGGED) for job_id in ids[:LOGGED_IDS]]
    shard = shard_index(worker, ids[0])
    return {"queue": worker.queue_name, "shard": shard, "count": len(ids), "ids": names}


def log_failure(message: str, worker: type[Worker[Any]] | Worker, ids: Sequence[str], error: BaseException) -> None:
    """A line of the log: a handler raised this error with these ids of one shard."""
    from lowkiq_lambda.engine.failure_log import failures  # noqa: PLC0415 - a drain in which nothing fails needs none

    failures.write(message, about(worker, ids), error)


def _mark(worker: Worker, batch: Batch, job_id: str, error: BaseException) -> None:
    """Note how a `perform_job` has ended that raised this, which did not interrupt it."""
    if is_a(error, Later):
        batch.put_off(job_id, error)
        return
    if is_failure(worker, error):
        log_failure("a job failed", worker, [job_id], error)
    batch.fail(job_id, error)


def returned(result: object, job_of: Worker | None = None) -> object:
    """The handler's result, unless its work has not been done yet. `job_of`: it is that of a `perform_job`."""
    if result is None:
        return None
    from lowkiq_lambda.engine.results import check_result  # noqa: PLC0415 - few handlers return anything

    check_result(result, job_of)
    return result
