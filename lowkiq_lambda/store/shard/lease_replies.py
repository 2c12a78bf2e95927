"""The replies to the calls of a lease, as drain/*.lua give them: read once, strictly, because they may be broken."""

import math
import struct
from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.jobs.job import PLACE, Delivery, Obstacle
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

StopRequest: TypeAlias = Literal["paused", "limited", "quiet"]
"""Why a holder is to come to an end before its time: the shard is paused; limits of the queue were set, and this holder
has no permit; or it was asked to let go."""
STOP_REQUESTS: Final[dict[bytes, StopRequest | None]] = {
    b"": None,
    b"paused": "paused",
    b"limited": "limited",
    b"quiet": "quiet",
}
"""As scripts name them."""

Request: TypeAlias = Literal["cancel", "pause"]
"""An operator's request for one id in flight."""
Requests: TypeAlias = Mapping[str, Request]
"""Those of a shard, by id."""
NO_REQUESTS: Final[Requests] = MappingProxyType({})
_REQUESTS: Final[dict[bytes, Request]] = {b"c": "cancel", b"p": "pause"}

_OBSTACLES: Final[dict[bytes, Obstacle]] = {b"HELD": "held", b"PAUSED": "paused", b"LIMITED": "limited"}
_HEAD: Final = struct.Struct(">dd")
_TIME: Final = struct.Struct(">d")
_ARRIVAL: Final = slice(8, PLACE)
_KIND: Final = 16
_PACES: Final = (4, 6, 9, 11)
"""How many numbers a pace has: without what hindered drains and with it, each also with two that holders have found."""
_SINGLE: Final = ord("s")
_SEVERAL: Final = ord("m")
_STARTED: Final = ord("p")


class StoredClaim(msgspec.Struct, frozen=True):
    """The ids that a claim put into flight. `charge`: not to be run; its ids fail with this error of their group.

    `is_rest`: not to be run; the payloads that wait under its ids follow their dead heads. It is empty if all of it had
    to be set aside.
    """

    deliveries: Sequence[Delivery]
    lone_suspect: bool = False
    charge: bytes | None = None
    is_rest: bool = False
    expires: bool = False
    """Whether any payload of it has an expiry."""

    def without(self, ids: Container[str]) -> "StoredClaim | None":
        """The rest of it, if there is one."""
        new = [delivery for delivery in self.deliveries if delivery.id not in ids]
        return StoredClaim(new, self.lone_suspect, self.charge, self.is_rest, self.expires) if new else None


class Acquired(msgspec.Struct, frozen=True):
    """An acquired lease with its first claim (None: recovery left nothing to do, and the lease is gone again)."""

    token: int
    claim: StoredClaim | None
    recovered: int
    dead: Sequence[tuple[str, bytes]]
    pace: str
    recovered_from: str = ""
    """The owner that left what was recovered, as it named itself."""
    trimmed: int = 0
    """Payloads that the morgue had no room for."""
    recovered_ids: Sequence[str] = ()
    """The first of them, and of each the beginning, for the log."""


class NotAcquired(msgspec.Struct, frozen=True):
    """Why there was no lease, and the Unix time before which asking again is useless (None: unknown)."""

    reason: Obstacle
    until: float | None


class Renewed(msgspec.Struct, frozen=True):
    """The reply to `renew`: the lease is prolonged, and whether its holder is to come to an end all the same."""

    stop_request: StopRequest | None
    requests: Requests = NO_REQUESTS


class AcquireReply(ReplyShape, frozen=True):
    """The reply of acquire.lua if the lease was taken."""

    scripts = ("acquire",)
    status: bytes
    token: bytes
    recovered: int
    dead: list[bytes]
    """Ids, each with its entry behind it."""
    pace: bytes
    claim: Any
    """As `read_claim` reads it, or empty."""
    recovered_from: bytes = b""
    recovered_ids: Sequence[bytes] = ()
    trimmed: int = 0


