"""The calls of a shard's holder: acquire, settle and claim, start, checkpoint, renew, abandon, survive.

A lease session is named by a random nonce and the token of its `acquire`, and its calls are numbered: a call that
reaches the server twice is applied once, and none behind another session. The number goes up only when the answer is
known.
"""

import os
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.base.forks import end_child_of
from lowkiq_lambda.settings.protocols import MorgueLimits
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import EXPIRY, ShardRef
from lowkiq_lambda.store.shard.lease_replies import (
    NO_REQUESTS,
    STOP_REQUESTS,
    Acquired,
    Checkpoint,
    NotAcquired,
    Renewed,
    RenewReply,
    Requests,
    SettleReply,
    StopRequest,
    StoredClaim,
    read_acquired,
    read_checkpoint,
    read_claim,
    read_requests,
)
from lowkiq_lambda.store.shard.scripts import Argument, Reply, StatusReply

Result = TypeVar("Result")
Next: TypeAlias = Literal["claim", "release", "part", "more"]
OutcomeRecord: TypeAlias = tuple[Any, ...]
"""As lua/include/outcomes.lua reads it: an id, its outcome (`job.Outcome`), and what that one needs."""


class ClaimLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits of one claim, as include/claim.lua reads them: ids, payloads, bytes; `chunk`: payloads of one id.

    `chunk` is 0 if as many go together as fit. `concurrency`: how many batches run side by side; from 2 on, so do the
    ids that a first crash left. `tenant_rate`: how many ids of one tenant may begin, and in how many seconds.
    """

    ids: int
    payloads: int
    bytes: int
    chunk: int = 0
    concurrency: int = 1
    tenant_rate: tuple[int, float] | None = None


class Settlement(msgspec.Struct, frozen=True):
    """The outcomes of the ids in flight: unnamed ids are done, but with "part" and "more" they stay in flight.

    `payloads`: how many were performed to their end. `pace`: kept for the next holder. `left`: with "more", the ids
    that stay in flight, and since when each counts for the lag: its due_at, or its last save. `runs`: those that end,
    as include/keep_runs.lua reads them; None if the queue keeps none. `begins_expiry`: an outcome gives a payload an
    expiry, which the shard may not have begun to use. `work`: the calls that ended since the last settling, the
    milliseconds that they took, and those that a processor worked in them.
    """

    outcomes: Sequence[OutcomeRecord]
    next_step: Next
    pace: str
    payloads: int
    left: Mapping[str, float] = msgspec.field(default_factory=dict)
    runs: Sequence[Argument] | None = None
    begins_expiry: bool = False
    work: tuple[int, int, int] = (0, 0, 0)


_WORK: Final = struct.Struct(">4d")
"""As include/work.lua packs numbers."""


class LeaseSettings(msgspec.Struct, frozen=True):
    """The settings that stay the same through a lease session."""

    ttl: float
    merge: str
    morgue: MorgueLimits
    crashed: bytes
    """The error of a job whose process died each time."""
    dead_head: str = "skip"
    """The fate of the id of such a job, as the worker declares it."""


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
        """The lone suspect that would have a crash counted if nothing more were heard of this holder."""
        self.due_at: float | None = None
        """When the shard's next job is due, as the last settling told that let go, or claimed "more"; Unix seconds."""
        self.ended_tasks: Collection[bytes] = ()
        """Tasks whose items ended under this lease, and of which the shard had no open item left then."""
        self.trimmed = 0
        """Payloads that the shard's morgue lost under this lease, as it had no room."""
        self.stop_request: StopRequest | None = None
        """Whether the holder is to come to an end: as the last settling said that found no claim, or a renewal."""
        self.requests: Requests = NO_REQUESTS
        """What operators want of ids in flight, as the last call said that tells it."""
        self.cancelled: Collection[str] = ()
        """The ids that the last settling has cancelled, in place of their outcomes."""

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
            msgspec.msgpack.encode(limits),
            *_morgue(settings),
            settings.crashed,
            *([] if settings.dead_head == "skip" else [settings.dead_head]),
        ]
        return self._backend.read(
            lambda: self._backend.run("acquire", self.shard, args, retry_for=retry_for, ask_time=True),
            self.shard,
            self._granted,
        )

    def _granted(self, reply: Reply) -> Acquired | NotAcquired:
        answer = read_acquired(reply)
        if isinstance(answer, Acquired):
            self.token = answer.token
            self.trimmed += answer.trimmed
        return answer

    def settle(self, settlement: Settlement, limits: ClaimLimits, *, retry_for: float) -> StoredClaim | None:
        """Write what became of the ids in flight and go on; the next claim, if any.

        With "more" that is what was claimed beside `left`, within limits that are less what that takes up. The
        lease is kept, and `due_at` says when another id could be claimed so: None, too, if nothing can be before
        `left` has come to its end, as there are suspects.
        """
        settings, more = self._settings, settlement.next_step == "more"
        outcomes, errors = _errors_apart(settlement.outcomes)
        if settlement.begins_expiry:
            self._backend.note_use(self.shard, EXPIRY)
        args: list[Argument] = [
            settings.merge,
            msgspec.msgpack.encode(limits),
            *_morgue(settings),
            settlement.next_step,
            settlement.pace,
            _WORK.pack(settlement.payloads, *settlement.work),
            msgspec.msgpack.encode(outcomes),
            *errors,
            *([min(settlement.left.values(), default="")] if more else ()),
            *(settlement.runs or ()),
        ]
        claim = self._numbered("settle", args, retry_for, self._settled)
        # A repeat is answered with all that is in flight, and `left` was handed out before.
        return claim.without(settlement.left) if claim and more else claim

    def _settled(self, reply: Reply) -> StoredClaim | None:
        settled = SettleReply.of(reply)
        self.due_at = float(settled.due_at) if settled.due_at else None
        self.stop_request = STOP_REQUESTS[settled.stop_request]
        if settled.ended:
            self.ended_tasks = {*self.ended_tasks, *settled.ended}
        self.trimmed += settled.trimmed
        self.requests = read_requests(settled.requests)
        self.cancelled = [job_id.decode() for job_id in settled.cancelled]
        self.at_risk = None
        return read_claim(settled.claim)

    def start(self, job_id: str, retry_for: float) -> None:
        """Note that the handler of a lone suspect is about to run."""
        # Before the call, which may be applied though its answer is lost.
        self.at_risk = job_id
        self._numbered("start", [job_id], retry_for, StatusReply.of)

    def checkpoint(
        self, job_id: str, progress: bytes, *, clears: bool, retry_for: float, left_since: float | None = None
    ) -> Checkpoint:
        """Save the progress of a job in flight, and prolong the lease.

        `clears`: it is the first that moves the cursor of a lone suspect. `left_since`: since when the oldest of the
        other ids in flight counts for the lag, None if that is not sent. If this raises, the visit has to end: the next
        numbered call would be taken for a repeat of this one.
        """
        args: list[Argument] = [job_id, progress, "1" if clears else "", *([] if left_since is None else [left_since])]
        saved = self._numbered("checkpoint", args, retry_for, read_checkpoint)
        self.stop_request, self.requests = saved.stop_request, saved.requests
        if clears:
            self.at_risk = None
        return saved

    def renew(self, retry_for: float) -> Renewed:
        """Prolong the lease; may be called beside the numbered calls, from another thread."""
        args: list[Argument] = [self._nonce, self.token, self._settings.ttl]
        end_child_of(self._pid)
        reply = _unless_lost(self._backend.run("renew", self.shard, args, retry_for=retry_for), self.shard)
        answer = RenewReply.of(reply)
        renewed = Renewed(STOP_REQUESTS[answer.stop_request], read_requests(answer.requests))
        self.stop_request, self.requests = renewed.stop_request, renewed.requests
        return renewed

    def abandon(self, seconds: float, retry_for: float) -> None:
        """Mark what is in flight as abandoned; the shard is free after `seconds`, the process must be gone."""
        end_child_of(self._pid)
        reply = self._backend.run("abandon", self.shard, [self._nonce, seconds], retry_for=retry_for)
        _unless_lost(reply, self.shard)

    def leave_as_dead(self, retry_for: float) -> None:
        """Leave the ids in flight, for the next holder to recover as after a death. No handler runs any more.

        If the call fails, the ids are left so once the lease has ended.
        """
        # It would be taken back otherwise.
        self.at_risk = None
        end_child_of(self._pid)
        self._backend.run("release_dead", self.shard, [self._nonce], retry_for=retry_for)

    def survive(self, retry_for: float) -> None:
        """After the visit: the handler of the lone suspect has ended, or never began, and the process lives."""
        self._backend.run("survive", self.shard, [self._nonce, self.at_risk or ""], retry_for=retry_for)
        self.at_risk = None

    def _numbered(
        self, name: str, args: Sequence[Argument], retry_for: float, parse: Callable[[Reply], Result]
    ) -> Result:
        end_child_of(self._pid)
        call = [self._nonce, self.token, self._calls + 1, self._settings.ttl, *args]

        def run() -> Reply:
            return _unless_lost(self._backend.run(name, self.shard, call, retry_for=retry_for), self.shard)

        answer = self._backend.read(run, self.shard, parse)
        self._calls += 1
        return answer


def _errors_apart(outcomes: Sequence[OutcomeRecord]) -> tuple[list[list[Any]], list[bytes]]:
    """The outcomes with the position of each error instead of its bytes, which the server's msgpack has no type for."""
    positions: dict[bytes, int] = {}
    without_errors = [
        [positions.setdefault(part, len(positions)) if isinstance(part, bytes) else part for part in record]
        for record in outcomes
    ]
    return without_errors, list(positions)


def _unless_lost(reply: Reply, shard: ShardRef) -> Reply:
    if reply[0] == b"LOST":
        raise LeaseLost(f"Shard {shard.number} of {shard.queue_name!r} has another holder by now.")
    return reply


def _morgue(settings: LeaseSettings) -> tuple[int, int, float]:
    return settings.morgue.parts
