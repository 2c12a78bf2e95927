"""Sending what the SDK has gathered, within so many seconds.

The time-outs of the SDK are no bound: its processors of spans wait for an exporter as long as that takes.
"""

import logging
from threading import Thread
from typing import Final

from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.trace import TracerProvider, get_tracer_provider

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
