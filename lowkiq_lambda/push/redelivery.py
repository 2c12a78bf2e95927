"""Delivers what waits in the buffer: by a thread that lives while something does, by the next push, by `flush`."""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.push.buffer import BufferedJobs, JobBuffer, Line, Lost
from lowkiq_lambda.push.client import PushClient
from lowkiq_lambda.push.way import Way
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.server.faults import backoff
from lowkiq_lambda.store.shard.chunks import Chunk, scored
from lowkiq_lambda.store.shard.keys import UNIQUE, ShardRef
from lowkiq_lambda.store.shard.pushing import Unwritten

if TYPE_CHECKING:
    from lowkiq_lambda.declare.worker import Worker
    from lowkiq_lambda.jobs.job import Pushed

logger = logging.getLogger(__name__)

LAST_FLUSH: Final = 5.0
"""Seconds for which a process that ends tries to deliver what waits."""


Lines: TypeAlias = dict[ShardRef, Line[Way]]


@dataclass(eq=False, slots=True)
class _Waiting:
    """The buffer, locks and thread of one process; a forked child begins with new ones."""

    buffer: JobBuffer[Way]
    pid: int = field(default_factory=os.getpid)
    delivering: threading.Lock = field(default_factory=threading.Lock)
    changing: threading.Lock = field(default_factory=threading.Lock)
    news: threading.Event = field(default_factory=threading.Event)
    """Set when Redis may be back, and when the thread is to look again."""
    thread: threading.Thread | None = None
    away: frozenset[str] = frozenset()
    """The nodes that the last attempt could not reach: no push tries them while something waits."""
    attempts: int = 0
    """In a row that delivered nothing."""
    rest_until: float = 0.0
    """When a push may try again (monotonic)."""
    began_at: float = 0.0
    """Since when something waits (monotonic)."""


