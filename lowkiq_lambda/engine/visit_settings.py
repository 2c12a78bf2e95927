"""The settings of visits, made from the app's settings and a worker's declaration once for all visits to its shards.

Also how ids are lined up in batches of the declared size.
"""

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.declare.worker import Worker, at_most, counts_skew, is_coroutine, queues_before
from lowkiq_lambda.engine.budget import BatchTiming
from lowkiq_lambda.engine.failure import Death, Deaths, ErrorText
from lowkiq_lambda.engine.lease import LeaseRenewers
from lowkiq_lambda.engine.perform import Chain, Performer, iterate_for
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.engine.survivors import CRASHED
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.protocols import LoadPayload, ServerMiddleware, SettledEvent, compose
from lowkiq_lambda.store.shard.codec import load_json
from lowkiq_lambda.store.shard.history import Beside
from lowkiq_lambda.store.shard.session import LeaseSettings

if TYPE_CHECKING:
    from lowkiq_lambda.engine.run_time import RunLimits
    from lowkiq_lambda.engine.runs import RunKeeper
    from lowkiq_lambda.engine.slot_pool import SlotPool
    from lowkiq_lambda.engine.slots import Slots
    from lowkiq_lambda.engine.tuning import Tuning
    from lowkiq_lambda.store.shard.admitting import Limits


class VisitSettings(msgspec.Struct, frozen=True):
    """The settings that are the same for every visit to the shards of one worker."""

    worker: type[Worker[Any]]
    performer: Performer
    texts: ErrorText
    timing: BatchTiming
    renewers: LeaseRenewers
    clock: Clock
    owner: str
    lease: LeaseSettings
    settle_interval: float
    claim_payloads: int
    claim_bytes: int
    shutdown_timeout: float
    alone: threading.Lock
    """Of the process: held while a suspect runs, from its start to its settling."""
    after_death: Callable[[Sequence[Death]], None]
    """Told of what just failed for the last time."""
    slots: "Slots | None"
    """The slots of batches that run side by side; None if each runs in the visit's own thread."""
    limits: "Limits | None"
    """The limits of the queue; None if it has none."""
    after_settling: Callable[[SettledEvent], None]
    """Told what Redis has acknowledged."""
    runs: "RunKeeper | None"
    """Keeps what the queue has run; None if it keeps none."""
    tuning: "Tuning | None"
    """Decides how many calls run at once, or how many ids each has; None if the worker says both."""
    most_calls: int
    most_ids: int

    @property
    def concurrency(self) -> int:
        """How many calls run side by side in a shard."""
        return self.most_calls if self.tuning is None else self.tuning.calls or self.most_calls

    @property
    def batch_size(self) -> int:
        """How many ids a call has at most."""
        return self.most_ids if self.tuning is None else self.tuning.ids or self.most_ids

    def ids_in(self, seconds: float) -> int:
        """How many ids begin in so many seconds, by experience; a batch at least."""
        if self.slots is None:
            return self.timing.claim_ids(self.batch_size, seconds)
        return self.timing.beside(self.batch_size, seconds, self.concurrency)


