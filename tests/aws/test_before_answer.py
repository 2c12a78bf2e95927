"""What is called before a function answers: then it is frozen, and sends nothing any more."""

import threading
from collections.abc import Sequence
from typing import Any, Final

import pytest
import sentry_sdk
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.contrib.otel import instrument
from tests.aws.functions import DrainFunction
from tests.kit.apps import MakeApp
from tests.kit.beside import TIMEOUT
from tests.kit.collecting import sentry_of_test
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

RESERVE: Final = 3.0


class Exporter(SpanExporter):
    """Notes what it is given; it takes as long as `opened` is not set."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.opened = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Wait, and note them."""
        self.opened.wait(TIMEOUT)
        self.names += [span.name for span in spans]
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 0) -> bool:
        """Nothing is kept back."""
        del timeout_millis
        return True


@pytest.fixture
def exporter() -> Exporter:
    """One that takes no time."""
    made = Exporter()
    made.opened.set()
    return made


def providing(exporter: Exporter) -> TracerProvider:
    """A provider that sends once an hour, unless it is asked to."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    return provider


def test_spans_have_left_when_a_drain_answers(
    drain: DrainFunction, make_app: MakeApp, exporter: Exporter, queue_name: str
) -> None:
    """They would wait until the next invocation, or for ever."""
    app = make_app()
    instrument(app, tracer_provider=providing(exporter))
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))
    drain.install(app)
    drain()
    assert [f"send {queue_name}", f"process {queue_name}"] == exporter.names


def test_an_exporter_that_hangs_holds_up_no_answer(
    drain: DrainFunction, make_app: MakeApp, exporter: Exporter, queue_name: str
) -> None:
    """It is waited for as long as the reserve says, and goes on beside what follows."""
    app = make_app()
    provider = providing(exporter)
    instrument(app, tracer_provider=provider)
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))
    drain.install(app, reserve="0.05")
    exporter.opened.clear()
    assert {"done": 1} == drain()["counts"]
    assert [] == exporter.names
    exporter.opened.set()
    provider.shutdown()
    assert [f"send {queue_name}", f"process {queue_name}"] == exporter.names


def test_the_reserve_is_shared_and_half_a_second_is_the_answers(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """No hook is told of more than there is; where nothing is left none is called."""
    app, told = make_app(), list[float]()
    app.before_answer.append(told.append)
    declare(app, queue_name, Notes())
    drain.install(app)
    for seconds in (63.0, 2.5, 0.5):
        drain(seconds=seconds)
    assert [RESERVE, 2.0] == told


def test_what_a_hook_raises_changes_no_answer(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """It is logged, and the next one is called."""
    app, told = make_app(), list[float]()

    def broken(_seconds: float) -> None:
        raise OSError("no route to the collector")

    app.before_answer += [broken, told.append]
    declare(app, queue_name, Notes())
    drain.install(app)
    assert {} == drain()["counts"]
    assert 1 == len(told)
    assert ["what was to be called before the answer raised"] == [
        line["message"] for line in drain.lines if line.get("level") == "ERROR"
    ]


def test_a_drain_that_fails_calls_it_too(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """Its errors are what people will look for."""
    app, told = make_app(), list[float]()
    app.before_answer.append(told.append)

    def leave(_batch: Any) -> None:
        raise SystemExit(3)

    declare(app, queue_name, leave).push_many(jobs_of("a"))
    drain.install(app)
    with pytest.raises(LowkiqError):
        drain()
    assert [RESERVE] == told


def test_a_tick_calls_it_too(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """Its duties may push."""
    app, told = make_app(), list[float]()
    app.before_answer.append(told.append)
    declare(app, queue_name, Notes())
    drain.install(app)
    drain({"tick": "only"})
    assert [RESERVE] == told


def test_events_of_sentry_have_left_when_a_drain_answers(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """Its transport is flushed, for as long as the reserve allows."""
    with sentry_of_test() as sent:
        app = make_app()
        declare(app, queue_name, Notes())
        drain.install(app)
        drain()
        assert sentry_sdk.is_initialized()
    assert RESERVE == sent.flushed[0]