class NotAcquiredReply(ReplyShape, frozen=True):
    """The reply of acquire.lua if the lease was not taken."""

    status: bytes
    until: bytes = b""
    """Unix seconds."""


class SettleReply(ReplyShape, frozen=True):
    """The reply of settle.lua."""

    scripts = ("settle",)
    status: bytes
    claim: Any
    """As `read_claim` reads it, or empty."""
    due_at: bytes
    stop_request: bytes
    ended: Sequence[bytes] = ()
    """The tasks that have no open item left in the shard, of those whose items ended."""
    trimmed: int = 0
    """Payloads that the morgue had no room for."""
    requests: Sequence[bytes] = ()
    """As `read_requests` reads them."""
    cancelled: Sequence[bytes] = ()
    """The ids that the call has cancelled, in place of their outcomes."""


class RenewReply(ReplyShape, frozen=True):
    """The reply of renew.lua."""

    scripts = ("renew",)
    status: bytes
    stop_request: bytes
    requests: Sequence[bytes] = ()
    """As `read_requests` reads them."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The reply to `checkpoint`: when the shard's next other job is due, and whether the holder is to come to an end.

    `other_due` in Unix seconds, None if no other job waits.
    """

    other_due: float | None
    stop_request: StopRequest | None
    requests: Requests = NO_REQUESTS


class CheckpointReply(ReplyShape, frozen=True):
    """The reply of checkpoint.lua."""

    scripts = ("checkpoint",)
    status: bytes
    other_due: bytes
    stop_request: bytes
    requests: Sequence[bytes] = ()
    """As `read_requests` reads them."""


class ClaimReply(ReplyShape, frozen=True):
    """The reply of claim.lua: lists of ids, each with its fields after it."""

    kind: bytes
    # Any: a list of a thousand records is not copied to be checked.
    records: Any
    errors: Any
    troubles: Any
    charge: bytes
    tracked: Any = ()
    """Ids with payloads that are items of tasks."""
    headers: Any = ()
    """Arrival numbers, each with the headers of its entry behind it."""
    expiries: Any = ()
    """Arrival numbers, each with a double behind it."""


class _Trouble(msgspec.Struct, frozen=True):
    """The parts of an id's troubles that a delivery needs; include/trouble.lua documents them."""

    blamed: bool = False
    group: str | None = None
    abandoned: bool = False
    exit_count: float | None = None
    retry_counts: tuple[float, ...] = ()


_NO_TROUBLE: Final = _Trouble()
_read_trouble: Final = msgspec.msgpack.Decoder(_Trouble).decode


def read_acquired(reply: Reply) -> Acquired | NotAcquired:
    """The lease, or the obstacle, in the reply of acquire.lua. Raises the errors of a reader if the reply is broken."""
    if reply[0] != b"OK":
        refused = NotAcquiredReply.of(reply)
        return NotAcquired(_OBSTACLES.get(refused.status, "empty"), float(refused.until) if refused.until else None)
    acquired = AcquireReply.of(reply)
    return Acquired(
        token=int(acquired.token),
        claim=read_claim(acquired.claim),
        recovered=acquired.recovered,
        dead=[(id_.decode(), entry) for id_, entry in pairs(acquired.dead)],
        pace=_pace(acquired.pace),
        recovered_from=acquired.recovered_from.decode(errors="backslashreplace"),
        recovered_ids=[job_id.decode(errors="replace") for job_id in acquired.recovered_ids],
        trimmed=acquired.trimmed,
    )


def read_checkpoint(reply: Reply) -> Checkpoint:
    """The checkpoint in the reply of checkpoint.lua. Raises the errors of a reader if the reply is broken."""
    saved = CheckpointReply.of(reply)
    due_at = float(saved.other_due) if saved.other_due else None
    return Checkpoint(due_at, STOP_REQUESTS[saved.stop_request], read_requests(saved.requests))