class VisitSettingsFactory:
    """The settings of each queue's visits, made for the first of them; safe to use from several threads at once."""

    def __init__(  # noqa: PLR0913 - what the visits of all queues have in common
        self,
        config: Config,
        clock: Clock,
        queues: Mapping[str, Queue],
        middlewares: Sequence[ServerMiddleware],
        *,
        renewers: LeaseRenewers,
        slot_pool: "Callable[[], SlotPool]",
        after_settling: Callable[[SettledEvent], None],
        beside: list[Beside],
    ) -> None:
        self._config = config
        self._beside = beside
        self._clock = clock
        self._queues = queues
        self._chain: Callable[[Chain], Chain] = partial(compose, middlewares)
        self._texts: Final = ErrorText(config.format_error, config.dump_error, config.load_error)
        self._renewers = renewers
        self._slot_pool = slot_pool
        self._after_settling = after_settling
        self._alone = threading.Lock()
        self._made: dict[str, VisitSettings] = {}
        self._lock = threading.Lock()

    def of(self, queue: Queue) -> VisitSettings:
        """Those of the queue's visits."""
        name = queue.worker.queue_name
        settings = self._made.get(name)
        if settings is not None and settings.worker is queue.worker:
            return settings
        with self._lock:
            # A cell of a notebook may have declared the worker anew.
            if name not in self._made or self._made[name].worker is not queue.worker:
                self._made[name] = self._new(queue.worker)
            return self._made[name]

    def _new(self, worker: type[Worker[Any]]) -> VisitSettings:
        config = self._config
        load = self._loader(worker)
        parts = worker, self._chain, load, self._texts.read, iterate_for(worker), self._run_limits_of(worker)
        performer = Performer(*parts)
        if counts_skew(worker, config):
            from lowkiq_lambda.engine.skew import CountingPerformer, SkewCounter  # noqa: PLC0415 - few queues count

            counter = SkewCounter(worker.queue_name, self._clock)
            self._beside.append(counter.commands)
            performer = CountingPerformer(*parts, counter)
        timing = BatchTiming()
        return VisitSettings(
            worker=worker,
            performer=performer,
            texts=self._texts,
            timing=timing,
            renewers=self._renewers,
            clock=self._clock,
            owner=f"{socket.gethostname()}:{os.getpid()}",
            lease=self._lease_settings(worker),
            settle_interval=config.settle_interval,
            shutdown_timeout=config.shutdown_timeout,
            claim_payloads=config.claim_payloads,
            claim_bytes=config.claim_bytes,
            alone=self._alone,
            slots=self._slots_for(performer),
            limits=self._limits_for(worker),
            after_death=partial(self._tell_dead, worker),
            after_settling=self._after_settling,
            runs=self._runs_of(worker, f"{socket.gethostname()}:{os.getpid()}"),
            tuning=self._tuning_of(worker, timing),
            most_calls=at_most(worker.concurrency),
            most_ids=at_most(worker.batch_size),
        )

    def _tuning_of(self, worker: type[Worker[Any]], timing: BatchTiming) -> "Tuning | None":
        if isinstance(worker.concurrency, int) and isinstance(worker.batch_size, int):
            return None
        from lowkiq_lambda.engine.tuning import Tuning  # noqa: PLC0415 - only for workers with "auto"

        return Tuning.of(worker, timing, self._config)

    def _runs_of(self, worker: type[Worker[Any]], owner: str) -> "RunKeeper | None":
        if worker.keep_runs is None:
            return None
        from lowkiq_lambda.engine.runs import RunKeeper  # noqa: PLC0415 - only queues that keep runs have a use for it
        from lowkiq_lambda.jobs.keep_runs import KeepRuns  # noqa: PLC0415 - as above

        return RunKeeper(KeepRuns.of(worker.keep_runs), owner, self._config.release or "", self._texts.read)

    def _run_limits_of(self, worker: type[Worker[Any]]) -> "RunLimits | None":
        if worker.max_run_time is None:
            return None
        from lowkiq_lambda.engine.run_time import RunLimits  # noqa: PLC0415 - only for workers with a limit

        return RunLimits(worker, self._clock.monotonic)

    def _slots_for(self, performer: Performer) -> "Slots | None":
        """The slots for batches of the worker; None if each runs in the thread of its visit."""
        worker = performer.worker
        return (
            self._slot_pool().slots_for(performer) if at_most(worker.concurrency) > 1 or is_coroutine(worker) else None
        )

    def _limits_for(self, worker: type[Worker[Any]]) -> "Limits | None":
        # If others wait for the queue its visits have permits, so that they are seen.
        workers = [queue.worker for queue in self._queues.values()]
        is_awaited = any(worker.queue_name in queues_before(other, workers) for other in workers)
        if worker.max_running is None and worker.rate is None and not (queues_before(worker, workers) or is_awaited):
            return None
        from lowkiq_lambda.engine.admission import limits_of  # noqa: PLC0415 - only limited queues have a use for it

        return limits_of(worker)

    def _lease_settings(self, worker: type[Worker[Any]]) -> LeaseSettings:
        config = self._config
        crashed = self._texts.dump(CRASHED)
        return LeaseSettings(config.lease_ttl, worker.merge, config.morgue, crashed, worker.dead_head)

    def _tell_dead(self, worker: type[Worker[Any]], dead: Sequence[Death]) -> None:
        Deaths(worker, self._loader(worker), self._texts, self._clock).tell(dead)

    def _loader(self, worker: type[Worker[Any]]) -> LoadPayload:
        load = self._config.load_payload
        if worker.payload is None:
            return load or load_json
        from lowkiq_lambda.declare.payloads import loader  # noqa: PLC0415 - only where a type is declared: cold start

        return loader(worker.payload, load)


def batches_of(deliveries: Sequence[Delivery], batch_size: int) -> list[list[Delivery]]:
    """Batches of at most `batch_size`, by the time of their first job.

    Fresh jobs and jobs in retry don't meet in a batch, and an id whose last failure was its own is alone in its
    batch: it would only take others down with it. One that exited comes last, too.
    """
    if all(delivery.retry_count < 0 and delivery.exit_count is None for delivery in deliveries):
        return _cut(deliveries, batch_size)
    others = [delivery for delivery in deliveries if delivery.exit_count is None]
    fresh = [delivery for delivery in others if delivery.retry_count < 0]
    failed = [delivery for delivery in others if delivery.retry_count >= 0 and not delivery.blamed]
    blamed = [delivery for delivery in others if delivery.retry_count >= 0 and delivery.blamed]
    batches = [*_cut(fresh, batch_size), *_cut(failed, batch_size), *_cut(blamed, 1)]
    exited = [delivery for delivery in deliveries if delivery.exit_count is not None]
    return [
        *sorted(batches, key=lambda batch: batch[0].due_at),
        *_cut(sorted(exited, key=lambda delivery: delivery.exit_count or 0), 1),
    ]


def _cut(deliveries: Sequence[Delivery], size: int) -> list[list[Delivery]]:
    return [[*deliveries[at : at + size]] for at in range(0, len(deliveries), size)]
