"""Jobs that wait in this process until Redis can take them: first in, first out, in each shard, within bounds."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Final, Generic, NamedTuple, TypeVar

from lowkiq_lambda.base.errors import BufferFull, LowkiqError
from lowkiq_lambda.store.shard.chunks import CHUNK_BYTES, CHUNK_JOBS, NewJob
from lowkiq_lambda.store.shard.keys import ShardRef

BUFFER_BYTES: Final = 16 * 1024 * 1024
_OVERHEAD: Final = 64
"""Bytes that a job counts for beside its id and payload, so that jobs without a payload do not come for nothing."""

Way = TypeVar("Way")
"""How the jobs of a queue get to Redis; the buffer only keeps it with them."""


class Kept(NamedTuple):
    """A job that waits: as it was checked, as it was given, and the score that it takes if it was given none."""

    new: NewJob
    given: Mapping[str, Any]
    since: float
    number: int
    """Counts the jobs of the process that were kept."""

    @property
    def size(self) -> int:
        """The bytes that it counts for."""
        return len(self.new.packed) + len(self.new.id) + _OVERHEAD


class BufferedJobs:
    """Jobs of one shard that are sent together, under one token.

    `was_sent`: it may have been written already, so no job joins it any more.
    """

    __slots__ = ("is_travelling", "jobs", "shard", "size", "token", "was_sent")

    def __init__(self, shard: ShardRef, token: bytes, jobs: Iterable[Kept], *, was_sent: bool) -> None:
        self.shard = shard
        self.token = token
        self.jobs = deque(jobs)
        self.size = sum(job.size for job in self.jobs)
        self.was_sent = was_sent
        self.is_travelling = False

    def has_room_for(self, other: "BufferedJobs") -> bool:
        """Whether the jobs of the other may join these."""
        if self.was_sent or other.was_sent or self.shard.features != other.shard.features:
            return False
        return len(self.jobs) + len(other.jobs) <= CHUNK_JOBS and self.size + other.size <= CHUNK_BYTES


class Line(Generic[Way]):
    """The buffered jobs of one shard, by the call that sends them, oldest first."""

    __slots__ = ("buffered", "error", "way")

    def __init__(self, way: Way) -> None:
        self.way = way
        self.buffered: deque[BufferedJobs] = deque()
        self.error: LowkiqError | None = None
        """Why the last attempt failed."""


class Lost(NamedTuple, Generic[Way]):
    """A job that was given up, and what its way was."""

    way: Way
    job: Kept


class JobBuffer(Generic[Way]):
    """The lines of one process. Safe to use from several threads."""

    def __init__(self, max_jobs: int, *, drops_oldest: bool) -> None:
        self._max_jobs = max_jobs
        self._drops_oldest = drops_oldest
        self._lines: dict[ShardRef, Line[Way]] = {}
        """By shard, each with some jobs; that of the line that has waited longest is not always the first."""
        self._lock = Lock()
        self._size = 0
        self.jobs = 0
        """How many wait."""

    def line_of(self, shard: ShardRef) -> Line[Way] | None:
        """The line of a shard for which something waits."""
        return self._lines.get(shard)

    def lines(self) -> dict[ShardRef, Line[Way]]:
        """The lines by their shards, as of now."""
        with self._lock:
            return dict(self._lines)

    def add(self, way: Way, buffered: Sequence[BufferedJobs]) -> list[Lost[Way]]:
        """Put these jobs after those that wait, all of them or none; the jobs that gave way. Raises BufferFull."""
        with self._lock:
            if not self._drops_oldest:
                self._refuse_if_full(buffered)
            for buffered_jobs in buffered:
                self._append(way, buffered_jobs)
            return list(self._drop_oldest())

    def start(self, shards: Iterable[ShardRef]) -> list[BufferedJobs]:
        """The first buffered jobs of each shard, which are on their way until the call of `end`."""
        with self._lock:
            buffered = [line.buffered[0] for shard in shards if (line := self._lines.get(shard))]
            for buffered_jobs in buffered:
                buffered_jobs.was_sent = buffered_jobs.is_travelling = True
            return buffered

    def end(self, buffered_jobs: BufferedJobs, error: LowkiqError | None, written: int = 0) -> None:
        """The buffered jobs were written, or stay the first of their shard for this error, but the first `written`."""
        with self._lock:
            buffered_jobs.is_travelling = False
            line = self._lines.get(buffered_jobs.shard)
            if line is None or line.buffered[0] is not buffered_jobs:
                return  # it was given up meanwhile
            line.error = error
            for _ in range(written if error else 0):
                job = buffered_jobs.jobs.popleft()
                buffered_jobs.size -= job.size
                self._count(buffered_jobs, -1, -job.size)
            if error is None:
                line.buffered.popleft()
                self._count(buffered_jobs, -len(buffered_jobs.jobs), -buffered_jobs.size)

    def give_up(self) -> list[Lost[Way]]:
        """All jobs that wait, which wait no longer."""
        with self._lock:
            lost = [
                Lost(line.way, job)
                for line in self._lines.values()
                for buffered_jobs in line.buffered
                for job in buffered_jobs.jobs
            ]
            self._lines.clear()
            self.jobs = self._size = 0
            return lost

    def _refuse_if_full(self, buffered: Sequence[BufferedJobs]) -> None:
        jobs, size = (
            sum(len(buffered_jobs.jobs) for buffered_jobs in buffered),
            sum(buffered_jobs.size for buffered_jobs in buffered),
        )
        if self.jobs + jobs > self._max_jobs:
            bound = f"jobs={self._max_jobs:,}"
        elif self._size + size > BUFFER_BYTES:
            bound = f"{BUFFER_BYTES:,} bytes"
        else:
            return
        raise BufferFull(f"{BufferFull()} ({self.jobs:,} jobs wait, {jobs:,} more do not fit: {bound})")

    def _append(self, way: Way, buffered_jobs: BufferedJobs) -> None:
        line = self._lines.setdefault(buffered_jobs.shard, Line(way))
        self.jobs += len(buffered_jobs.jobs)
        self._size += buffered_jobs.size
        last = line.buffered[-1] if line.buffered else None
        if last and last.has_room_for(buffered_jobs):
            last.jobs.extend(buffered_jobs.jobs)
            last.size += buffered_jobs.size
        else:
            line.buffered.append(buffered_jobs)

    def _drop_oldest(self) -> Iterator[Lost[Way]]:
        while self.jobs > self._max_jobs or self._size > BUFFER_BYTES:
            # One that is on its way is soon written, and must not be told to be lost.
            waiting = [
                (buffered_jobs.jobs[0].number, shard, buffered_jobs)
                for shard, line in self._lines.items()
                for buffered_jobs in line.buffered
                if not buffered_jobs.is_travelling
            ]
            if not waiting:
                return
            _, shard, buffered_jobs = min(waiting, key=lambda one: one[0])
            way, job = self._lines[shard].way, buffered_jobs.jobs.popleft()
            if not buffered_jobs.jobs:
                self._lines[shard].buffered.remove(buffered_jobs)
            buffered_jobs.size -= job.size
            self._count(buffered_jobs, -1, -job.size)
            yield Lost(way, job)

    def _count(self, buffered_jobs: BufferedJobs, jobs: int, size: int) -> None:
        self.jobs += jobs
        self._size += size
        if not self._lines[buffered_jobs.shard].buffered:
            del self._lines[buffered_jobs.shard]
