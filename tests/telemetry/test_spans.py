"""Spans of pushes and batches."""

from importlib.metadata import entry_points
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from lowkiq_lambda import Batch, BatchJob, JobError, Later, Lowkiq, Rejected, Worker, discard_on
from lowkiq_lambda.contrib.otel import LowkiqInstrumentor, uninstrument
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.collecting import Collected
from tests.kit.coroutines import declare_async
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, failing, raising
from tests.kit.workers import declare, jobs_of


def trace_id(span: ReadableSpan) -> int:
    """The trace that the span belongs to."""
    context = span.get_span_context()
    return 0 if context is None else context.trace_id


def span_id(span: ReadableSpan) -> int:
    """Its own id."""
    context = span.get_span_context()
    return 0 if context is None else context.span_id


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
        worker.push_many(jobs_of("ab"))

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

    declare(app, queue_name, perform, batch_size=3).push_many(jobs_of("abc"))
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
    declare(app, queue_name, raising(ValueError("no such order"))).push_many(jobs_of("a"))
    app.drain()

    (span,) = collected.spans("process")
    assert (StatusCode.ERROR, "ValueError") == (span.status.status_code, (span.attributes or {})["error.type"])
    assert ["no such order"] == [(event.attributes or {})["exception.message"] for event in span.events]


def test_ids_that_fail_by_themselves_fail_the_span_of_their_batch(
    app: Lowkiq, collected: Collected, queue_name: str
) -> None:
    """It says how many they are, also where no exception came out of the handler."""
    collected.instrument(app)
    declare(app, queue_name, failing("a", "c"), batch_size=3).push_many(jobs_of("abc"))
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

    declare(app, queue_name, Notes(), perform_job=perform_job).push_many(jobs_of("a"))
    app.drain()

    (span,) = collected.spans("process")
    assert ("KeyError", 1) == ((span.attributes or {})["error.type"], len(span.events))


@pytest.mark.parametrize(
    "error", [Later(30), Rejected("sold out"), KeyError("gone")], ids=["Later", "Failed", "discarded"]
)
@pytest.mark.parametrize("by_name", [False, True])
def test_what_is_put_off_or_refused_is_no_error(
    app: Lowkiq, collected: Collected, queue_name: str, error: Exception, *, by_name: bool
) -> None:
    """A-28: Later, Rejected and what a rule discards are outcomes of their own, raised or told of one id."""
    collected.instrument(app)
    then = raising(error) if not by_name else lambda batch: batch.fail("a", error)
    declare(app, queue_name, then, on_error=(discard_on(KeyError),)).push_many(jobs_of("a"))
    app.drain()

    (span,) = collected.spans("process")
    assert (StatusCode.UNSET, 0) == (span.status.status_code, len(span.events))


def test_each_delivery_is_a_span(app: Lowkiq, collected: Collected, clock: ManualClock, queue_name: str) -> None:
    """A job that failed and is tried again has two."""
    collected.instrument(app)
    worker = declare(app, queue_name, raising(), max_retry_count=1)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(11)
    app.drain()
    assert [StatusCode.ERROR] * 2 == [span.status.status_code for span in collected.spans("process")]


