"""Providers of OpenTelemetry and a client of Sentry that keep what they are given."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sentry_sdk
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations import _installed_integrations, _processed_integrations
from sentry_sdk.transport import Transport

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.app import no_longer_for_each_app
from lowkiq_lambda.contrib.otel import instrument
from lowkiq_lambda.contrib.sentry import Capture, LowkiqIntegration, _watch

Point = NumberDataPoint | HistogramDataPoint


class Collected:
    """Both providers, with an exporter and a reader in memory."""

    def __init__(self) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    def instrument(self, app: Lowkiq, **options: Any) -> None:
        """Have the app tell these providers."""
        instrument(app, tracer_provider=self.tracers, meter_provider=self.meters, **options)

    def spans(self, name: str = "") -> list[ReadableSpan]:
        """Those that have ended, in that order, whose names begin so."""
        return [span for span in self._exporter.get_finished_spans() if span.name.startswith(name)]

    def points(self, name: str) -> list[Point]:
        """The data points of the metric."""
        data = self._reader.get_metrics_data()
        found = (
            [] if data is None else [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        )
        metrics = [metric for scope in found for metric in scope.metrics if metric.name == name]
        return [point for metric in metrics for point in metric.data.data_points if not hasattr(point, "scale")]

    def values(self, name: str, attribute: str) -> dict[object, float]:
        """The values of a counter or gauge by an attribute."""
        return {
            dict(point.attributes or {}).get(attribute): point.value
            for point in self.points(name)
            if isinstance(point, NumberDataPoint)
        }

    def shut_down(self) -> None:
        """End both."""
        self.tracers.shutdown()
        self.meters.shutdown()


class SentToSentry(Transport):
    """Keeps the events."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []
        self.flushed: list[float] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        """Keep its event."""
        event = envelope.get_event()
        if event is not None:
            self.events.append(dict(event))

    def flush(self, timeout: float, callback: Callable[..., Any] | None = None) -> None:
        """Note for how long it might be waited."""
        del callback
        self.flushed.append(timeout)

    def use(self, capture: Capture) -> None:
        """Go on with a client that captures so."""
        sentry_sdk.init(
            dsn="http://key@127.0.0.1:9/1",
            transport=self,
            default_integrations=False,
            auto_enabling_integrations=False,
            integrations=[LowkiqIntegration(capture)],
        )


@contextmanager
def sentry_of_test() -> Iterator[SentToSentry]:
    """What a client got until the end of the block."""
    sent = SentToSentry()
    sent.use("death")
    try:
        yield sent
    finally:
        sentry_sdk.get_client().close(timeout=0)
        sentry_sdk.get_global_scope().set_client(None)
        # Sentry sets an integration up once in a process; apps of other tests are to have nothing of it.
        no_longer_for_each_app(_watch)
        for known in (_processed_integrations, _installed_integrations):
            known.discard(LowkiqIntegration.identifier)