class Redelivery:
    """The buffer of an app, and who empties it. `has_thread`: else that is left to pushes and `flush`."""

    def __init__(self, config: Config, clock: Clock, *, has_thread: bool) -> None:
        self._config = config
        self._clock = clock
        self._has_thread = has_thread
        self._rng = Random()  # noqa: S311 - spreads attempts in time, protects nothing
        self._ours = self._nothing()
        self._closes_at_exit = False

    @property
    def _waiting(self) -> _Waiting:
        # Asked of the system: code that is not Python's forks, too. The locks of the parent may be held for ever.
        if self._ours.pid != os.getpid():
            self._ours = self._nothing()
        return self._ours

    def _nothing(self) -> _Waiting:
        bounds = self._config.buffer
        return _Waiting(JobBuffer(bounds.jobs, drops_oldest=bounds.full == "drop_oldest"))

    @property
    def jobs(self) -> int:
        """The number of jobs that wait."""
        return self._waiting.buffer.jobs

    def keeps_back(self, way: Way, shard: ShardRef, shards: Collection[ShardRef]) -> bool:
        """Whether a push to the shard has to wait, too: to stay behind waiting jobs, or because Redis is unreachable.

        `shards`: those of the queue. A job that waits for another shard may have any id of the queue. Re-raises the
        error that blocks the shard's jobs if waiting cannot fix it.
        """
        waiting = self._waiting
        if not waiting.buffer.jobs:
            return False
        if line := waiting.buffer.line_of(shard):
            if line.error and not isinstance(line.error, BackendUnavailable):
                raise line.error
            return True
        if any(other.queue_name == shard.queue_name and other not in shards for other in waiting.buffer.lines()):
            return True
        return bool(waiting.away) and way.node_of(shard) in waiting.away

    def keep(self, way: Way, buffered: Sequence[BufferedJobs]) -> None:
        """Keep the jobs for later. Raises BufferFull, and then keeps none."""
        waiting = self._waiting
        with waiting.changing:
            was_empty = not waiting.buffer.jobs
            dropped_jobs = waiting.buffer.add(way, buffered)
            if was_empty:
                waiting.began_at = self._clock.monotonic()
            if not self._closes_at_exit:
                atexit.register(self.close)
                self._closes_at_exit = True
            if self._has_thread and (waiting.thread is None or not waiting.thread.is_alive()):
                waiting.thread = threading.Thread(target=self._run, name="lowkiq-redelivery", daemon=True)
                # If the interpreter is about to end, no thread begins any more: what waits is flushed then.
                with suppress(RuntimeError):
                    waiting.thread.start()
        if was_empty:
            logger.warning("Redis is unreachable: pushed jobs are kept in this process until it answers")
        self._lose(dropped_jobs, "newer jobs took their place")
        self._call("on_buffered", self._config.buffer.on_buffered, waiting.buffer.jobs)

    def failed(self, way: Way, unwritten: Unwritten) -> None:
        """A push could not reach the servers of what it tried to write."""
        waiting = self._waiting
        tried = [chunk for chunk in unwritten.chunks if chunk.token in unwritten.errors]
        waiting.away |= {way.node_of(chunk.shard) for chunk in tried or unwritten.chunks}
        waiting.rest_until = self._clock.monotonic() + backoff(0, self._rng)

    def try_again(self) -> None:
        """Deliver waiting jobs, if no other thread does and the last attempt is some time ago."""
        waiting = self._waiting
        if not waiting.buffer.jobs or self._has_thread or self._clock.monotonic() < waiting.rest_until:
            return
        if waiting.delivering.acquire(blocking=False):
            try:
                self._deliver(waiting)
            finally:
                waiting.delivering.release()

    def flush(self, seconds: float) -> int:
        """Deliver what waits, in so many seconds; how many jobs are left. The last attempt may take longer."""
        waiting = self._waiting
        until = self._clock.monotonic() + seconds
        while waiting.buffer.jobs:
            left = until - self._clock.monotonic()
            # Another thread may hang in an attempt of its own.
            if waiting.delivering.acquire(timeout=max(0.0, left)):
                try:
                    self._deliver(waiting)
                finally:
                    waiting.delivering.release()
            left = until - self._clock.monotonic()
            if left <= 0 or not waiting.buffer.jobs:
                break
            self._clock.sleep(min(left, backoff(waiting.attempts, self._rng)))
        return waiting.buffer.jobs

    def close(self) -> None:
        """Flush, and give up what is left: the process ends."""
        if self.jobs and self.flush(LAST_FLUSH):
            self.give_up()

    def give_up(self) -> None:
        """Tell `on_lost` what waits, and keep it no longer."""
        self._lose(self._waiting.buffer.give_up(), "the process ends")

    def _run(self) -> None:
        waiting = self._waiting
        while True:
            waiting.news.wait(backoff(waiting.attempts, self._rng))
            waiting.news.clear()
            try:
                with waiting.delivering:
                    self._deliver(waiting)
            except Exception:
                logger.exception("what waits for Redis could not be delivered; the next attempt follows")
                waiting.attempts += 1
            with waiting.changing:
                if not waiting.buffer.jobs:
                    waiting.thread = None
                    return

    def _deliver(self, waiting: _Waiting) -> None:
        """Send the first buffered jobs of each shard, and the next ones of those that took it."""
        began_at, before = self._clock.monotonic(), waiting.buffer.jobs
        if not before:
            return
        by_way: dict[Way, Lines] = {}
        for shard, line in waiting.buffer.lines().items():
            by_way.setdefault(line.way, {})[shard] = line
        reached, unreached = set[str](), set[str]()
        for way, lines in by_way.items():
            for shard, error in self._deliver_of(waiting.buffer, way, lines):
                (unreached if isinstance(error, BackendUnavailable) else reached).add(way.node_of(shard))
        waiting.away = frozenset(unreached - reached)
        ended_at = self._clock.monotonic()
        waiting.attempts = 0 if waiting.buffer.jobs < before else waiting.attempts + 1
        # An attempt that hung for seconds is not followed by the next one at once.
        waiting.rest_until = ended_at + max(backoff(waiting.attempts, self._rng), ended_at - began_at)
        if not waiting.buffer.jobs:
            logger.warning(
                "Redis is back: all jobs that were kept are delivered",
                extra={"seconds": round(ended_at - waiting.began_at, 3)},
            )

    def _deliver_of(
        self, buffer: JobBuffer[Way], way: Way, lines: Lines
    ) -> Iterator[tuple[ShardRef, LowkiqError | None]]:
        """The result of each shard's last attempt."""
        try:
            client = way.open()
        except LowkiqError as error:
            for buffered_jobs in buffer.start(lines):
                self._tell(buffered_jobs.shard, lines[buffered_jobs.shard], error)
                buffer.end(buffered_jobs, error)
                yield buffered_jobs.shard, error
            return
        while lines:
            buffered = buffer.start(_first(lines, client.shards))
            errors, written = _send(client, buffered)
            for buffered_jobs in buffered:
                failure = errors.get(buffered_jobs.token)
                self._tell(buffered_jobs.shard, lines[buffered_jobs.shard], failure)
                buffer.end(buffered_jobs, failure, written[buffered_jobs.token])
                yield buffered_jobs.shard, failure
            stuck = {buffered_jobs.shard for buffered_jobs in buffered if buffered_jobs.token in errors}
            if any(shard not in client.shards for shard in stuck):
                return
            lines = {shard: line for shard, line in lines.items() if shard not in stuck and line.buffered}

    def _tell(self, shard: ShardRef, line: Line[Way], error: LowkiqError | None) -> None:
        if error is None or isinstance(error, BackendUnavailable) or type(error) is type(line.error):
            return
        fields = {"queue": shard.queue_name, "shard": shard.number}
        logger.error("jobs that were kept cannot be delivered now: %s", error, extra=fields)

    def _lose(self, lost: Sequence[Lost[Way]], why: str) -> None:
        by_worker: dict[type[Worker[Any]], list[dict[str, Any]]] = {}
        for way, job in lost:
            resolved = {"score": job.since, **{name: value for name, value in job.given.items() if name != "delay"}}
            if job.new.due_at is not None:
                resolved["due_at"] = job.new.due_at
            by_worker.setdefault(way.worker, []).append(resolved)
        for worker, jobs in by_worker.items():
            fields = {"queue": worker.queue_name, "jobs": len(jobs)}
            logger.error("jobs that were kept for Redis are given up: %s", why, extra=fields)
            self._call("on_lost", self._config.buffer.on_lost, worker, jobs)

    def _call(self, name: str, hook: Callable[..., object], *arguments: object) -> None:
        try:
            hook(*arguments)
        except Exception:
            logger.exception("%s raised", name)


