"""How many calls a holder makes side by side, and how many ids each has, where a worker leaves both to the library.

Nothing moves, so the holder decides alone, by what it has just measured. The present numbers lie with the mean time of
a batch, and the next holder goes on from them. All else is forgotten with the process.
"""

import logging
from collections.abc import Callable
from threading import Lock
from time import process_time
from typing import Any, Self

import msgspec

from lowkiq_lambda.declare.worker import Worker, is_coroutine
from lowkiq_lambda.engine.budget import BatchTiming
from lowkiq_lambda.engine.calls_tuner import CallsTuner
from lowkiq_lambda.engine.ids_tuner import IdsTuner
from lowkiq_lambda.engine.settled import Settled
from lowkiq_lambda.jobs.auto import Auto
from lowkiq_lambda.settings.config import Config

logger = logging.getLogger(__name__)


class Tuning:
    """Both of one queue in a process. The visits to its shards share it, in several threads."""

    def __init__(
        self,
        queue_name: str,
        timing: BatchTiming,
        calls: CallsTuner | None,
        ids: IdsTuner | None,
        processor: Callable[[], float] | None = None,
    ) -> None:
        self._queue_name, self._timing = queue_name, timing
        self._calls, self._ids = calls, ids
        self._lock = Lock()
        self._processor = processor
        """Seconds of the process: coroutines share a thread, so that a thread cannot tell those of one."""
        self._worked = 0.0 if processor is None else processor()
        self._has_begun = False

    @classmethod
    def of(cls, worker: type[Worker[Any]], timing: BatchTiming, config: Config) -> Self:
        """For a worker that leaves a number to the library."""
        calls = ids = None
        if isinstance(auto := worker.concurrency, Auto):
            # Pools are made once, for all threads.
            calls = CallsTuner(auto.least, min(auto.most, max(1, config.calls_at_once // config.threads_per_node)))
        if isinstance(auto := worker.batch_size, Auto):
            ids = IdsTuner(auto, config.lease_ttl)
        return cls(worker.queue_name, timing, calls, ids, process_time if is_coroutine(worker) else None)

    @property
    def calls(self) -> int | None:
        """How many calls side by side; None if the worker says that itself."""
        return None if self._calls is None else self._calls.calls

    @property
    def ids(self) -> int | None:
        """How many ids in a call; None if the worker says that itself."""
        return None if self._ids is None else self._ids.ids

    def acquired(self, at: float, *, is_recovery: bool) -> None:
        """A shard is held from now on (monotonic): go on from what another process has come to, if this one has not.

        `is_recovery`: whether its holder died.
        """
        with self._lock:
            if self._calls is not None and not self._has_begun:
                self._calls.resume(self._timing.calls)
            if self._ids is not None and not self._has_begun:
                self._ids.resume(self._timing.ids)
            if self._ids is not None and is_recovery:
                self._ids.hurt(at)
            self._has_begun = True

    def note(self, ids: int, took: float) -> None:
        """A call with so many ids ended well after so many seconds."""
        with self._lock:
            if self._calls is not None:
                self._calls.note(ids, took)
            if self._ids is not None:
                self._ids.note(ids, took)

    def settled(self, settled: Settled) -> None:
        """Outcomes were written: decide, and keep it with the timing."""
        with self._lock:
            if self._processor is not None:
                worked = self._processor()
                share = (worked - self._worked) / settled.busy if settled.busy > 0 else None
                settled, self._worked = msgspec.structs.replace(settled, computing=share), worked
            if self._calls is not None:
                if self._calls.settled(settled):
                    text = "%s: concurrency stays at its bound of %d, though slots are full and more is due"
                    logger.info(text, self._queue_name, self._calls.calls)
                self._timing.calls = self._calls.calls
            if self._ids is not None:
                self._ids.settled(settled)
                self._timing.ids = self._ids.ids
