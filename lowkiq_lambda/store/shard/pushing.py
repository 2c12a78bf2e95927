"""Writing pushes: chunks of jobs to their shards, each under a token, so that a repeat is applied once."""

import os
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import sha1
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lowkiq_lambda.errors import (
    BackendFull,
    BackendUnavailable,
    LowkiqError,
    PushInterrupted,
    ShardClosed,
)
from lowkiq_lambda.job import ItemRef, Pushed, encode_score
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef, notification_channel
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.waking import Waker

CHUNK_JOBS: Final = 1_900
"""Two arguments a job, and a few: managed Valkey refuses a call with more than 3,999."""
CHUNK_BYTES: Final = 1024 * 1024
TOKEN_LIFE: Final = 60.0
"""Seconds for which a shard surely remembers the token of a push."""
_NOTIFIED_BY_SCRIPT: Final = 2
"""What enqueue.lua answers where nothing is left to be said."""
HAS_SCORE: Final = 1
HAS_PERFORM_IN: Final = 2
HAS_REF: Final = 4
HAS_RECEIPT: Final = 8
HAS_HEADERS: Final = 16
IS_DEFAULT: Final = 32
"""Bits of the flags of a packed job, as push/enqueue.lua reads them."""


class NewJob(NamedTuple):
    """A checked job on its way: `packed` is what enqueue.lua takes, without perform_in it is due at once."""

    position: int
    id: str
    packed: bytes
    perform_in: float | None


def packed(
    score: bytes | None, perform_in: float | None, dumped: bytes, extra_flags: int = 0, extras: bytes = b""
) -> bytes:
    """Flags, score, perform_in, extras and payload in one; what is None is the server's now.

    `extras`: what the extra flags announce, in the order of their bits.
    """
    if score is None and perform_in is None and not extra_flags:
        return b"\0" + dumped
    flags = (HAS_SCORE if score is not None else 0) | (HAS_PERFORM_IN if perform_in is not None else 0) | extra_flags
    at = b"" if perform_in is None else struct.pack(">d", perform_in)
    return bytes((flags,)) + (score or b"") + at + extras + dumped


def item_ref(item: ItemRef) -> bytes:
    """What a packed job has for its task: the ref of its item, and the label with its length before it."""
    label = item.label.encode()
    return item.task + struct.pack(">IB", item.number, len(label)) + label


def scored(job: bytes, score: float) -> bytes:
    """A packed job with that score, unless it was given one; with the server's now, if that is earlier."""
    if job[0] & HAS_SCORE:
        return job
    return bytes((job[0] | HAS_SCORE | IS_DEFAULT,)) + encode_score(score) + job[1:]


def receipt(job_id: str, key: str, ttl: float) -> bytes:
    """What a packed job has for its key: a digest, which is the id's own, and for how many seconds it is remembered."""
    written = job_id.encode()
    digest = sha1(b"%d:%b%b" % (len(written), written, key.encode()), usedforsecurity=False).digest()[:12]
    return digest + struct.pack(">d", ttl)


def header(packed_headers: bytes) -> bytes:
    """What a packed job has for its headers: them, with their length before them."""
    return struct.pack(">H", len(packed_headers)) + packed_headers


class EnqueueReply(ReplyShape, frozen=True):
    """What enqueue.lua answers."""

    scripts = ("enqueue",)
    status: bytes
    sooner: int
    time: bytes
    """Of the new jobs that were given none."""
    met: Any
    """Positions of jobs that met their id waiting, each with its perform_in behind it."""
    repeated: Any = ()
    """Positions of jobs that were applied before, each with the perform_in of their id behind it."""


class Chunk(NamedTuple):
    """Jobs of one shard that travel in one call, and are applied once for their token."""

    shard: ShardRef
    token: bytes
    jobs: Sequence[NewJob]

    def call(self, merge: str, channel: str, gather: bytes) -> tuple[str, ShardRef, list[Argument]]:
        """The call that writes them."""
        args: list[Argument] = [self.token, merge, channel, self.shard.index]
        for job in self.jobs:
            args += job[1:3]
        if gather:
            args.append(gather)
        return "enqueue", self.shard, args

    def named(self, told: Any) -> Iterator[tuple[NewJob, float]]:  # noqa: ANN401 - a part of the script's answer
        """The jobs whose positions the answer tells, with the perform_in behind each."""
        for offset, perform_in in zip(told[::2], told[1::2], strict=True):
            # The answer of an earlier attempt may tell of more jobs than a buffer has left in the chunk.
            if offset < len(self.jobs):
                yield self.jobs[offset], float(perform_in)