def read_requests(flat: Sequence[bytes]) -> Requests:
    """What operators want of ids in flight, in a reply. Raises the errors of a reader if it is broken."""
    return {job_id.decode(): _REQUESTS[kind] for job_id, kind in pairs(flat)} if flat else NO_REQUESTS


def read_claim(reply: Reply | bytes) -> StoredClaim | None:
    """The claim, if there is one. Raises what reading raises if a record is none."""
    if isinstance(reply, bytes):
        return None
    claim = ClaimReply.of(reply)
    error_of = dict(pairs(claim.errors))
    tracked = set(claim.tracked)
    trouble_of = {id_: _read_trouble(packed) for id_, packed in pairs(claim.troubles)}
    headers = dict(pairs(claim.headers)) if claim.headers else {}
    expiries = {arrival: _TIME.unpack(time)[0] for arrival, time in pairs(claim.expiries)} if claim.expiries else {}
    deliveries, numbers = [], 0.0
    for id_, record in pairs(claim.records):
        progress, at = _progress(record) if record[_KIND] == _STARTED else (b"", _KIND)
        due_at, retry_count = _HEAD.unpack_from(record)
        numbers += due_at + retry_count
        trouble = trouble_of.get(id_, _NO_TROUBLE) if trouble_of else _NO_TROUBLE
        entries = _entries(record, at)
        deliveries.append(
            Delivery(
                id_.decode(),
                entries,
                due_at,
                retry_count,
                error_of.get(id_) if error_of else None,
                trouble.blamed,
                trouble.group is not None or trouble.abandoned,
                None if trouble.exit_count is None else int(trouble.exit_count),
                progress,
                id_ in tracked,
                headers=_headers_of(entries, headers) if headers else (),
                retry_counts=trouble.retry_counts,
                expiries=_expiries_of(entries, expiries) if expiries else (),
            )
        )
    if not math.isfinite(numbers):
        raise ValueError(numbers)
    # A claim told again comes out of a hash, so the order has to be made anew.
    deliveries.sort(key=lambda delivery: delivery.due_at)
    charge = claim.charge if claim.kind == b"CHARGE" else None
    return StoredClaim(deliveries, claim.kind == b"LONE", charge, claim.kind == b"REST", bool(expiries))


def pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Two after two, as scripts answer."""
    return zip(flat[::2], flat[1::2], strict=True)


def _headers_of(entries: Sequence[bytes], headers: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    stored = tuple([headers.get(entry[_ARRIVAL], b"") for entry in entries])
    return stored if any(stored) else ()


def _expiries_of(entries: Sequence[bytes], expiries: Mapping[bytes, float]) -> tuple[float, ...]:
    times = tuple([expiries.get(entry[_ARRIVAL], math.inf) for entry in entries])
    return times if min(times) < math.inf else ()


def _pace(dumped: bytes) -> str:
    """As it was kept. Raises ValueError if the record is broken."""
    if dumped:
        pace, at, since = dumped.partition(b"@")
        numbers = [float(number) for number in pace.split()]
        is_whole = len(numbers) in _PACES or (at and not numbers)
        if not (is_whole and math.isfinite(float(since or 0)) and all(0 <= number < math.inf for number in numbers)):
            raise ValueError(dumped)
    return dumped.decode()


def _progress(record: bytes) -> tuple[bytes, int]:
    """The progress of a started job, and the position at which the payloads begin."""
    end = _KIND + 5 + int.from_bytes(record[_KIND + 1 : _KIND + 5])
    return record[_KIND + 5 : end], end


def _entries(record: bytes, at: int) -> list[bytes]:
    kind, at = record[at], at + 1
    if kind == _SINGLE:
        if len(record) < at + PLACE:
            raise ValueError(record)
        return [record[at:]]
    entries = []
    while at < len(record):
        size = int.from_bytes(record[at : at + 4])
        entries.append(record[at + 4 : at + 4 + size])
        at += 4 + size
    if kind != _SEVERAL or at > len(record) or not entries or min(map(len, entries)) < PLACE:
        raise ValueError(record)
    return entries
