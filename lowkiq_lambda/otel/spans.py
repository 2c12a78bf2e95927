"""Spans: `send QUEUE` around each push, `process QUEUE` around each batch."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, use_span

from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.job import Pushed
from lowkiq_lambda.otel import conventions as names
from lowkiq_lambda.retry import Later
from lowkiq_lambda.worker import Worker, shard_index

Parent: TypeAlias = Literal["link", "child"]
MOST_IDS: Final = 128
"""So many ids a span names at most, where it names them."""


class SendSpans:
    """A client middleware: a span of the kind PRODUCER around each push."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __call__(
        self, worker: type[Worker], jobs: Iterable[Mapping[str, Any]], call_next: Callable[..., list[Pushed]]
    ) -> list[Pushed]:
        """Push within the span."""
        jobs = list(jobs)
        attributes: dict[str, str | int] = names.of_queue(worker.queue_name, names.SEND) | {
            names.BATCH_COUNT: len(jobs)
        }
        span = self._tracer.start_span(
            f"{names.SEND} {worker.queue_name}", kind=SpanKind.PRODUCER, attributes=attributes
        )
        with _current(span):
            return call_next(worker, jobs)


class ProcessSpans:
    """A server middleware: a span of the kind CONSUMER around each batch, the root of a trace of its own.

    `ids`: it names the ids of the batch. They may say something about people, so that is asked for.
    """

    def __init__(self, tracer: Tracer, *, ids: bool) -> None:
        self._tracer = tracer
        self._names_ids = ids

    def __call__(self, worker: Worker, batch: Batch, call_next: Callable[..., object]) -> object:
        """Perform the batch within the span."""
        with self._around(worker, batch):
            return call_next()

    async def awaited(self, worker: Worker, batch: Batch, call_next: Callable[..., Awaitable[object]]) -> object:
        """As the call, around a coroutine handler."""
        with self._around(worker, batch):
            return await call_next()

    @contextmanager
    def _around(self, worker: Worker, batch: Batch) -> Iterator[None]:
        queue = worker.queue_name
        attributes: dict[str, Any] = {
            **names.of_queue(queue, names.PROCESS),
            names.PARTITION: str(shard_index(worker, next(iter(batch)))),
            names.BATCH_COUNT: len(batch),
        }
        if self._names_ids:
            attributes[names.IDS] = list(batch)[:MOST_IDS]
        # An empty context: what the process did before has nothing to do with the batch.
        span = self._tracer.start_span(
            f"{names.PROCESS} {queue}", Context(), kind=SpanKind.CONSUMER, attributes=attributes
        )
        with _current(span):
            yield
            _tell_failures(span, batch)


@contextmanager
def _current(span: Span) -> Iterator[None]:
    """The span is the current one, and ends with the block. What fails there is told by it, what is put off is not."""
    with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield
        except Later:
            raise
        except Exception as error:
            _tell_error(span, error)
            raise


def _tell_failures(span: Span, batch: Batch) -> None:
    """What failed by itself, while the handler came to its end."""
    failed = batch.failed
    if not failed:
        return
    span.set_attribute(names.FAILED_IDS, len(failed))
    errors = {id(error): error for error in failed.values() if isinstance(error, BaseException)}
    for error in errors.values():
        _tell_error(span, error)
    if not errors:
        span.set_attribute(names.ERROR_TYPE, names.OTHER_ERROR)
        span.set_status(StatusCode.ERROR)


def _tell_error(span: Span, error: BaseException) -> None:
    span.record_exception(error)
    span.set_attribute(names.ERROR_TYPE, type(error).__qualname__)
    span.set_status(StatusCode.ERROR)
