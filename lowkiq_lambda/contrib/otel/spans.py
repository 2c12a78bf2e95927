"""Spans: `send QUEUE` around each push, `process QUEUE` around each batch, and what joins the two.

A push gives the context of its span to its jobs, as headers. What waits under an id may come from many pushes, so the
span of a batch has a link to each of them.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, Literal, TypeAlias

from opentelemetry.context import Context
from opentelemetry.propagate import extract, inject
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer, get_current_span, use_span

from lowkiq_lambda.base.errors import Rejected
from lowkiq_lambda.contrib.otel import conventions as names
from lowkiq_lambda.declare.worker import Worker, shard_index
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.engine.perform import is_failure
from lowkiq_lambda.jobs.headers import MOST_BYTES, Headers, pack
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.jobs.retry import Later

Parent: TypeAlias = Literal["link", "child"]
MOST_IDS: Final = 128
"""So many ids a span names at most, where it names them."""
MOST_LINKS: Final = 128
"""So many an SDK keeps of a span, unless it is told otherwise."""


class SendSpans:
    """A client middleware: a span of the kind PRODUCER around each push. `propagates`: its jobs carry its context."""

    def __init__(self, tracer: Tracer, *, propagates: bool) -> None:
        self._tracer = tracer
        self._propagates = propagates

    def __call__(
        self, worker: type[Worker[Any]], jobs: Iterable[Mapping[str, Any]], call_next: Callable[..., list[Pushed]]
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
            return call_next(worker, with_context(jobs) if self._propagates else jobs)


def with_context(jobs: list[Any]) -> list[Any]:
    """The jobs, with the current context among their headers."""
    context: dict[str, str] = {}
    inject(context)
    if not context:
        return jobs
    # An object that is not a job is refused further on.
    return [{**job, "headers": _united(job, context)} if isinstance(job, Mapping) else job for job in jobs]


def _united(job: Mapping[str, Any], context: Headers) -> object:
    """The headers of the job, and of the context as much as there is room for: the trace comes before all baggage."""
    own: object = job.get("headers", {})
    if not isinstance(own, Mapping):
        return own
    both = {**context, **own}
    for name in reversed(list(context)):
        if len(pack(both)) <= MOST_BYTES:
            break
        if name not in own:
            del both[name]
    return both


class ProcessSpans:
    """A server middleware: a span of the kind CONSUMER around each batch, the root of a trace of its own.

    `parent`: "child" makes it a child of the push where the batch is one id of one push. `ids`: it names the ids of
    the batch. They may say something about people, so that is asked for.
    """

    def __init__(self, tracer: Tracer, *, parent: Parent, ids: bool) -> None:
        self._tracer = tracer
        self._is_child = parent == "child"
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
        parent, pushes = Context(), _contexts(batch)
        if left_out := batch.headers_left_out + len(pushes[MOST_LINKS:]):
            attributes[names.LINKS_LEFT_OUT] = left_out
        if self._is_child and len(batch) == len(pushes) == 1 and not left_out:
            parent = pushes.pop()
        links = [Link(get_current_span(context).get_span_context()) for context in pushes[:MOST_LINKS]]
        span = self._tracer.start_span(
            f"{names.PROCESS} {queue}", parent, kind=SpanKind.CONSUMER, attributes=attributes, links=links
        )
        with _current(span, worker):
            yield
            _tell_failures(span, worker, batch)


def _contexts(batch: Batch) -> list[Context]:
    """Those that the jobs of the batch carry, each once."""
    contexts: dict[tuple[int, int], Context] = {}
    for headers in chain.from_iterable(batch.headers.values()):
        context = extract(headers, context=Context())
        span = get_current_span(context).get_span_context()
        if span.is_valid:
            contexts.setdefault((span.trace_id, span.span_id), context)
    return list(contexts.values())


@contextmanager
def _current(span: Span, worker: Worker | None = None) -> Iterator[None]:
    """The span is the current one, and ends with the block.

    It tells what fails, and not what is put off, refused, or discarded by a rule of the worker.
    """
    with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield
        except (Later, Rejected):
            raise
        except Exception as error:
            if worker is None or is_failure(worker, error):
                _tell_error(span, error)
            raise


def _tell_failures(span: Span, worker: Worker, batch: Batch) -> None:
    """What failed by itself, while the handler came to its end."""
    failed = {
        job_id: error for job_id, error in batch.failed.items() if isinstance(error, str) or is_failure(worker, error)
    }
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
