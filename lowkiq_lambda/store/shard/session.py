"""The calls of a shard's holder: acquire, settle and claim, start, renew, abandon, survive.

A holding is named by a random nonce and its calls are numbered, so a call that reaches the server twice is
applied once. The number goes up only when the answer is known.
"""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from lowkiq_lambda.errors import LeaseLost
from lowkiq_lambda.forks import end_child_of
from lowkiq_lambda.job import Obstacle
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape
from lowkiq_lambda.store.shard.windows import Window, pairs, read_window

Result = TypeVar("Result")
Next: TypeAlias = Literal["claim", "release", "part"]
StopRequest: TypeAlias = Literal["paused", "quiet"]
"""Why a holder is to come to an end before its time: the shard is paused, or this holder was asked to let go."""
OutcomeRecord: TypeAlias = tuple[Any, ...]
"""As lua/include/outcomes.lua reads it: an id, its outcome (`job.Outcome`), and what that one needs."""


_STOP_REQUESTS: Final[dict[bytes, StopRequest | None]] = {b"": None, b"paused": "paused", b"quiet": "quiet"}


class ClaimLimits(msgspec.Struct, frozen=True):
    """What one claim may carry: ids, payloads, bytes."""

    ids: int
    payloads: int
    bytes: int


class MorgueLimits(msgspec.Struct, frozen=True):
    """What one shard's morgue may hold: payloads, bytes, seconds."""

    entries: int
    bytes: int
    age: float


class Settlement(msgspec.Struct, frozen=True):
    """What became of the ids in flight: those that are not named are done, but with "part" they stay in flight.

    `payloads`: how many were performed to their end. `pace`: kept for the next holder.
    """

    outcomes: Sequence[OutcomeRecord]
    next_step: Next
    pace: str
    payloads: int


class Acquired(msgspec.Struct, frozen=True):
    """An acquired lease with its first window (None: recovery left nothing to do, and the lease is gone again)."""

    token: int
    window: Window | None
    recovered: int
    buried: Sequence[tuple[str, bytes]]
    pace: str
    recovered_from: str = ""
    """The owner that left what was recovered, as it named itself."""


class NotAcquired(msgspec.Struct, frozen=True):
    """Why there was no lease, and until when, in Unix seconds, it is no use to ask again (None: unknown)."""

    reason: Obstacle
    until: float | None


class Renewed(msgspec.Struct, frozen=True):
    """What `renew` answers: the lease is prolonged, and whether its holder is to come to an end all the same."""

    stop_request: StopRequest | None


class AcquireReply(ReplyShape, frozen=True):
    """What acquire.lua answers where the lease was taken."""

    status: bytes
    token: bytes
    recovered: int
    buried: list[bytes]
    """Ids, each with its entry behind it."""
    pace: bytes
    window: Any
    """As windows.py reads it, or empty."""
    recovered_from: bytes = b""


class NotAcquiredReply(ReplyShape, frozen=True):
    """What acquire.lua answers where it was not."""

    status: bytes
    until: bytes = b""
    """Unix seconds."""


class SettleReply(ReplyShape, frozen=True):
    """What settle.lua answers."""

    status: bytes
    window: Any
    """As windows.py reads it, or empty."""
    due_at: bytes
    stop_request: bytes


class RenewReply(ReplyShape, frozen=True):
    """What renew.lua answers."""

    status: bytes
    stop_request: bytes


class LeaseSettings(msgspec.Struct, frozen=True):
    """What stays the same through a holding."""

    ttl: float
    merge: str
    morgue: MorgueLimits
    crashed: bytes
    """The error of a job whose process died each time."""