class Unwritten(NamedTuple):
    """What of a push is not known to be written: chunks, with the errors of those that were tried, by token."""

    errors: dict[bytes, LowkiqError]
    chunks: list[Chunk]

    def interrupted(self, results: Sequence[Pushed | None], cause: LowkiqError | None = None) -> LowkiqError:
        """The error of the push; the cause itself where nothing was or may have been written."""
        written = [position for position, result in enumerate(results) if result is not None]
        unknown: list[int] = []
        not_written: list[int] = []
        for chunk in self.chunks:
            is_unknown = isinstance(self.errors.get(chunk.token), BackendUnavailable)
            (unknown if is_unknown else not_written).extend(job.position for job in chunk.jobs)
        cause = cause or next(iter(self.errors.values()))
        if not written and not unknown:
            return cause
        broken = PushInterrupted(
            f"The push broke off ({cause}): {len(written)} jobs are written, {len(not_written)} are not, "
            f"of {len(unknown)} it is unknown.",
            written=written,
            not_written=sorted(not_written),
            unknown=sorted(unknown),
        )
        broken.__cause__ = cause
        return broken


class Pusher:
    """Pushes checked jobs of one queue; a notification names the shards with work sooner than before.

    `declare` opens the shards where one turns out not to be open, or raises why it may not. `waker` is told of the
    shards that were written to, and of those with work sooner than before. `gather`: what include/gather.lua takes.
    """

    def __init__(  # noqa: PLR0913 - what a push is told beside its jobs
        self,
        backend: Backend,
        shards: Sequence[ShardRef],
        merge: str,
        retry_for: float,
        *,
        declare: Callable[[], None],
        waker: "Waker | None" = None,
        gather: bytes = b"",
    ) -> None:
        self._backend = backend
        self._shards = shards
        self._channel = notification_channel(shards[0].queue_name)
        self._merge = merge
        self._retry_for = min(retry_for, TOKEN_LIFE / 2)
        self._declare = declare
        self._waker = waker
        self._gather = gather
        self.written_at: dict[int, float] = {}
        """By shard, the server's time of the last push: no later push may take an earlier one as its score."""

    def push(self, jobs_by_shard: dict[int, list[NewJob]], count: int, features: Collection[str] = ()) -> list[Pushed]:
        """What became of each job, by position. Raises BackendError, QueueMismatch or PushInterrupted.

        `features`: those whose keys the jobs need beside those of the queue.
        """
        results: list[Pushed | None] = [None] * count
        unwritten = self.write(waves_of(self._shards, jobs_by_shard, features), results, self._retry_for)
        if unwritten.errors:
            raise unwritten.interrupted(results)
        return [result for result in results if result is not None]

    def write(self, waves: Sequence[Sequence[Chunk]], results: list[Pushed | None], retry_for: float) -> Unwritten:
        """Send the waves in turn, each for `retry_for` seconds, up to the first that could not be written as a whole.

        What became of the jobs is put into `results`, by their positions.
        """
        sooner: dict[int, int] = {}
        unwritten = Unwritten({}, [])
        for index, wave in enumerate(waves):
            errors = self._write(wave, results, sooner, retry_for)
            if errors:
                failed = [chunk for chunk in wave if chunk.token in errors]
                unwritten = Unwritten(errors, [*failed, *(chunk for later in waves[index + 1 :] for chunk in later)])
                break
        self._notify(sooner, results)
        return unwritten

    def _write(
        self, wave: Sequence[Chunk], results: list[Pushed | None], sooner: dict[int, int], retry_for: float
    ) -> dict[bytes, LowkiqError]:
        """Sends a wave until each chunk is written or retry_for ends; the errors of those that are not, by token."""
        clock = self._backend.clock
        retry_until, wall_limit = clock.monotonic() + retry_for, clock.time() + retry_for
        attempt, left, errors = 0, list(wave), dict[bytes, LowkiqError]()
        # A single script publishes by itself, a round trip sooner; one message names many shards.
        channel = self._channel if len(wave) == 1 else ""
        while left:
            unwritten = []
            for chunk, reply in zip(left, self._sent(left, channel), strict=True):
                if isinstance(reply, BackendUnavailable | ShardClosed):
                    # That an attempt may have been written says more than that a later one was not.
                    if isinstance(reply, BackendUnavailable) or chunk.token not in errors:
                        errors[chunk.token] = reply
                    unwritten.append(chunk)
                elif isinstance(reply, LowkiqError):
                    errors[chunk.token] = _refused(reply, errors.get(chunk.token))
                else:
                    errors.pop(chunk.token, None)
                    self._note(chunk, reply, results, sooner)
            left = unwritten
            # Past the token's life a repeat would be taken for a new push; a frozen process shows by the wall clock.
            if not left or clock.time() >= wall_limit or not self._backend.wait_to_retry(attempt, retry_until):
                break
            attempt += 1
        return errors

    def _sent(self, chunks: Sequence[Chunk], channel: str) -> list[Reply | LowkiqError]:
        """An answer for each; shards that were not open are opened, and sent theirs again."""
        replies = self._backend.run_each([chunk.call(self._merge, channel, self._gather) for chunk in chunks])
        closed = [number for number, reply in enumerate(replies) if isinstance(reply, ShardClosed)]
        if closed:
            anew = self._sent_anew([chunks[number] for number in closed], channel)
            for number, reply in zip(closed, anew, strict=True):
                replies[number] = reply
        return replies

    def _sent_anew(self, chunks: Sequence[Chunk], channel: str) -> Sequence[Reply | LowkiqError]:
        try:
            self._declare()
        except LowkiqError as error:
            return [error] * len(chunks)
        return self._backend.run_each([chunk.call(self._merge, channel, self._gather) for chunk in chunks])

    def _note(self, chunk: Chunk, reply: Reply, results: list[Pushed | None], sooner: dict[int, int]) -> None:
        enqueued = EnqueueReply.of(reply)
        index = chunk.shard.index
        fresh_at = float(enqueued.time)
        # Of a queue that gathers it is when new ids are due.
        if not self._gather:
            self.written_at[index] = fresh_at
        for job in chunk.jobs:
            results[job.position] = Pushed(id=job.id, shard=index, merged=False, perform_in=job.perform_in or fresh_at)
        for job, at in chunk.named(enqueued.met):
            results[job.position] = Pushed(id=job.id, shard=index, merged=True, perform_in=at)
        for job, at in chunk.named(enqueued.repeated):
            results[job.position] = Pushed(id=job.id, shard=index, merged=False, perform_in=at, repeated=True)
        if enqueued.sooner:
            sooner[index] = enqueued.sooner

    def _notify(self, sooner: dict[int, int], results: Sequence[Pushed | None]) -> None:
        if unheard := sorted(index for index, notice in sooner.items() if notice != _NOTIFIED_BY_SCRIPT):
            self._backend.publish(self._channel, ",".join(map(str, unheard)))
        if self._waker:
            written = sorted({result.shard for result in results if result is not None})
            self._waker.pushed([self._shards[index] for index in written], {self._shards[index] for index in sooner})


