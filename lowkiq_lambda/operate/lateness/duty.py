"""The duty that watches queues: it keeps a sample a minute and a digest an hour, and tells why one is late."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from lowkiq_lambda.declare.duty import WATCH
from lowkiq_lambda.declare.worker import counts_skew
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.operate.inspect.processes import Processes
from lowkiq_lambda.operate.inspect.sampling import LookedAt, read_sampled, sampling
from lowkiq_lambda.operate.lateness.hours import digest_of, going_on
from lowkiq_lambda.operate.lateness.kept import OpenHour, read_day, read_open, write, writing
from lowkiq_lambda.operate.lateness.look import QueueLook
from lowkiq_lambda.operate.lateness.samples import sample_of
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.store.shard.backend import ExtraCommand
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.lateness import HourDigest, Lateness
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueMetrics

if TYPE_CHECKING:
    from lowkiq_lambda.base.clock import Clock
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.engine.queue import Queue

logger = logging.getLogger(__name__)


class WatchDuty:
    """Once a minute: six round trips for all queues of the app, and some ten for each that is late."""

    name: Final = WATCH
    every: Final = 60.0

    def __init__(self, core: "Core") -> None:
        self._core = core

    def run(self, remaining: Callable[[], float]) -> dict[str, str]:
        """Why queues are late, by their names; those that are not are left out. Raises BackendError."""
        core = self._core
        backend, retry_for = core.backend, core.config.redis_retry_for
        queues, _ = core.queues.all_current()
        if not queues:
            return {}
        reader = ShardReader(backend, retry_for)
        read = queue_metrics(reader, [queue.shards for queue in queues.values()])
        metrics = [*apart(reader, [queue.worker for queue in queues.values()], read)]
        processes = Processes(backend, retry_for)
        with Together() as side:
            opened = side.look(read_open, backend, [*queues], retry_for)
            there = side.look(read_sampled, backend, [*core.queues], retry_for)
        looked = [
            LookedAt(name, reader.backend.now(queue.shards[0]), queue.shards.layout, numbers)
            for (name, queue), numbers in zip(queues.items(), metrics, strict=True)
        ]
        commands = [*sampling(backend, there.result, looked, processes)]
        causes: dict[str, str] = {}
        for queue, numbers, open_hour in zip(queues.values(), metrics, opened.result, strict=True):
            if remaining() <= 0:
                break
            late, written = self._watched(queue, numbers, processes, open_hour)
            commands += written
            if late is not None:
                causes[late.queue] = late.cause or "not known"
        write(backend, commands, retry_for)
        return causes

    def _watched(
        self, queue: "Queue", metrics: QueueMetrics, processes: Sequence[Process], before: OpenHour | None
    ) -> tuple[Lateness | None, list[ExtraCommand]]:
        """Why the queue is late, None if it is not; and what is to be written of it."""
        core, name = self._core, queue.worker.queue_name
        backend, retry_for = core.backend, core.config.redis_retry_for
        look = QueueLook(core, ShardReader(backend, retry_for, queue.shards), queue.worker, metrics, processes)
        sample = sample_of(look.now, queue.shards.layout, metrics, processes, name)
        now = going_on(before, sample)
        over: list[HourDigest] = []
        if before is not None and before.number != now.number:
            ended = digest_of(backend, name, before, retry_for)
            if counts_skew(queue.worker, core.config):
                from lowkiq_lambda.engine.skew import read_shares  # noqa: PLC0415 - few queues count

                shares = read_shares(backend, name, [ended.at], retry_for)
                skew = shares and (round(10_000 * share) for share in shares.values())
                ended = msgspec.structs.replace(ended, skew=skew and tuple(filter(None, skew)))
            over = [*read_day(backend, name, ended.at, retry_for), ended]
        late = look.lateness() if look.is_late else None
        if late is None:
            now = msgspec.structs.replace(now, cause="")
        # An operator at work knows; and a moment alone is not sure enough for a warning.
        elif late.minutes and late.cause not in {None, "somebody is at it", now.cause}:
            now = msgspec.structs.replace(now, cause=late.cause)
            fields = {"queue": name, "cause": late.cause, "advice": late.advice}
            logger.warning("a queue is late: %s", late.says, extra=fields)
        return late, [*writing(backend.prefix, name, sample, now, over)]


def watch_runner(core: "Core", clock: "Clock") -> DutyRunner:
    """The runner of the duty, which does not wait for other duties."""
    return DutyRunner(core, [WatchDuty(core)], clock, name=WATCH)
