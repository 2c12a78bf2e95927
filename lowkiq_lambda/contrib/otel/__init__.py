"""OpenTelemetry: spans and metrics of an app, by the conventions for messaging. Needs the extra `otel`."""

from lowkiq_lambda.contrib.otel.instrumenting import LowkiqInstrumentor, instrument, uninstrument

__all__ = ["LowkiqInstrumentor", "instrument", "uninstrument"]