def _first(lines: Lines, shards: Collection[ShardRef]) -> Iterable[ShardRef]:
    """The shards whose turn it is: those that the queue had before it was resharded go first, then all others."""
    left_behind = [shard for shard in lines if shard not in shards]
    return [shard for shard in left_behind if shard.shards_count == left_behind[0].shards_count] or lines


def _send(client: PushClient, buffered: Sequence[BufferedJobs]) -> tuple[dict[bytes, LowkiqError], Mapping[bytes, int]]:
    """One attempt for each of the buffered jobs; by token, the errors, and how many of the first jobs were written."""
    wave: list[Chunk] = []
    positions = count()
    for buffered_jobs in buffered:
        # At the places that they would have had, had Redis been there.
        jobs = [
            job.new._replace(position=next(positions), packed=scored(job.new.packed, job.since))
            for job in buffered_jobs.jobs
        ]
        wave.append(Chunk(buffered_jobs.shard, buffered_jobs.token, jobs))
    results: list[Pushed | None] = [None] * next(positions)
    errors = client.pusher.write([wave], results, 0.0).errors
    if any(UNIQUE in chunk.shard.features for chunk in wave):
        client.call_on_conflict([job.given for buffered_jobs in buffered for job in buffered_jobs.jobs], results)
    # The parts of what was too much at once are sent in order, up to the first that is refused.
    return errors, {chunk.token: sum(results[job.position] is not None for job in chunk.jobs) for chunk in wave}
