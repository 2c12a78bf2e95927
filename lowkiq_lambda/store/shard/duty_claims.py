"""Runs of duties, claimed in Redis: one process at a time runs a duty, once in each period; and their outcomes.

A claim is named by a random nonce and ends by itself, so that a duty whose process died is run by another one. The
records of an app's duties are one hash; docs/operations.md has the promises.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from lowkiq_lambda.store.shard.backend import Backend, ScriptCall
from lowkiq_lambda.store.shard.keys import DUTIES, PREFIX, Pick
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape, StatusReply, script

Period = tuple[str, float]
"""A duty's name, and the seconds from one run to the next."""


class ClaimRequest(NamedTuple):
    """A claim of a duty that is to last so many seconds.

    `rest`: for how many seconds the duty rests at first, if its runs are not ended by anybody; None: for a period.
    """

    name: str
    every: float
    ttl: float
    rest: float | None = None


@dataclass(frozen=True)
class DutyKey:
    """The key of an app's duties: of those processes that declare the same queues."""

    keys: tuple[str, ...]

    @classmethod
    def of(cls, queue_names: Iterable[str], scope: str = "", prefix: str = PREFIX) -> "DutyKey":
        """The key of an app with these queues. A process with fewer of them cannot do another one's duties.

        `scope`: other settings that must be alike in processes that share the duties. `prefix`: of the app's keys.
        """
        digest = sha256("\0".join([*sorted(queue_names), *filter(None, [scope])]).encode()).hexdigest()[:16]
        return cls((f"{prefix}:{{{DUTIES}:{digest}}}",))

    def some(self, _pick: Pick) -> tuple[str, ...]:
        """The keys that a script is given."""
        return self.keys


class DutyClaim(NamedTuple):
    """One run of one duty."""

    name: str
    nonce: str


class DutyClaimReply(ReplyShape, frozen=True):
    """The reply of claim_duty.lua: the claimed duty (empty: none), and in how many seconds another is due."""

    scripts = ("claim_duty",)
    name: bytes
    next_in: bytes


class DutyReply(ReplyShape, frozen=True):
    """One duty, as duty_states.lua tells it. Times are Unix seconds as texts, empty for never."""

    due_at: bytes
    is_claimed: int
    began_at: bytes
    ended_at: bytes
    failed: bytes
    unfinished: bytes
    error: bytes


class DutyStatesReply(ReplyShape, frozen=True):
    """The reply of duty_states.lua."""

    scripts = ("duty_states",)
    duties: list[DutyReply]


class DutyRecord(NamedTuple):
    """The record of a duty. Times are Unix seconds by the server's clock, None for never."""

    due_at: float
    is_claimed: bool
    began_at: float | None
    ended_at: float | None
    failed: int
    """Runs that failed, in a row."""
    unfinished: int
    """Runs in a row that did not report their end; the present one among them."""
    error: str


class DutyClaims:
    """The calls about the duties of one app."""

    def __init__(self, backend: Backend, queue_names: Iterable[str], scope: str = "") -> None:
        self._backend = backend
        self._key = DutyKey.of(queue_names, scope, backend.prefix)

    def claim(self, duties: Sequence[ClaimRequest], retry_for: float) -> tuple[DutyClaim | None, float]:
        """Claim the duty that has been due for longest; and in how many seconds another one is due.

        Raises BackendError.
        """
        args: list[Argument] = [secrets.token_hex(12)]
        for name, every, ttl, rest in duties:
            args += [name, every, ttl, "" if rest is None else rest]
        reply = DutyClaimReply.of(self._call("claim_duty", args, retry_for))
        return DutyClaim(reply.name.decode(), str(args[0])) if reply.name else None, float(reply.next_in)

    def finish(self, claim: DutyClaim, error: str, again_in: float | None, retry_for: float) -> bool:
        """Say that the run is over, with this error, or "". False if the claim had ended, and another one came.

        `again_in`: seconds until it is to run again, if that is sooner than its period has it. Raises BackendError.
        """
        args = [claim.nonce, claim.name, error, "" if again_in is None else again_in]
        return StatusReply.of(self._call("finish_duty", args, retry_for)).status == b"OK"

    def _call(self, name: str, args: Sequence[Argument], retry_for: float) -> Reply:
        return self._backend.call(script(name, (DUTIES,)), self._key, args, retry_for)


def _record(duty: DutyReply) -> DutyRecord:
    return DutyRecord(
        float(duty.due_at),
        bool(duty.is_claimed),
        _time(duty.began_at),
        _time(duty.ended_at),
        int(duty.failed),
        int(duty.unfinished),
        duty.error.decode(errors="backslashreplace"),
    )


def _time(text: bytes) -> float | None:
    return float(text) if text else None


@dataclass(frozen=True, slots=True)
class DutyState:
    """A duty, and what became of its last run. Times are Unix seconds by the server's clock; None: it never ran."""

    name: str
    every: float
    is_running: bool
    last_run: float | None
    """When the last run began, or the present one."""
    last_seconds: float | None
    """Seconds of the last run; None too if it did not report its end."""
    next_run: float
    """The time when it is due, by its claims. After a time in the past no process came to run it."""
    failures: int
    """In a row."""
    last_error: str | None
    """Of the last run, if that failed, or did not report its end."""


class DutyLook(NamedTuple):
    """A look at duties that share a record: the call for it, and what its reply tells."""

    key: DutyKey
    duties: Sequence[Period]

    @property
    def call(self) -> ScriptCall:
        """The call of the script."""
        return script("duty_states", (DUTIES,)), self.key, [part for duty in self.duties for part in duty]

    def states(self, reply: Reply) -> list[DutyState]:
        """The state of each duty."""
        records = map(_record, DutyStatesReply.of(reply).duties)
        return [_duty_state(name, every, record) for (name, every), record in zip(self.duties, records, strict=True)]


def duty_states(backend: Backend, look: DutyLook, retry_for: float) -> list[DutyState]:
    """The state of each duty of the look. Raises BackendError."""
    return look.states(backend.call(*look.call, retry_for, measure=False)) if look.duties else []


def _duty_state(name: str, every: float, record: DutyRecord) -> DutyState:
    dead = record.unfinished - record.is_claimed
    took = None
    if record.unfinished == 0 and record.began_at is not None and record.ended_at is not None:
        took = max(0.0, record.ended_at - record.began_at)
    return DutyState(
        name=name,
        every=every,
        is_running=record.is_claimed,
        last_run=record.began_at,
        last_seconds=took,
        next_run=record.due_at,
        failures=record.failed + dead,
        last_error="nobody has said that its last run is over: its process died, or lost Redis"
        if dead
        else record.error or None,
    )
