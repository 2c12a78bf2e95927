"""Pushes that outlive an outage: what Redis cannot take now is kept in this process, or handed to an `Overflow`."""

import math
from collections.abc import Mapping, Sequence
from itertools import count
from random import Random
from typing import Any, Final, TypeAlias

from lowkiq_lambda.base.errors import BackendError, BackendUnavailable, BufferFull, LowkiqError, PushInterrupted
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.push.buffer import BufferedJobs, Kept
from lowkiq_lambda.push.checking import checker_of
from lowkiq_lambda.push.redelivery import Redelivery
from lowkiq_lambda.push.way import MOST_AHEAD, Way
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.protocols import Buffer, Jobs, Overflow
from lowkiq_lambda.store.server.faults import backoff
from lowkiq_lambda.store.shard.chunks import Chunk, waves_of
from lowkiq_lambda.store.shard.keys import UNIQUE, ShardRef
from lowkiq_lambda.store.shard.pushing import Unwritten

PATIENCE: Final = 1.0
"""Seconds for which a push is tried again before its jobs are kept: for a connection that broke, not for an outage."""

_numbers = count()

Given: TypeAlias = Sequence[Mapping[str, Any]]
Results: TypeAlias = list[Pushed | None]


class BufferingClient:
    """Pushes the jobs of one worker; those that Redis cannot take now wait in this process."""

    def __init__(self, config: Config, way: Way, redelivery: Redelivery) -> None:
        self._config = config
        self._way = way
        self._redelivery = redelivery
        self._earliest: dict[ShardRef, float] = {}
        """The score that the next job takes, at least, so that it is not before those that were kept."""
        self._least = 0.0
        """The same of the shards that the queue had before."""
        self.go_by(way.queue)

    def go_by(self, queue: Queue) -> None:
        """The queue has other shards from now on, and may have another worker."""
        # An id may be in another shard by now, if no job of it may be before those that this process has pushed.
        self._least = max(self._least, self._way.latest_score(), *self._earliest.values())
        self._earliest.clear()
        self._way.queue = queue
        self.shards = queue.shards
        self._checker = checker_of(self._config, self.shards, self._now, queue.worker)

    def push(self, jobs: Jobs) -> list[Pushed]:
        """Check all jobs, then write them, or keep them. Raises JobError, and what waiting does not heal."""
        jobs = jobs if isinstance(jobs, list) else list(jobs)
        self._redelivery.try_again()
        checked = self._checker.check_all(jobs)
        waves = waves_of(self.shards, checked.by_shard, checked.features)
        shards = [self.shards[number] for number in checked.by_shard]
        waits = {shard for shard in shards if self._redelivery.keeps_back(self._way, shard, self.shards)}
        results: Results = [None] * len(jobs)
        # Before anything is written: a push that does not fit changes nothing then.
        self._keep([chunk for wave in waves for chunk in wave if chunk.shard in waits], {}, jobs, results)
        unwritten = self._write([[chunk for chunk in wave if chunk.shard not in waits] for wave in waves], results)
        if UNIQUE in checked.features:
            self._way.call_on_conflict(jobs, results)
        if unwritten.errors:
            self._keep_unwritten(unwritten, jobs, results)
        return [result for result in results if result is not None]

    def _write(self, waves: list[list[Chunk]], results: Results) -> Unwritten:
        waves = [wave for wave in waves if wave]
        if not waves:
            return Unwritten({}, [])
        try:
            return self._way.open().pusher.write(waves, results, PATIENCE)
        except LowkiqError as error:
            return _nothing_sent(error, waves)

    def _keep_unwritten(self, unwritten: Unwritten, jobs: Given, results: Results) -> None:
        _raise_unless_away(unwritten, results)
        self._redelivery.failed(self._way, unwritten)
        try:
            self._keep(unwritten.chunks, unwritten.errors, jobs, results)
        except BufferFull as error:
            raise unwritten.interrupted(results, error) from next(iter(unwritten.errors.values()))

    def _keep(
        self, chunks: Sequence[Chunk], errors: Mapping[bytes, LowkiqError], jobs: Given, results: Results
    ) -> None:
        """Keep the chunks for later, under their present tokens. Raises BufferFull."""
        if not chunks:
            return
        buffered, kept = [], []
        for chunk in chunks:
            since = self._score(chunk.shard, was_tried=chunk.token in errors)
            for job in chunk.jobs:
                at = since if job.due_at is None else job.due_at
                kept.append((job.position, Pushed(job.id, chunk.shard.number, merged=False, due_at=at, buffered=True)))
            waiting = [Kept(job, jobs[job.position], since, next(_numbers)) for job in chunk.jobs]
            buffered.append(BufferedJobs(chunk.shard, chunk.token, waiting, was_sent=chunk.token in errors))
        self._redelivery.keep(self._way, buffered)
        for position, pushed in kept:
            results[position] = pushed

    def _score(self, shard: ShardRef, *, was_tried: bool) -> float:
        """Of a job that was given none: now, but not before what this process pushed to the shard last.

        `was_tried`: the attempt may have written the job, with the score that the server gave it then.
        """
        before = self._earliest.get(shard, self._least)
        score = max(self._way.estimate(shard), self._way.earliest_score(shard), before)
        self._earliest[shard] = score + MOST_AHEAD if was_tried else score
        return score

    def _now(self) -> float:
        shard = self.shards[0]
        if not self._redelivery.jobs:
            try:
                return self._way.now(shard)
            except BackendError:
                pass
        return self._way.estimate(shard)


