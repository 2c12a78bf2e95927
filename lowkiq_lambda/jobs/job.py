"""The jobs that users and drains see: frozen values, no I/O."""

import math
import struct
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID
from zlib import crc32

import msgspec

from lowkiq_lambda.base.errors import JobError

NEVER_FAILED: Final = -1.0
"""The retry_count of a job that has not failed: planned retries are counted, not done ones."""

MAX_EXACT: Final = 2**53
"""Scores and times are doubles: integers are exact up to here."""

ALWAYS: Final = "always"
"""In place of `unless`, of jobs of the library's own: stored whatever `unique` their worker has. Private."""


class Fields:
    """A value whose fields are read as those of a mapping too: `dict(value)`, and what encodes JSON, know it then."""

    __slots__ = ()
    __struct_fields__: ClassVar[tuple[str, ...]]

    def keys(self) -> tuple[str, ...]:
        """The names of its fields."""
        return self.__struct_fields__

    def __getitem__(self, field: str) -> object:
        if field not in self.keys():
            raise KeyError(field)
        value: object = getattr(self, field)
        return value


Dropped: TypeAlias = Literal["", "waiting", "running", "cursor", "too many"]
"""Why a push with `unless` stored nothing: the id waits, or runs; or what waits cannot be replaced, as it has a cursor,
or more than 1,000 payloads. "" if it was stored."""


class Pushed(Fields, msgspec.Struct, frozen=True):
    """The result of one job of a push.

    `merged`: the id was waiting already, so its time stands, and `due_at` (Unix seconds) shows it. `repeated`: a job
    with this key was pushed before, so this one changed nothing; `due_at` is that of the id after the call, or the time
    of the push if the id does not wait. `buffered`: Redis does not have the job yet: it waits in this process, in an
    outbox, or in the overflow; whether it will be merged, repeated or superseded is unknown. `superseded`: with
    `merge="latest"` a newer payload of the id waits, or was done, so this one was not stored; `due_at` as with
    `repeated`. `paused`: an operator has paused the id (`pause_jobs`), so it waits for the end of the pause. `dropped`:
    the job was to be stored `unless` its id has work, and the reason why it was not; `due_at` as with `repeated`.
    """

    id: str
    shard: int
    merged: bool
    due_at: float
    repeated: bool = False
    buffered: bool = False
    superseded: bool = False
    paused: bool = False
    dropped: Dropped = ""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: Any) -> Any:  # noqa: ANN401 - both are of Pydantic
        """For a route of FastAPI that says it returns one, and other uses in models of Pydantic."""
        from lowkiq_lambda.jobs.pydantic_schema import schema_of  # noqa: PLC0415 - Pydantic asks, if it is there

        return schema_of(cls, handler)


class ItemRef(NamedTuple):
    """Which item of which task a job is: `task` are the bytes of its id, `label` is for people, "" for none.

    `params`: what the item keeps of the payload, packed. `is_watched`: whether its task wants to know of a failure.
    """

    task: bytes
    number: int
    label: str
    params: bytes = b""
    is_watched: bool = False


class ScoredPayload(NamedTuple):
    """A payload and its place in the order of its id."""

    payload: object
    score: float


class Failure(Fields, msgspec.Struct, frozen=True):
    """One time that a job failed: when (Unix seconds), with which retry_count (0: the first), and its error in brief.

    Of an error longer than 200 characters the first and the last line are kept, and of these so many characters.
    `rule`: the rule of the worker that decided what became of it, as in `kill_on(SchemaError)`; "" for none.
    """

    at: float
    retry_count: float
    error: str
    rule: str = ""


