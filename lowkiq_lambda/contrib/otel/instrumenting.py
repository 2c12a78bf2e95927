"""Adds spans and metrics to the pushes and batches of an app, and removes them again.

The time-outs of the SDK do not bound a flush: its span processors wait for an exporter as long as that takes.
"""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import msgspec
from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.trace import TracerProvider, get_tracer_provider

from lowkiq_lambda.app import Lowkiq, for_each_app, no_longer_for_each_app
from lowkiq_lambda.contrib.otel.conventions import NAME, SCHEMA_URL
from lowkiq_lambda.contrib.otel.metrics import PushMetrics, QueueGauges, SettledMetrics
from lowkiq_lambda.contrib.otel.spans import Parent, ProcessSpans, SendSpans

_LAMBDA: Final = "AWS_LAMBDA_FUNCTION_NAME"
_OPTIONS: Final = frozenset({"tracer_provider", "meter_provider", "parent", "propagate", "ids", "gauges"})

logger = logging.getLogger(__name__)

MILLISECONDS: Final = 1_000


class Flush:
    """Has the providers send; None for the global ones, as they are by then."""

    def __init__(self, tracers: TracerProvider | None, meters: MeterProvider | None) -> None:
        self._tracers = tracers
        self._meters = meters

    def __call__(self, seconds: float) -> None:
        """Send, and wait for the end of it so long at most; what takes longer goes on while the process runs."""
        thread = Thread(target=self._send, args=(seconds,), name="lowkiq-flush", daemon=True)
        thread.start()
        thread.join(max(0.0, seconds))

    def _send(self, seconds: float) -> None:
        for provider in (self._tracers or get_tracer_provider(), self._meters or get_meter_provider()):
            # The API knows no such call, only providers of an SDK have it.
            if hasattr(provider, "force_flush"):
                try:
                    provider.force_flush(int(seconds * MILLISECONDS))
                except Exception:
                    logger.exception("telemetry cannot be sent")


class _Parts(msgspec.Struct, frozen=True):
    """The parts that one app was given."""

    client: tuple[PushMetrics, SendSpans]
    server: ProcessSpans
    observer: SettledMetrics
    gauges: QueueGauges | None
    flush: Flush


_instrumented: Final[WeakKeyDictionary[Lowkiq, _Parts]] = WeakKeyDictionary()
_lock: Final = Lock()


def instrument(  # noqa: PLR0913 - all of it by keyword
    app: Lowkiq,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    parent: Parent = "link",
    propagate: bool = True,
    ids: bool = False,
    gauges: bool | None = None,
) -> None:
    """Make spans and metrics of the app's pushes and batches; a second call for the app does nothing.

    `tracer_provider`, `meter_provider`: None for the global ones. `parent`: "link" makes each batch the root of a
    trace, with a link to each push that it is of; "child" makes a batch that is one id of one push a child of that
    push. `propagate`: jobs carry the context of their push, so that there is something to link to. `ids`: spans name
    the ids of their batch, which may say something about people. `gauges`: whether lag, length and morgue of the
    queues are read when metrics are collected; None: but for functions on Lambda, whose ticks publish them.
    Raises ValueError for another `parent`.
    """
    if parent not in {"link", "child"}:
        raise ValueError(f"parent must be 'link' or 'child', not {parent!r}.")
    tracers, meters = tracer_provider or get_tracer_provider(), meter_provider or get_meter_provider()
    with _lock:
        if app in _instrumented:
            return
        tracer = tracers.get_tracer(NAME, schema_url=SCHEMA_URL)
        meter = meters.get_meter(NAME, schema_url=SCHEMA_URL)
        has_gauges = _LAMBDA not in os.environ if gauges is None else gauges
        parts = _Parts(
            client=(PushMetrics(meter), SendSpans(tracer, propagates=propagate)),
            server=ProcessSpans(tracer, parent=parent, ids=ids),
            observer=SettledMetrics(meter),
            gauges=QueueGauges(meter, app) if has_gauges else None,
            flush=Flush(tracer_provider, meter_provider),
        )
        _instrumented[app] = parts
    # Around all that others do with a batch; and within what others do with a push, which may change its jobs.
    app.server_middlewares.insert(0, parts.server)
    app.client_middlewares.extend(parts.client)
    app.observers.append(parts.observer)
    app.before_answer.append(parts.flush)


def uninstrument(app: Lowkiq) -> None:
    """Take off what `instrument` put on; nothing where it did not."""
    with _lock:
        parts = _instrumented.pop(app, None)
    if parts is None:
        return
    if parts.gauges is not None:
        parts.gauges.is_stopped = True
    _remove(app.server_middlewares, parts.server)
    for middleware in parts.client:
        _remove(app.client_middlewares, middleware)
    _remove(app.observers, parts.observer)
    _remove(app.before_answer, parts.flush)


def _remove(listed: list[Any], part: object) -> None:
    # If the user replaced the list, the part is gone already.
    with suppress(ValueError):
        listed.remove(part)


class LowkiqInstrumentor:
    """Instruments each app of the process: what `opentelemetry-instrument` finds by its entry point."""

    _instrument: ClassVar[Callable[[Lowkiq], None] | None] = None

    def instrument(self, **options: Any) -> None:  # noqa: ANN401 - those of other instrumentors are among them
        """Instrument the apps there are, and each that is made; takes the options of `instrument`."""
        if LowkiqInstrumentor._instrument is None:
            own_options = {name: value for name, value in options.items() if name in _OPTIONS}
            LowkiqInstrumentor._instrument = partial(instrument, **own_options)
            for_each_app(LowkiqInstrumentor._instrument)

    def uninstrument(self, **_options: Any) -> None:  # noqa: ANN401 - as above
        """Take off what was put on apps, and leave new ones alone."""
        if LowkiqInstrumentor._instrument is not None:
            no_longer_for_each_app(LowkiqInstrumentor._instrument)
            LowkiqInstrumentor._instrument = None
        for app in list(_instrumented):
            uninstrument(app)