class OverflowingClient:
    """Pushes the jobs of one worker; those that Redis cannot take now go another way."""

    def __init__(self, config: Config, way: Way, overflow: Overflow) -> None:
        self._config = config
        self._way = way
        self.go_by(way.queue)
        self._overflow = overflow
        self._rng = Random()  # noqa: S311 - spreads attempts in time, protects nothing
        self._error: LowkiqError | None = None
        """Why Redis could not take the last push; None if it did."""
        self._attempts = 0
        self._rest_until = 0.0
        """When a push may try Redis again (monotonic)."""

    def go_by(self, queue: Queue) -> None:
        """The queue has other shards from now on, and may have another worker."""
        self._way.queue = queue
        self.shards = shards = queue.shards
        self._checker = checker_of(self._config, shards, lambda: self._way.estimate(shards[0]), queue.worker)

    def push(self, jobs: Jobs) -> list[Pushed]:
        """Check all jobs, then write them, or hand them over. Raises JobError, and what the overflow does."""
        jobs = jobs if isinstance(jobs, list) else list(jobs)
        checked = self._checker.check_all(jobs)
        results: Results = [None] * len(jobs)
        waves = waves_of(self.shards, checked.by_shard, checked.features)
        if not waves:
            return []
        if self._error and self._way.clock.monotonic() < self._rest_until:
            unwritten = _nothing_sent(self._error, waves)
        else:
            unwritten = self._write(waves, results)
        if UNIQUE in checked.features:
            self._way.call_on_conflict(jobs, results)
        if unwritten.chunks:
            self._hand_over(jobs, unwritten, results)
        return [result for result in results if result is not None]

    def _write(self, waves: list[list[Chunk]], results: Results) -> Unwritten:
        """Try Redis: in an outage once, and not again before as much time has passed as the attempt took."""
        began_at = self._way.clock.monotonic()
        # Others go past Redis meanwhile, in place of waiting for an answer, too.
        self._rest_until = math.inf if self._error else 0.0
        try:
            unwritten = self._way.open().pusher.write(waves, results, 0.0 if self._error else PATIENCE)
        except LowkiqError as error:
            unwritten = _nothing_sent(error, waves)
        finally:
            ended_at = self._way.clock.monotonic()
            self._rest_until = ended_at + max(backoff(self._attempts, self._rng), ended_at - began_at)
        errors = unwritten.errors.values()
        self._error = next((error for error in errors if isinstance(error, BackendUnavailable)), None)
        self._attempts = self._attempts + 1 if self._error else 0
        _raise_unless_away(unwritten, results)
        return unwritten

    def _hand_over(self, jobs: Given, unwritten: Unwritten, results: Results) -> None:
        left = [position for position, result in enumerate(results) if result is None]
        try:
            answers = self._overflow.take(self._way.worker, [jobs[position] for position in left])
        except PushInterrupted as error:
            raise _interrupted(error, left, unwritten, len(jobs)) from error
        except BackendError as error:
            failed = unwritten.interrupted(results, error)
            raise failed from failed.__cause__
        for position, pushed in zip(left, answers, strict=True):
            results[position] = pushed


ReliableClient: TypeAlias = BufferingClient | OverflowingClient


def reliable_client(config: Config, way: Way, redelivery: Redelivery) -> ReliableClient:
    """The client that `when_unavailable` asks for."""
    overflow = config.when_unavailable
    if isinstance(overflow, str | Buffer):
        return BufferingClient(config, way, redelivery)
    return OverflowingClient(config, way, overflow)


def _nothing_sent(error: LowkiqError, waves: Sequence[Sequence[Chunk]]) -> Unwritten:
    """As there was no connection at all: of no chunk it is unknown whether it was written."""
    return Unwritten({b"": error}, [chunk for wave in waves for chunk in wave])


def _interrupted(error: PushInterrupted, left: Sequence[int], unwritten: Unwritten, count: int) -> PushInterrupted:
    """The error of an overflow, with the positions of the whole push.

    `left`: the positions in it of the jobs that the overflow got. Jobs that were sent to Redis without an answer stay
    unknown if the overflow took none.
    """
    taken = {left[position] for position in error.written}
    sent = {job.position for chunk in unwritten.chunks if chunk.token in unwritten.errors for job in chunk.jobs}
    unknown = (sent | {left[position] for position in error.unknown}) - taken
    return PushInterrupted(
        str(error),
        written=sorted({*range(count)} - {*left} | taken),
        not_written=sorted({*left} - taken - unknown),
        unknown=sorted(unknown),
    )


def _raise_unless_away(unwritten: Unwritten, results: Results) -> None:
    """Raise the error of a push that waiting does not heal."""
    for error in unwritten.errors.values():
        if not isinstance(error, BackendUnavailable):
            raise unwritten.interrupted(results, error)
