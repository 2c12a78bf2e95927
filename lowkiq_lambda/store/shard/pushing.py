"""Writing pushes: chunks of jobs to their shards, each under a token, so that a repeat is applied once."""

import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from lowkiq_lambda.base.errors import (
    BackendFull,
    BackendUnavailable,
    LowkiqError,
    PushInterrupted,
    QueueFull,
    ShardClosed,
)
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.chunks import Chunk, EnqueueReply
from lowkiq_lambda.store.shard.keys import BOUNDED, ShardRef, notification_channel
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.scripts import Reply

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.waking import Waker

TOKEN_LIFE: Final = 60.0
"""Seconds for which a shard surely remembers the token of a push."""
_NOT_NOTIFIED: Final = 1
"""The reply of enqueue.lua if a shard has work sooner, and the script has not published that itself."""


class Unwritten(NamedTuple):
    """The unconfirmed part of a push: chunks, with the errors of those that were tried, by token."""

    errors: dict[bytes, LowkiqError]
    chunks: list[Chunk]

    def interrupted(self, results: Sequence[Pushed | None], cause: LowkiqError | None = None) -> LowkiqError:
        """The error of the push; the cause itself if no job was or may have been written."""
        positions = [position for position, result in enumerate(results) if result is not None]
        unknown: list[int] = []
        not_written: list[int] = []
        for chunk in self.chunks:
            is_unknown = isinstance(self.errors.get(chunk.token), BackendUnavailable)
            (unknown if is_unknown else not_written).extend(job.position for job in chunk.jobs)
        cause = cause or next(iter(self.errors.values()))
        if not positions and not unknown:
            return cause
        broken = PushInterrupted(
            f"The push broke off ({cause}): {len(positions)} jobs are written, {len(not_written)} are not, "
            f"of {len(unknown)} it is unknown.",
            written=positions,
            not_written=sorted(not_written),
            unknown=sorted(unknown),
        )
        broken.__cause__ = cause
        return broken


