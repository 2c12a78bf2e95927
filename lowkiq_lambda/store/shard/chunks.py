"""Checked jobs on their way to a shard: packed, and in chunks that are applied once for their token."""

import os
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha1
from typing import Any, Final, NamedTuple

from lowkiq_lambda.jobs.job import Dropped, ItemRef, encode_score
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, ReplyShape

CHUNK_JOBS: Final = 1_900
"""Two arguments a job, and a few: managed Valkey refuses a call with more than 3,999."""
CHUNK_BYTES: Final = 1024 * 1024
_MORE: Final = 255
"""In place of the length of a label, as include/new_items.lua reads it."""
HAS_SCORE: Final = 1
HAS_PERFORM_IN: Final = 2
HAS_REF: Final = 4
HAS_RECEIPT: Final = 8
HAS_HEADERS: Final = 16
IS_DEFAULT: Final = 32
HAS_EXPIRY: Final = 64
HAS_MORE: Final = 128
"""Bits of the flags of a packed job, as push/enqueue.lua reads them."""
UNLESS_WAITING: Final = 1
UNLESS_RUNNING: Final = 2
REPLACE: Final = 4
"""Bits of its second byte of flags, as include/conflicts.lua reads them."""
REASONS: Final[Mapping[bytes, Dropped]] = {b"w": "waiting", b"r": "running", b"s": "cursor", b"m": "too many"}
"""Why a job was dropped, by the letter in the reply."""


class NewJob(NamedTuple):
    """A checked job on its way: `packed` is what enqueue.lua takes, without due_at it is due at once."""

    position: int
    id: str
    packed: bytes
    due_at: float | None
    expires_at: float | None = None


def packed(
    score: bytes | None, due_at: float | None, dumped: bytes, extra_flags: int = 0, extras: bytes = b""
) -> bytes:
    """Flags, score, due_at, extras and payload in one; what is None is the server's now.

    `extras`: what the extra flags announce, in the order of their bits.
    """
    if score is None and due_at is None and not extra_flags:
        return b"\0" + dumped
    flags = (HAS_SCORE if score is not None else 0) | (HAS_PERFORM_IN if due_at is not None else 0) | extra_flags
    at = b"" if due_at is None else struct.pack(">d", due_at)
    return bytes((flags,)) + (score or b"") + at + extras + dumped


def item_ref(item: ItemRef) -> bytes:
    """The part of a packed job for its task: the ref of its item, and the label with its length before it.

    Few have more, which include/new_items.lua describes.
    """
    label = item.label.encode()
    if not item.params and not item.is_watched:
        return item.task + struct.pack(">IB", item.number, len(label)) + label
    head = struct.pack(">IBBB", item.number, _MORE, item.is_watched, len(label))
    return item.task + head + label + struct.pack(">H", len(item.params)) + item.params


def scored(job: bytes, score: float) -> bytes:
    """A packed job with that score, unless it was given one; with the server's now, if that is earlier."""
    if job[0] & HAS_SCORE:
        return job
    return bytes((job[0] | HAS_SCORE | IS_DEFAULT,)) + encode_score(score) + job[1:]


def id_digest(job_id: str) -> bytes:
    """How the digests of all keys of the id begin."""
    return sha1(job_id.encode(), usedforsecurity=False).digest()[:6]


def key_digest(job_id: str, key: str) -> bytes:
    """By what a shard remembers a key: it is the id's own."""
    data = job_id.encode()
    both = sha1(b"%d:%b%b" % (len(data), data, key.encode()), usedforsecurity=False)
    return id_digest(job_id) + both.digest()[:10]


def receipt(job_id: str, key: str, ttl: float) -> bytes:
    """The part of a packed job for its key: its digest, and for how many seconds it is remembered."""
    return key_digest(job_id, key) + struct.pack(">d", ttl)


def header(packed_headers: bytes) -> bytes:
    """The part of a packed job for its headers: them, with their length before them."""
    return struct.pack(">H", len(packed_headers)) + packed_headers


def expiry(expires_at: float) -> bytes:
    """The part of a packed job for its expiry."""
    return struct.pack(">d", expires_at)


class EnqueueReply(ReplyShape, frozen=True):
    """The reply of enqueue.lua."""

    scripts = ("enqueue",)
    status: bytes
    sooner: int
    time: bytes
    """Of the new jobs that were given none."""
    met: Any
    """Positions of jobs that met their id waiting, each with its due_at behind it."""
    repeated: Any = ()
    """Positions of jobs that were applied before, each with the due_at of their id behind it."""
    superseded: Any = ()
    """Positions of jobs that were not stored, as a newer payload of their id waits, or was done; as above."""
    paused: Any = ()
    """Positions of jobs whose ids are paused, which may be among those above; as above."""
    dropped: Any = ()
    """Positions of jobs that were not stored, as their id had work; as above, with the letter of REASONS before."""


class Chunk(NamedTuple):
    """Jobs of one shard that travel in one call, and are applied once for their token."""

    shard: ShardRef
    token: bytes
    jobs: Sequence[NewJob]
    origin: bytes = b""
    """The token of the chunk that it is a part of, if that was too dear, or its shards have been replaced."""

    def call(
        self, merge: str, channel: str, last: bytes, features: Collection[str] = ()
    ) -> tuple[str, ShardRef, list[Argument]]:
        """The call that writes them. `last`: the last argument, if there is one; `features`: those of this call."""
        args: list[Argument] = [self.token, merge, channel, self.shard.number]
        for job in self.jobs:
            args += job[1:3]
        if last:
            args.append(last)
        return "enqueue", self.shard.using(features) if features else self.shard, args

    def parts(self, size: int) -> list["Chunk"]:
        """Smaller ones, in order, of a chunk that was refused as too dear: of so many jobs."""
        jobs, origin = self.jobs, self.origin or self.token
        return [Chunk(self.shard, os.urandom(12), jobs[at : at + size], origin) for at in range(0, len(jobs), size)]

    def named(self, positions: Any) -> Iterator[tuple[NewJob, float]]:  # noqa: ANN401 - a part of the script's answer
        """The jobs whose positions the answer tells, with the due_at behind each."""
        for offset, due_at in zip(positions[::2], positions[1::2], strict=True):
            # The answer of an earlier attempt may tell of more jobs than a buffer has left in the chunk.
            if offset < len(self.jobs):
                yield self.jobs[offset], float(due_at)

    def dropped(self, positions: Any) -> Iterator[tuple[NewJob, float, Dropped]]:  # noqa: ANN401 - as above
        """As `named`, of jobs that were dropped, each with the reason."""
        for offset, answer in zip(positions[::2], positions[1::2], strict=True):
            if offset < len(self.jobs):
                yield self.jobs[offset], float(answer[1:]), REASONS[answer[:1]]


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
