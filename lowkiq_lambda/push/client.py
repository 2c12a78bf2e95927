"""`push_many`: has jobs checked, and hands them to their shards."""

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.push.checking import checker_of
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.protocols import Jobs
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.chunks import waves_of
from lowkiq_lambda.store.shard.keys import UNIQUE
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.pushing import Pusher

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.waking import Waker


class PushClient:
    """Pushes the jobs of one worker. `Pusher` documents `declare` and `waker`.

    `observers`: those of the app.
    """

    def __init__(  # noqa: PLR0913 - the settings, the queue, and two hooks
        self,
        config: Config,
        backend: Backend,
        worker: type[Worker[Any]],
        shards: QueueShards,
        *,
        declare: Callable[[], QueueShards],
        waker: "Waker | None",
        observers: Callable[[], Sequence[Any]] = tuple,
    ) -> None:
        self.shards: Final = shards
        """Those that the queue had when the client was made."""
        self._worker = worker
        self._observers = observers
        self._checker = checker_of(config, shards, lambda: backend.now(shards[0]), worker)
        debounce = worker.debounce
        self.pusher = Pusher(
            backend,
            worker.queue_name,
            worker.merge,
            config.redis_retry_for,
            declare=declare,
            waker=waker,
            debounce=struct.pack(">dd", debounce.quiet, debounce.at_most) if debounce else b"",
            max_waiting=worker.max_waiting,
        )

    def push(self, jobs: Jobs) -> list[Pushed]:
        """Check all jobs, then write them: a bad one fails the call before anything is written."""
        # A middleware may hand on an iterator.
        jobs = jobs if isinstance(jobs, list) else list(jobs)
        checked = self._checker.check_all(jobs)
        waves = waves_of(self.shards, checked.by_shard, checked.features)
        look_at = partial(self.call_on_conflict, jobs) if UNIQUE in checked.features else None
        return self.pusher.push(waves, len(jobs), look_at) if waves else []

    def call_on_conflict(self, jobs: Sequence[Mapping[str, Any]], results: Sequence[Pushed | None]) -> None:
        """Call the functions and the observers of jobs that were dropped, as their id had work."""
        from lowkiq_lambda.push.conflicts import call_on_conflict  # noqa: PLC0415 - few pushes can be dropped

        call_on_conflict(self._worker, jobs, results, self._observers())