class Pusher:
    """Pushes checked jobs of one queue; a notification names the shards with work sooner than before.

    If a shard is not open, `declare` opens the shards and returns those of the queue, or raises the reason against it.
    `waker` gets the shards that were written to, and those with work sooner than before. `debounce`: the arguments of
    include/debounce.lua. `max_waiting`: how many ids may wait in a shard.
    """

    def __init__(  # noqa: PLR0913 - what a push is told beside its jobs
        self,
        backend: Backend,
        queue_name: str,
        merge: str,
        retry_for: float,
        *,
        declare: Callable[[], QueueShards],
        waker: "Waker | None" = None,
        debounce: bytes = b"",
        max_waiting: int | None = None,
    ) -> None:
        self._backend = backend
        self._channel = notification_channel(queue_name, backend.prefix)
        self._merge = merge
        self._retry_for = min(retry_for, TOKEN_LIFE / 2)
        self._declare = declare
        self._waker = waker
        self._debounce = debounce
        self._max_waiting = max_waiting
        bound = b"" if max_waiting is None else struct.pack(">d", max_waiting)
        self._features = (BOUNDED,) if bound else ()
        self._last = debounce + bound
        self.written_at: dict[ShardRef, float] = {}
        """By shard, the server's time of the last push: no later push may take an earlier one as its score."""
        self._written_before = 0.0
        """The same of the shards that the queue had before."""

    def follow(self, before: "Pusher") -> None:
        """Take over from the pusher of the shards that the queue had before."""
        self._written_before = before.last_written_to_any

    @property
    def last_written_to_any(self) -> float:
        """The server's time of this process's last push to the queue; 0 before the first."""
        return max(self._written_before, *self.written_at.values(), 0.0)

    def last_written_at(self, shard: ShardRef) -> float:
        """The server's time of this process's last push to the ids of the shard; 0 before the first."""
        return self.written_at.get(shard, self._written_before)

    def push(
        self,
        waves: Sequence[Sequence[Chunk]],
        count: int,
        look_at: Callable[[Sequence[Pushed | None]], object] | None = None,
    ) -> list[Pushed]:
        """The result of each job, by position. Raises BackendError, QueueMismatch or PushInterrupted.

        `look_at` gets the results, also if some of the jobs could not be written.
        """
        results: list[Pushed | None] = [None] * count
        unwritten = self.write(waves, results, self._retry_for)
        if look_at:
            look_at(results)
        if unwritten.errors:
            raise unwritten.interrupted(results)
        return [result for result in results if result is not None]

    def write(self, waves: Sequence[Sequence[Chunk]], results: list[Pushed | None], retry_for: float) -> Unwritten:
        """Send the waves in turn, each for `retry_for` seconds, up to the first that could not be written as a whole.

        The results of the jobs are put into `results`, by their positions.
        """
        noted: dict[ShardRef, int] = {}
        unwritten = Unwritten({}, [])
        for index, wave in enumerate(waves):
            errors = self._write(wave, results, noted, retry_for)
            if errors:
                failed = [_left_of(chunk, results) for chunk in wave if chunk.token in errors]
                unwritten = Unwritten(errors, [*failed, *(chunk for later in waves[index + 1 :] for chunk in later)])
                break
        self._notify(noted)
        return unwritten

    def _write(
        self, wave: Sequence[Chunk], results: list[Pushed | None], noted: dict[ShardRef, int], retry_for: float
    ) -> dict[bytes, LowkiqError]:
        """Sends a wave until each chunk is written or retry_for ends; the errors of those that are not, by token.

        The error of a part stands under the token of the chunk that it comes from.
        """
        clock = self._backend.clock
        retry_until, wall_limit = clock.monotonic() + retry_for, clock.time() + retry_for
        attempt, left, errors = 0, list(wave), dict[bytes, LowkiqError]()
        origins: dict[bytes, bytes] = {}
        # A single script publishes by itself, a round trip sooner; one message names many shards.
        channel = self._channel if len(wave) == 1 else ""
        while left:
            unwritten = []
            for chunk, reply in self._sent(left, channel, errors):
                if chunk.origin:
                    origins[chunk.token] = chunk.origin
                if isinstance(reply, BackendUnavailable | ShardClosed):
                    # An attempt that may have written it is stronger evidence than a later one that did not.
                    if isinstance(reply, BackendUnavailable) or chunk.token not in errors:
                        errors[chunk.token] = reply
                    unwritten.append(chunk)
                elif isinstance(reply, LowkiqError):
                    errors[chunk.token] = _refused(reply, errors.get(chunk.token))
                else:
                    errors.pop(chunk.token, None)
                    self._note(chunk, reply, results, noted)
            left = unwritten
            # Past the token's life a repeat would be taken for a new push; a frozen process shows by the wall clock.
            if not left or clock.time() >= wall_limit or not self._backend.wait_to_retry(attempt, retry_until):
                break
            attempt += 1
        return {origins.get(token, token): error for token, error in errors.items()}

    def _sent(
        self, chunks: Sequence[Chunk], channel: str, errors: dict[bytes, LowkiqError]
    ) -> list[tuple[Chunk, Reply | LowkiqError]]:
        """Each chunk with its answer; those to shards that were not open, or that ids have left, are sent again.

        `errors`: those of earlier attempts, by token. That of a chunk that was parted is over.
        """
        replies = self._send(chunks, channel, errors)
        closed = [(chunk, reply) for chunk, reply in replies if isinstance(reply, ShardClosed)]
        if not closed:
            return replies
        others = [(chunk, reply) for chunk, reply in replies if not isinstance(reply, ShardClosed)]
        return [*others, *self._sent_anew(closed, channel, errors)]

    def _send(
        self, chunks: Sequence[Chunk], channel: str, errors: dict[bytes, LowkiqError]
    ) -> list[tuple[Chunk, Reply | LowkiqError]]:
        """Each chunk with its answer, or parts of one that was too dear; none behind one of its shard that failed."""
        answered: list[tuple[Chunk, Reply | LowkiqError]] = []
        left = list(chunks)
        while left:
            first = {chunk.shard: chunk for chunk in reversed(left)}
            wave = [chunk for chunk in left if first[chunk.shard] is chunk]
            left = [chunk for chunk in left if first[chunk.shard] is not chunk]
            replies = self._backend.run_each(
                [chunk.call(self._merge, channel, self._last, self._features) for chunk in wave]
            )
            for chunk, reply_or_bound in zip(wave, replies, strict=True):
                reply = self._unless_full(chunk, reply_or_bound)
                if isinstance(reply, LowkiqError):
                    behind = [other for other in left if other.shard == chunk.shard]
                    answered += [(other, reply) for other in (chunk, *behind)]
                    left = [other for other in left if other.shard != chunk.shard]
                elif reply[0] == b"DEAR":
                    # The script looks at the token first: no earlier attempt has written the chunk.
                    errors.pop(chunk.token, None)
                    left = [*chunk.parts(reply[1]), *left]
                else:
                    answered.append((chunk, reply))
        return answered

    def _unless_full(self, chunk: Chunk, reply: Reply | LowkiqError) -> Reply | LowkiqError:
        """The answer, or the error that as many ids wait as may."""
        if isinstance(reply, LowkiqError) or reply[0] != b"OVERFULL":
            return reply
        queue_name, number = chunk.shard.queue_name, chunk.shard.number
        return QueueFull(
            f"Queue {queue_name!r} takes no new id: {reply[1]:,} wait in shard {number}, and its max_waiting is "
            f"{self._max_waiting:,}. Push again when some are done.",
            queue_name=queue_name,
            waiting=reply[1],
        )

    def _sent_anew(
        self, closed: Sequence[tuple[Chunk, ShardClosed]], channel: str, errors: dict[bytes, LowkiqError]
    ) -> list[tuple[Chunk, Reply | LowkiqError]]:
        try:
            shards = self._declare()
        except LowkiqError as error:
            return [(chunk, error) for chunk, _ in closed]
        if all(refused.floors is None and chunk.shard in shards for chunk, refused in closed):
            return self._send([chunk for chunk, _ in closed], channel, errors)
        from lowkiq_lambda.store.shard.rerouting import rerouted  # noqa: PLC0415 - few queues are ever resharded

        parts, stuck = rerouted(self._backend, shards, closed)
        # A closed shard looks at the token first: it has not taken them, whatever became of an earlier attempt.
        for chunk, _ in closed:
            errors.pop(chunk.token, None)
        return [*stuck, *self._send(parts, channel, errors)]

    def _note(self, chunk: Chunk, reply: Reply, results: list[Pushed | None], noted: dict[ShardRef, int]) -> None:
        enqueued = EnqueueReply.of(reply)
        index = chunk.shard.number
        fresh_at = float(enqueued.time)
        # Of a queue that debounces it is when new ids are due.
        if not self._debounce:
            self.written_at[chunk.shard] = fresh_at
        for job in chunk.jobs:
            results[job.position] = Pushed(id=job.id, shard=index, merged=False, due_at=job.due_at or fresh_at)
        for job, at in chunk.named(enqueued.met):
            results[job.position] = Pushed(id=job.id, shard=index, merged=True, due_at=at)
        for job, at in chunk.named(enqueued.repeated):
            results[job.position] = Pushed(id=job.id, shard=index, merged=False, due_at=at, repeated=True)
        for job, at in chunk.named(enqueued.superseded):
            results[job.position] = Pushed(id=job.id, shard=index, merged=False, due_at=at, superseded=True)
        for job, at, reason in chunk.dropped(enqueued.dropped):
            results[job.position] = Pushed(id=job.id, shard=index, merged=False, due_at=at, dropped=reason)
        for job, at in chunk.named(enqueued.paused):
            if (result := results[job.position]) is not None:
                results[job.position] = replace(result, due_at=at, paused=True)
        noted[chunk.shard] = enqueued.sooner or noted.get(chunk.shard, 0)

    def _notify(self, noted: dict[ShardRef, int]) -> None:
        """Tell of the shards that were written to; each with what its script said of work that is due sooner."""
        if unheard := sorted(shard.number for shard, notice in noted.items() if notice == _NOT_NOTIFIED):
            self._backend.publish(self._channel, ",".join(map(str, unheard)))
        if self._waker and noted:
            shards = sorted(noted, key=_number)
            self._waker.pushed(shards, {shard for shard, notice in noted.items() if notice})


def _refused(error: LowkiqError, before: LowkiqError | None) -> LowkiqError:
    """The error of a chunk that was refused. An earlier attempt with a lost answer may have written it all the same.

    If memory is full, the script looks at the token first, so that its refusal is sure.
    """
    surely_not_written = before is None or isinstance(before, ShardClosed) or isinstance(error, BackendFull)
    return error if surely_not_written else BackendUnavailable(str(error))


def _left_of(chunk: Chunk, results: Sequence[Pushed | None]) -> Chunk:
    """The chunk without its written jobs; some may be written if the chunk was split."""
    return chunk._replace(jobs=[job for job in chunk.jobs if results[job.position] is None])


_number = attrgetter("number")