class LeaseSession:
    """One holder's calls on one shard. Raises LeaseLost once the shard answers that it has another holder.

    A process that was forked since does not hold the lease: it ends at its first call.
    """

    def __init__(self, backend: Backend, shard: ShardRef, nonce: str, settings: LeaseSettings) -> None:
        self._backend = backend
        self.shard = shard
        self._nonce = nonce
        self._settings = settings
        self._calls = 0
        self._pid = os.getpid()
        self.token = 0
        self.at_risk: str | None = None
        """The lone suspect that would get a strike if nothing more were heard of this holder."""
        self.due_at: float | None = None
        """When the shard's next job is due, as it was told with the last settling that let go; Unix seconds."""
        self.stop_request: StopRequest | None = None
        """Whether the holder is to come to an end: as the last settling said that claimed nothing, or a renewal."""

    @property
    def crashed(self) -> bytes:
        """The error of a job whose process died each time."""
        return self._settings.crashed

    def acquire(self, owner: str, limits: ClaimLimits, retry_for: float) -> Acquired | NotAcquired:
        """Take the lease, recover what a dead holder left, and claim: one call."""
        settings = self._settings
        args: list[Argument] = [
            self._nonce,
            owner,
            settings.ttl,
            settings.merge,
            *_claim(limits),
            *_morgue(settings),
            settings.crashed,
        ]
        return self._backend.read(
            lambda: self._backend.run("acquire", self.shard, args, retry_for=retry_for, ask_time=True),
            self.shard,
            self._granted,
        )

    def _granted(self, reply: Reply) -> Acquired | NotAcquired:
        if reply[0] != b"OK":
            refused = NotAcquiredReply.of(reply)
            reasons: dict[bytes, Obstacle] = {b"HELD": "held", b"PAUSED": "paused"}
            until = float(refused.until) if refused.until else None
            return NotAcquired(reasons.get(refused.status, "empty"), until)
        acquired = AcquireReply.of(reply)
        self.token = int(acquired.token)
        return Acquired(
            token=self.token,
            window=read_window(acquired.window),
            recovered=acquired.recovered,
            buried=[(id_.decode(), entry) for id_, entry in pairs(acquired.buried)],
            pace=_pace(acquired.pace),
            recovered_from=acquired.recovered_from.decode(errors="backslashreplace"),
        )

    def settle(self, settlement: Settlement, limits: ClaimLimits, *, retry_for: float) -> Window | None:
        """Write what became of the ids in flight and go on; the next window, if any."""
        settings = self._settings
        named, errors = _errors_apart(settlement.outcomes)
        args: list[Argument] = [
            settings.merge,
            *_claim(limits),
            *_morgue(settings),
            settlement.next_step,
            settlement.pace,
            settlement.payloads,
            msgspec.msgpack.encode(named),
            *errors,
        ]
        return self._numbered("settle", args, retry_for, self._settled)

    def _settled(self, reply: Reply) -> Window | None:
        settled = SettleReply.of(reply)
        self.due_at = float(settled.due_at) if settled.due_at else None
        self.stop_request = _STOP_REQUESTS[settled.stop_request]
        self.at_risk = None
        return read_window(settled.window)

    def start(self, job_id: str, retry_for: float) -> None:
        """Note that the handler of a lone suspect is about to run."""
        # Before the call, which may be applied though its answer is lost.
        self.at_risk = job_id
        self._numbered("start", [job_id], retry_for, _anything)

    def renew(self, retry_for: float) -> Renewed:
        """Prolong the lease; may be called beside the numbered calls, from another thread."""
        args: list[Argument] = [self._nonce, self.token, self._settings.ttl]
        end_child_of(self._pid)
        reply = _unless_lost(self._backend.run("renew", self.shard, args, retry_for=retry_for), self.shard)
        renewed = Renewed(_STOP_REQUESTS[RenewReply.of(reply).stop_request])
        self.stop_request = renewed.stop_request
        return renewed

    def abandon(self, seconds: float, retry_for: float) -> None:
        """Mark what is in flight as abandoned; the shard is free after `seconds`, the process must be gone."""
        end_child_of(self._pid)
        reply = self._backend.run("abandon", self.shard, [self._nonce, seconds], retry_for=retry_for)
        _unless_lost(reply, self.shard)

    def survive(self, retry_for: float) -> None:
        """After the visit: the handler of the lone suspect has ended, or never began, and the process lives."""
        self._backend.run("survive", self.shard, [self._nonce, self.at_risk or ""], retry_for=retry_for)
        self.at_risk = None

    def _numbered(
        self, name: str, args: Sequence[Argument], retry_for: float, read: Callable[[Reply], Result]
    ) -> Result:
        end_child_of(self._pid)
        call = [self._nonce, self._calls + 1, self._settings.ttl, *args]

        def run() -> Reply:
            return _unless_lost(self._backend.run(name, self.shard, call, retry_for=retry_for), self.shard)

        answer = self._backend.read(run, self.shard, read)
        self._calls += 1
        return answer


def _pace(dumped: bytes) -> str:
    """As it was kept. Raises ValueError for what is none."""
    if dumped:
        mean, slow = map(float, dumped.split(b" "))
        if not (0 <= mean < math.inf and 0 <= slow < math.inf):
            raise ValueError(dumped)
    return dumped.decode()


def _anything(_reply: Reply) -> None:
    pass


def _errors_apart(outcomes: Sequence[OutcomeRecord]) -> tuple[list[list[Any]], list[bytes]]:
    """The outcomes with the position of each error instead of its bytes, which the server's msgpack has no type for."""
    positions: dict[bytes, int] = {}
    named = [
        [positions.setdefault(part, len(positions)) if isinstance(part, bytes) else part for part in record]
        for record in outcomes
    ]
    return named, list(positions)


def _unless_lost(reply: Reply, shard: ShardRef) -> Reply:
    if reply[0] == b"LOST":
        raise LeaseLost(f"Shard {shard.index} of {shard.queue_name!r} has another holder by now.")
    return reply


def _claim(limits: ClaimLimits) -> tuple[int, int, int]:
    return limits.ids, limits.payloads, limits.bytes


def _morgue(settings: LeaseSettings) -> tuple[int, int, float]:
    return settings.morgue.entries, settings.morgue.bytes, settings.morgue.age
