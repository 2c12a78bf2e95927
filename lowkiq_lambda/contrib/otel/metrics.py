"""Metrics: what is pushed, what becomes of it, how long batches take; and what lies in the queues."""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Lock
from typing import Any, Final, Literal, TypeAlias
from weakref import ref

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.error_text import headline
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.contrib.otel import conventions as names
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.views.queues import Numbers

logger = logging.getLogger(__name__)

Number: TypeAlias = Literal["lag", "length", "morgue_length"]
_NUMBERS: Final[tuple[Number, ...]] = ("lag", "length", "morgue_length")

NOT_DELIVERED: Final = frozenset({"failed", "checkpointed", "recovered", "returned", "expired"})
"""Counts of an event that are not deliveries: sums, parts of other counts, ids whose handler did not finish, and
payloads that came too late for one."""
READ_FOR: Final = 1.0
"""Seconds for which what was read of the queues is good: the gauges of one collection tell of one moment."""


class PushMetrics:
    """A client middleware: counts the jobs of each push, and those that merged."""

    def __init__(self, meter: Meter) -> None:
        self._sent = meter.create_counter(names.SENT, names.MESSAGE, "Jobs that were to be pushed.")
        self._merged = meter.create_counter(
            names.MERGED, names.MESSAGE, "Jobs whose id was waiting already, so that they joined it."
        )

    def __call__(
        self, worker: type[Worker[Any]], jobs: Iterable[Mapping[str, Any]], call_next: Callable[..., list[Pushed]]
    ) -> list[Pushed]:
        """Push, and count."""
        jobs = list(jobs)
        attributes = names.of_queue(worker.queue_name, names.SEND)
        try:
            pushed = call_next(worker, jobs)
        except Exception as error:
            self._sent.add(len(jobs), {**attributes, names.ERROR_TYPE: type(error).__qualname__})
            raise
        self._sent.add(len(jobs), attributes)
        if merged := sum(each.merged for each in pushed):
            self._merged.add(merged, attributes)
        return pushed


class SettledMetrics:
    """An observer: counts ids by outcome, and the seconds that batches took."""

    def __init__(self, meter: Meter) -> None:
        self._consumed = meter.create_counter(names.CONSUMED, names.MESSAGE, "Ids that were handed over, by outcome.")
        self._took = meter.create_histogram(
            names.PROCESS_DURATION,
            names.SECONDS,
            "How long batches took.",
            explicit_bucket_boundaries_advisory=names.DURATION_BOUNDS,
        )

    def settled(self, event: SettledEvent) -> None:
        """Count what Redis has acknowledged."""
        attributes = {**names.of_queue(event.queue_name, names.PROCESS), names.PARTITION: str(event.shard)}
        for took in event.took:
            self._took.record(took, attributes)
        # The dead holder has delivered the jobs that it left.
        if "recovered" not in event.counts:
            for outcome, count in event.counts.items():
                # The rejected ids include those that were discarded, and each id is to count once.
                own = count - event.counts.get("discarded", 0) if outcome == "rejected" else count
                if own and outcome not in NOT_DELIVERED:
                    self._consumed.add(own, {**attributes, names.OUTCOME: outcome})


class QueueGauges:
    """Reads the queues of an app whenever metrics are collected, until it is stopped or the app is gone."""

    def __init__(self, meter: Meter, app: Lowkiq) -> None:
        self._app = ref(app)
        self._lock = Lock()
        self._known: Mapping[str, Numbers] = {}
        self._known_until = 0.0
        self.is_stopped = False
        lag, length, morgue = (partial(self._observe, number) for number in _NUMBERS)
        meter.create_observable_gauge(names.LAG, [lag], names.SECONDS, "How long the oldest due id has waited.")
        meter.create_observable_gauge(names.LENGTH, [length], names.JOB_ID, "Ids that wait.")
        meter.create_observable_gauge(names.MORGUE, [morgue], names.JOB_ID, "Ids in the morgue.")

    def _observe(self, number: Number, _options: CallbackOptions) -> Iterable[Observation]:
        app = self._app()
        if app is None or self.is_stopped:
            return
        try:
            metrics = self._read(app)
        except LowkiqError as error:
            logger.warning("the queues cannot be observed: %s", headline(error))
            return
        for queue, numbers in metrics.items():
            yield Observation(numbers[number], {names.SYSTEM: names.LOWKIQ, names.DESTINATION: queue})

    def _read(self, app: Lowkiq) -> Mapping[str, Numbers]:
        with self._lock:
            now = app.core.backend.clock.monotonic()
            if now >= self._known_until:
                self._known, self._known_until = app.operate.stats()["by_worker"], now + READ_FOR
            return self._known