def _refused(error: LowkiqError, before: LowkiqError | None) -> LowkiqError:
    """What a refusal says of a chunk. An attempt whose answer was lost may have written it all the same.

    Where memory is full the script looks at the token first, so that its refusal is sure.
    """
    surely_not_written = before is None or isinstance(before, ShardClosed) or isinstance(error, BackendFull)
    return error if surely_not_written else BackendUnavailable(str(error))


def waves_of(
    shards: Sequence[ShardRef], jobs_by_shard: dict[int, list[NewJob]], features: Collection[str]
) -> list[list[Chunk]]:
    """Chunks that may travel together: never two of one shard, so that a later one can't overtake an earlier."""
    if features:
        shards = [shard.using(features) for shard in shards]
    waves: list[list[Chunk]] = []
    for index, jobs in jobs_by_shard.items():
        for number, part in enumerate(_cut(jobs)):
            if number == len(waves):
                waves.append([])
            waves[number].append(Chunk(shards[index], os.urandom(12), part))
    return waves


def _cut(jobs: list[NewJob]) -> list[list[NewJob]]:
    if len(jobs) == 1:
        return [jobs]
    parts, start, size = [], 0, 0
    for at, job in enumerate(jobs):
        own = len(job.packed) + len(job.id)
        size += own
        if at > start and (at - start >= CHUNK_JOBS or size > CHUNK_BYTES):
            parts.append(jobs[start:at])
            start, size = at, own
    return [*parts, jobs[start:]] if jobs else []