class ProgressView(Fields, msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a started job, over all of its runs.

    `cursor`: the last one it saved. `items`: how often the cursor has changed, of `total`, if the job set how many it
    expects. `interruptions`: runs that were stopped before the end, the last of them for this `reason`; `failures`:
    runs that failed. `seconds`: how long it ran. `started_at`: when its first run began (Unix seconds). `fraction`: how
    much is done, from 0 to 1, if that is known. If a progress cannot be read, `cursor` is its bytes, and the other
    fields are empty.
    """

    cursor: object
    items: int = 0
    total: int | None = None
    interruptions: int = 0
    failures: int = 0
    seconds: float = 0.0
    started_at: float | None = None
    reason: str = ""
    fraction: float | None = None

    @property
    def seconds_left(self) -> float | None:
        """How long it will run yet if it goes on as it did; None if that is not known."""
        return self.seconds * (1 / self.fraction - 1) if self.fraction and self.seconds else None

    @property
    def is_unreadable(self) -> bool:
        """Whether the progress cannot be read. JSON has no bytes, so no cursor of a job is of them."""
        return isinstance(self.cursor, bytes)


class JobView(Fields, msgspec.Struct, frozen=True):
    """A job that waits or is in flight, as people look at it.

    A payload that cannot be read is shown as its bytes. `more_payloads`: how many follow those shown. `failures`: the
    last five since the id was last done, newest first; filled if jobs are fetched by their ids. `progress`: that of a
    started job, else None.
    """

    id: str
    payloads: Sequence[ScoredPayload]
    due_at: float
    retry_count: float
    error: str | None
    more_payloads: int = 0
    failures: tuple[Failure, ...] = ()
    progress: ProgressView | None = None


WhyDead: TypeAlias = Literal["", "retries", "rule", "expired", "crashed"]


class MorgueJob(Fields, msgspec.Struct, frozen=True):
    """A job in the morgue. `updated_at` is when the last of its payloads came there, in Unix seconds.

    `payloads`, `more_payloads` and `failures` as in `JobView`. `progress`: that of a started job whose only payload has
    died, else None. `why` it died, for `retries_exhausted` alone: its `retries` are used up, a `rule` of the worker
    said so, it `expired`, or it `crashed` its process three times.
    """

    id: str
    payloads: Sequence[ScoredPayload]
    updated_at: float
    error: str | None
    more_payloads: int = 0
    failures: tuple[Failure, ...] = ()
    progress: ProgressView | None = None
    why: WhyDead = ""


Outcome: TypeAlias = Literal[
    "done",
    "retried",
    "dead",
    "blocked",
    "rejected",
    "discarded",
    "expired",
    "cancelled",
    "returned",
    "suspected",
    "later",
]
"""The outcome of an id that was claimed, in one word from the handler's mark to the counters.

`done`; `retried`: it failed, and waits for its retry; `dead`: it failed for the last time, and its oldest payload
went to the morgue, the list of dead jobs; `blocked`: it failed for the last time, and waits until an operator unblocks
it; `rejected`: it ended with a business failure (`Rejected`), which no retry would change; `discarded`: a rule of the
worker dropped its oldest payload, which counts as rejected, too; `expired`: the time of a payload was over;
`cancelled`: an operator has cancelled it, and it did not end well;
`returned`: as it was before the claim, because it did not come to its end; `suspected`: it failed in a batch, and runs
alone before that counts; `later`: it goes on later.
"""

Obstacle: TypeAlias = Literal["limited", "held", "paused", "empty"]
"""Why a shard is not to be had: its queue's limits, another holder has it, it is paused, or it has no work."""

PLACE: Final = 14
"""Bytes of a stored entry before its payload: 8 of the score, 6 of the arrival number."""


def score_of(entry: bytes) -> float:
    """The score of a stored entry."""
    return decode_score(entry[:8])


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """One id of a claim: its stored entries, oldest first, and what is known of it.

    `blamed`: its last failure was its own, so it shares no batch. `repeated`: an earlier delivery may have run
    without its outcome being known. `exit_count`: how often in a row it has ended its handler, as that counts;
    None if its last delivery did not end so. `progress`: what a started job has saved, else empty. `tracked`: some
    of its payloads are items of a task. `headers`: those of the pushes of each entry, as they were stored; empty if
    none has any. `retry_counts`: arrival numbers of payloads that have failed, each with its count behind it, but for
    the oldest. `expiries`: until when each entry may be handed over (Unix seconds), infinity for those without a limit;
    empty if none has one.
    """

    id: str
    entries: list[bytes]
    due_at: float
    retry_count: float
    error: bytes | None = None
    blamed: bool = False
    repeated: bool = False
    exit_count: int | None = None
    progress: bytes = b""
    tracked: bool = False
    headers: tuple[bytes, ...] = ()
    retry_counts: tuple[float, ...] = ()
    expiries: tuple[float, ...] = ()


def id_text(value: object, max_bytes: float = math.inf) -> str:
    """An id as it is stored, for pushes and look-ups alike. Raises JobError for what cannot be one."""
    if type(value) is str:
        text = value
    elif type(value) is int or isinstance(value, UUID):
        text = _written(value)
    elif isinstance(value, str):
        # Its value: the member of an enumeration has another text for itself.
        text = str.__str__(value)
    else:
        raise JobError(f"must be a str, an int or a UUID, not {type(value).__name__}", field="id")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise JobError("holds a lone surrogate, which cannot be stored", field="id") from None
    if size > max_bytes:
        raise JobError(f"has {size:,} bytes, more than {max_bytes:,}", field="id")
    return text


def _written(number: int | UUID) -> str:
    try:
        return str(number)
    except ValueError as error:
        # Python itself refuses to write out an integer of thousands of digits.
        raise JobError(str(error), field="id") from error


def encode_score(score: float) -> bytes:
    """Eight bytes whose order is the order of the scores."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", score + 0.0))
    flipped = bits ^ 0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else bits | 1 << 63
    return struct.pack(">Q", flipped)


def decode_score(encoded: bytes) -> float:
    """The score that was encoded."""
    if encoded[0] >> 7:
        # Nearly all: a number that is not negative has nothing but its sign flipped.
        (flipped,) = struct.unpack(">d", encoded)
        return -float(flipped)
    (bits,) = struct.unpack(">Q", encoded)
    score: float = struct.unpack(">d", struct.pack(">Q", bits ^ 0xFFFF_FFFF_FFFF_FFFF))[0]
    return score


def is_number(value: object) -> bool:
    """Whether it is a finite int or float, and no bool."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, float) and math.isfinite(value)


def shard_for(job_id: str, shards_count: int, *, by_tenant: bool = False) -> int:
    """The shard of an id, from 0 to `shards_count - 1`; the same number that Lowkiq computes.

    `by_tenant`: that of all ids of its tenant.
    """
    return (digest_of_tenant if by_tenant else digest)(job_id) % shards_count


def digest(job_id: str) -> int:
    """The number that says in which shard an id is."""
    return crc32(job_id.encode())


def digest_of_tenant(job_id: str) -> int:
    """The same of a queue that has all ids of a tenant in one shard."""
    return crc32(tenant_of(job_id).encode())


def tenant_of(job_id: str) -> str:
    """The part of an id before the first colon; empty if there is none.

    >>> tenant_of("acme:order:7"), tenant_of("order 7")
    ('acme', '')
    """
    tenant, colon, _ = job_id.partition(":")
    return tenant if colon else ""
