"""Spans of pushes and batches."""

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from lowkiq_lambda import Batch, BatchJob, JobError, Later, Lowkiq
from lowkiq_lambda.otel import LowkiqInstrumentor, uninstrument
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.collecting import Collected
from tests.kit.coroutines import declare_async
from tests.kit.handlers import Notes, failing, raising
from tests.kit.workers import declare, jobs_of


def trace_id(span: ReadableSpan) -> int:
    """The trace that the span belongs to."""
    context = span.get_span_context()
    return 0 if context is None else context.trace_id


def of_queue(queue_name: str, operation: str) -> dict[str, Any]:
    """What all spans of an operation tell."""
    return {
        "messaging.system": "lowkiq",
        "messaging.destination.name": queue_name,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def test_a_push_is_a_span_of_the_trace_that_pushed(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """Its parent is the caller's span, and it says how many jobs there were."""
    collected.instrument(app)
    worker = declare(app, queue_name, Notes())
    with collected.tracers.get_tracer("shop").start_as_current_span("checkout"):
        worker.perform_async(jobs_of("ab"))

    sent, caller = collected.spans()
    assert (f"send {queue_name}", SpanKind.PRODUCER) == (sent.name, sent.kind)
    assert {**of_queue(queue_name, "send"), "messaging.batch.message_count": 2} == dict(sent.attributes or {})
    assert sent.parent is not None
    assert (sent.parent.span_id, trace_id(caller)) == (caller.context.span_id, trace_id(sent))
    assert sent.instrumentation_scope is not None
    assert "https://opentelemetry.io/schemas/1.44.0" == sent.instrumentation_scope.schema_url


def test_a_batch_is_a_span_of_a_trace_of_its_own(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """Whatever span drains: the batch has nothing to do with it. Spans of the handler are below it."""
    collected.instrument(app)
    tracer = collected.tracers.get_tracer("shop")

    def perform(_batch: Batch) -> None:
        tracer.start_span("charge").end()

    declare(app, queue_name, perform, batch_size=3).perform_async(jobs_of("abc"))
    with tracer.start_as_current_span("invocation"):
        app.drain()

    (charged,), (processed,), (invocation,) = map(collected.spans, ("charge", "process", "invocation"))
    assert (f"process {queue_name}", SpanKind.CONSUMER, None) == (processed.name, processed.kind, processed.parent)
    assert {
        **of_queue(queue_name, "process"),
        "messaging.destination.partition.id": "0",
        "messaging.batch.message_count": 3,
    } == dict(processed.attributes or {})
    assert charged.parent is not None
    assert charged.parent.span_id == processed.context.span_id
    assert trace_id(invocation) != trace_id(processed)
    assert StatusCode.UNSET == processed.status.status_code


def test_a_handler_that_raises_fails_its_span(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """The exception is recorded in it, and its type is an attribute."""
    collected.instrument(app)
    declare(app, queue_name, raising(ValueError("no such order"))).perform_async(jobs_of("a"))
    app.drain()

    (span,) = collected.spans("process")
    assert (StatusCode.ERROR, "ValueError") == (span.status.status_code, (span.attributes or {})["error.type"])
    assert ["no such order"] == [(event.attributes or {})["exception.message"] for event in span.events]


def test_ids_that_fail_by_themselves_fail_the_span_of_their_batch(
    app: Lowkiq, collected: Collected, queue_name: str
) -> None:
    """It says how many they are, also where no exception came out of the handler."""
    collected.instrument(app)
    declare(app, queue_name, failing("a", "c"), batch_size=3).perform_async(jobs_of("abc"))
    app.drain()

    (span,) = collected.spans("process")
    told = span.attributes or {}
    assert (StatusCode.ERROR, 2, "_OTHER") == (
        span.status.status_code,
        told["lowkiq.failed_ids"],
        told["error.type"],
    )


def test_the_error_of_a_job_is_recorded(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """What a `perform_job` raises does not leave the batch, and is told by its span all the same."""
    collected.instrument(app)

    def perform_job(_self: object, _job: BatchJob) -> None:
        raise KeyError("price")

    declare(app, queue_name, Notes(), perform_job=perform_job).perform_async(jobs_of("a"))
    app.drain()

    (span,) = collected.spans("process")
    assert ("KeyError", 1) == ((span.attributes or {})["error.type"], len(span.events))


def test_what_is_put_off_has_not_failed(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """Later is an outcome of its own."""
    collected.instrument(app)
    declare(app, queue_name, raising(Later(30))).perform_async(jobs_of("a"))
    app.drain()

    (span,) = collected.spans("process")
    assert (StatusCode.UNSET, 0) == (span.status.status_code, len(span.events))


def test_each_delivery_is_a_span(app: Lowkiq, collected: Collected, clock: ManualClock, queue_name: str) -> None:
    """A job that failed and is tried again has two."""
    collected.instrument(app)
    worker = declare(app, queue_name, raising(), max_retry_count=1)
    worker.perform_async(jobs_of("a"))
    app.drain()
    clock.advance(11)
    app.drain()
    assert [StatusCode.ERROR] * 2 == [span.status.status_code for span in collected.spans("process")]


def test_a_push_that_is_refused_fails_its_span(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """And raises as ever."""
    collected.instrument(app)
    with pytest.raises(JobError):
        declare(app, queue_name, Notes()).perform_async([{"payload": 1}])
    (span,) = collected.spans("send")
    assert (StatusCode.ERROR, "JobError") == (span.status.status_code, (span.attributes or {})["error.type"])


def test_a_coroutine_handler_runs_within_its_span(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """On the loop, so that no thread is kept for it, and the span ends when the coroutine has."""
    collected.instrument(app)
    current: list[str] = []

    async def perform(_batch: Batch) -> None:
        current.append(str(getattr(get_current_span(), "name", "")))

    declare_async(app, queue_name, perform).perform_async(jobs_of("a"))
    app.drain()
    assert [f"process {queue_name}"] == current == [span.name for span in collected.spans("process")]


def test_ids_are_told_only_where_that_is_asked_for(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """They may be names of people."""
    collected.instrument(app, ids=True)
    declare(app, queue_name, Notes(), batch_size=2).perform_async(jobs_of("ab"))
    app.drain()
    (span,) = collected.spans("process")
    assert ("a", "b") == (span.attributes or {})["lowkiq.ids"]


def test_an_app_is_instrumented_once_and_as_it_was_again(app: Lowkiq, collected: Collected) -> None:
    """A second call changes nothing, and `uninstrument` takes all of it off."""
    lists: list[list[Any]] = [app.server_middlewares, app.client_middlewares, app.observers, app.before_answer]
    collected.instrument(app)
    collected.instrument(app)
    assert [1, 2, 1, 1] == [len(each) for each in lists]
    uninstrument(app)
    uninstrument(app)
    assert [0, 0, 0, 0] == [len(each) for each in lists]
    assert {} == collected.values("lowkiq.length", "messaging.destination.name")


def test_an_instrumentor_finds_apps_by_itself(make_app: MakeApp, collected: Collected, queue_name: str) -> None:
    """Those there are and those that come; it takes and ignores what other instrumentors are given."""
    before = make_app()
    instrumentor = LowkiqInstrumentor()
    instrumentor.instrument(
        tracer_provider=collected.tracers, meter_provider=collected.meters, gauges=False, skip_dep_check=True
    )
    after = make_app()
    LowkiqInstrumentor().uninstrument()

    later = make_app()
    instrumentor.instrument(tracer_provider=collected.tracers, meter_provider=collected.meters, gauges=False)
    try:
        declare(before, queue_name, Notes()).perform_async(jobs_of("a"))
        declare(after, queue_name, Notes()).perform_async(jobs_of("b"))
        declare(later, queue_name, Notes()).perform_async(jobs_of("c"))
    finally:
        LowkiqInstrumentor().uninstrument()
    assert 3 == len(collected.spans("send"))
    assert [] == [*before.client_middlewares, *after.client_middlewares, *later.client_middlewares]