def test_a_push_that_is_refused_fails_its_span(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """And raises as ever."""
    collected.instrument(app)
    with pytest.raises(JobError):
        declare(app, queue_name, Notes()).push_many([{"payload": 1}])
    (span,) = collected.spans("send")
    assert (StatusCode.ERROR, "JobError") == (span.status.status_code, (span.attributes or {})["error.type"])


def test_a_coroutine_handler_runs_within_its_span(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """On the loop, so that no thread is kept for it, and the span ends when the coroutine has."""
    collected.instrument(app)
    current: list[str] = []

    async def perform(_batch: Batch) -> None:
        current.append(str(getattr(get_current_span(), "name", "")))

    declare_async(app, queue_name, perform).push_many(jobs_of("a"))
    app.drain()
    assert [f"process {queue_name}"] == current == [span.name for span in collected.spans("process")]


def test_ids_are_told_only_where_that_is_asked_for(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """They may be names of people."""
    collected.instrument(app, ids=True)
    declare(app, queue_name, Notes(), batch_size=2).push_many(jobs_of("ab"))
    app.drain()
    (span,) = collected.spans("process")
    assert ("a", "b") == (span.attributes or {})["lowkiq.ids"]


def test_an_app_is_instrumented_once_and_as_it_was_again(app: Lowkiq, collected: Collected) -> None:
    """A second call changes nothing, and `uninstrument` takes all of it off."""
    lists: list[list[Any]] = [
        app.server_middlewares,
        app.client_middlewares,
        app.observers,
        app.before_answer,
    ]
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
        declare(before, queue_name, Notes()).push_many(jobs_of("a"))
        declare(after, queue_name, Notes()).push_many(jobs_of("b"))
        declare(later, queue_name, Notes()).push_many(jobs_of("c"))
    finally:
        LowkiqInstrumentor().uninstrument()
    assert 3 == len(collected.spans("send"))
    assert [] == [*before.client_middlewares, *after.client_middlewares, *later.client_middlewares]


def links_of(span: ReadableSpan) -> set[int]:
    """The traces that it has links to."""
    return {link.context.trace_id for link in span.links}


def push_in_traces(collected: Collected, worker: type[Worker], *traces: str, **fields: Any) -> set[int]:
    """A push of the same job in each of these traces: the traces."""
    tracer, found = collected.tracers.get_tracer("shop"), set[int]()
    for name in traces:
        with tracer.start_as_current_span(name) as span:
            worker.push_many([{"id": "a", "payload": 1, **fields}])
            found.add(span.get_span_context().trace_id)
    return found


def test_a_merged_payload_has_a_link_to_each_of_its_pushes(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """Three producers of what is performed once, each in a trace of its own."""
    collected.instrument(app)
    notes = Notes()
    traces = push_in_traces(collected, declare(app, queue_name, notes), "1", "2", "3")
    app.drain()
    (span,) = collected.spans("process")
    sent = {span_id(sent) for sent in collected.spans("send")}
    assert (3, traces) == (len(span.links), links_of(span))
    assert sent == {link.context.span_id for link in span.links}
    assert ([{"a": [1]}], None) == (notes.batches, span.parent)


def test_a_push_of_many_jobs_is_one_link(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """It was one span."""
    collected.instrument(app)
    declare(app, queue_name, Notes(), batch_size=3).push_many(jobs_of("abc"))
    app.drain()
    (span,) = collected.spans("process")
    assert (1, None) == (len(span.links), (span.attributes or {}).get("lowkiq.links_left_out"))


@pytest.mark.parametrize("then", ["retry", "recovery"])
def test_links_outlive_a_retry_and_a_crash(
    app: Lowkiq, collected: Collected, clock: ManualClock, queue_name: str, then: str
) -> None:
    """What is performed anew knows where it came from."""
    collected.instrument(app)
    mortal, notes = Mortal(app), Notes()
    notes.then = raising() if then == "retry" else mortal.die
    worker = declare(app, queue_name, notes)
    traces = push_in_traces(collected, worker, "1", "2")
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = None
    app.drain()
    assert 2 == len(notes.batches)
    assert traces == links_of(collected.spans("process")[-1])


def test_more_links_than_there_is_room_for_are_counted(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """Eight of a payload, 128 of a batch."""
    collected.instrument(app)
    worker = declare(app, queue_name, Notes(), batch_size=200)
    push_in_traces(collected, worker, *map(str, range(10)))
    for n in range(140):
        worker.push_many([{"id": f"id {n}"}])
    app.drain()
    (span,) = collected.spans("process")
    assert (128, 2 + 8 + 140 - 128) == (len(span.links), (span.attributes or {})["lowkiq.links_left_out"])


def test_a_batch_of_one_push_may_be_its_child(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """With `parent="child"`; where there are several pushes, or ids, each has its link."""
    collected.instrument(app, parent="child")
    worker = declare(app, queue_name, Notes())
    push_in_traces(collected, worker, "1")
    app.drain()
    traces = push_in_traces(collected, worker, "2", "3")
    app.drain()

    child, root = collected.spans("process")
    sent = collected.spans("send")[0]
    assert child.parent is not None
    assert (span_id(sent), set()) == (child.parent.span_id, links_of(child))
    assert (None, traces) == (root.parent, links_of(root))


def test_a_job_has_the_context_beside_its_own_headers(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """What a user gives stays as it is; of the context as much is added as there is room for."""
    collected.instrument(app)
    told: list[set[str]] = []

    def perform(batch: Batch) -> None:
        told.extend({*headers} for each in batch.headers.values() for headers in each)

    worker = declare(app, queue_name, perform)
    own = [{"tenant": "acme"}, {"tenant": "x" * 1_000}, {"traceparent": "mine"}]
    worker.push_many([{"id": str(n), "headers": headers} for n, headers in enumerate(own)])
    app.drain()
    assert [{"tenant", "traceparent"}, {"tenant"}, {"traceparent"}] == told


def test_what_is_no_job_or_no_header_is_refused_as_ever(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """The middleware leaves it to the check."""
    collected.instrument(app)
    worker = declare(app, queue_name, Notes())
    for jobs, told in (([17], "a job is a mapping"), ([{"id": 1, "headers": 17}], "headers: must be a mapping")):
        with pytest.raises(JobError, match=told):
            worker.push_many(jobs)  # type: ignore[arg-type]  # that is the point


def test_an_unknown_parent_is_refused(app: Lowkiq, collected: Collected) -> None:
    """In a sentence that names both, and the app stays as it was."""
    with pytest.raises(ValueError, match="'link' or 'child', not 'links'"):
        collected.instrument(app, parent="links")
    assert [] == app.server_middlewares


def test_the_instrumentor_is_found_by_its_entry_point() -> None:
    """As `opentelemetry-instrument` looks for it."""
    (entry,) = entry_points(group="opentelemetry_instrumentor", name="lowkiq")
    assert LowkiqInstrumentor is entry.load()


def test_contexts_are_carried_only_where_that_is_asked_for(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """`propagate=False`: the jobs have no headers, and the spans no links."""
    collected.instrument(app, propagate=False)
    push_in_traces(collected, declare(app, queue_name, Notes()), "1")
    app.drain()
    assert [()] == [span.links for span in collected.spans("process")]
