"""The processes of a race: each drains the queue until it is killed."""

import asyncio
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from lowkiq_lambda import Batch, BatchJob, Config, Lowkiq, LowkiqError, Worker
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.store.shard import backend
from tests.chaos.race.mutants import scripts_of
from tests.kit.acknowledged import Acknowledged
from tests.kit.trust import has_lost_its_lease
from tests.proof.history import Recorder

SHARDS = 2
ITEMS = 3
_pause = threading.Event()


class Track(msgspec.Struct, frozen=True):
    """Where a race takes place. `kind`: threads, coroutines, or items, of jobs with a cursor."""

    url: str
    queue_name: str
    path: Path
    kind: str
    lease_ttl: float
    mutant: str = ""

    def app(self) -> Lowkiq:
        """An app of this process, with its worker; where there is a mutant, the process is one from now on."""
        if self.mutant:
            vars(backend)["script"] = scripts_of(self.mutant)
        app = Lowkiq(Config(redis_url=self.url, lease_ttl=self.lease_ttl, claim_payloads=40, settle_interval=0.02))
        history = Recorder(self.path)
        app.observers.append(Acknowledged(history))
        handlers: dict[str, Any] = Handlers(history, random.Random(os.getpid())).of(self.kind)
        fields = {
            "queue_name": self.queue_name,
            "shards_count": SHARDS,
            "concurrency": 8,
            "payloads_at_once": 3,
            "max_retry_count": 1_000,
            "retry_in": lambda _self, _count: 0.01,
        }
        app.worker(type("Racing", (Worker,), fields | handlers))
        return app


class Handlers:
    """Of each kind. Most end well after some milliseconds, a few take long, fail, or exit."""

    def __init__(self, history: Recorder, rng: random.Random) -> None:
        self._history = history
        self._rng = rng

    def of(self, kind: str) -> dict[str, Any]:
        """What the worker is made of."""

        async def await_it(_self: Worker, batch: Batch) -> None:
            await self._await(batch)

        def iterate(_self: Worker, job: BatchJob) -> Iterator[int]:
            yield from self._iterate(job)

        return {
            "threads": {"batch_size": 2, "perform": lambda _self, batch: self._perform(batch)},
            "coroutines": {"batch_size": 2, "perform": await_it},
            "items": {"perform_job": iterate, "turn": 0.05},
        }[kind]

    def _perform(self, batch: Batch) -> None:
        self._begin(batch)
        _pause.wait(self._seconds())
        self._end(batch)

    async def _await(self, batch: Batch) -> None:
        self._begin(batch)
        try:
            await asyncio.sleep(self._seconds())
        except asyncio.CancelledError:
            self._note("failed", batch)
            raise
        self._end(batch)

    def _iterate(self, job: BatchJob) -> Iterator[int]:
        given = {job.id: [*job.payloads]}
        self._note("begin", given, job)
        is_done = False
        try:
            for item in range(job.cursor or 0, ITEMS):
                _pause.wait(self._seconds() / ITEMS)
                if self._rng.random() < 0.02:
                    raise ValueError(job.id)
                yield item + 1
            is_done = True
        finally:
            self._note("done" if is_done else "failed", given, job)

    def _seconds(self) -> float:
        return self._rng.expovariate(100) if self._rng.random() < 0.98 else 0.3

    def _begin(self, batch: Batch) -> None:
        self._note("begin", batch)

    def _end(self, batch: Batch) -> None:
        fate = self._rng.random()
        if fate < 0.01:
            self._note("failed", batch)
            raise SystemExit
        if fate < 0.02:
            self._note("failed", batch)
            raise ValueError("nobody is named")
        failed = [job_id for job_id in batch if self._rng.random() < 0.05]
        self._note("failed", {job_id: batch[job_id] for job_id in failed}, batch)
        self._note("done", {job_id: batch[job_id] for job_id in batch if job_id not in failed}, batch)
        for job_id in failed:
            batch.fail(job_id, "by chance")

    def _note(self, what: str, given: Any, context: Any = None) -> None:
        # First the time: what happens to the lease behind it says nothing of what was before.
        at, context = time.monotonic(), context or given
        is_stale, token = has_lost_its_lease(context), context.token
        if what != "begin" and context.stopping:
            # What it has done may not be settled, without any other harm.
            self._history.write("fault", at=at)
        for job_id, numbers in given.items():
            if what == "begin":
                scope = str(shard_for(job_id, SHARDS))
                self._history.write("begin", job_id, numbers, at=at, token=token, scope=scope)
            else:
                self._history.write("end", job_id, at=at, outcome="stale" if is_stale else what, token=token)


def drain(track: Track) -> None:
    """Drain again and again; with SIGUSR1 end as a daemon does whose time to stop is over."""
    # What they do on purpose is no news.
    logging.disable()
    app, leaving = track.app(), threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: leaving.set())
    threading.Thread(target=_leave, args=(app, leaving), daemon=True).start()
    while True:
        with suppress(LowkiqError, SystemExit, asyncio.CancelledError):
            app.drain(seconds=0.7)
        _pause.wait(0.01)


def _leave(app: Lowkiq, leaving: threading.Event) -> None:
    leaving.wait()
    app.core.drains.drainer.abandon_all(1.0)
    os._exit(9)
