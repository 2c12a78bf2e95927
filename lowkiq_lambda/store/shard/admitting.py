"""The calls of a visit to a limited queue: enter, stay, keep, leave.

A visit to a shard of the queue has a permit among the visits that run at once, and may begin a granted number of ids.
Both are kept in the queue's own slot, and a permit ends by itself. The calls are numbered, so one that reaches the
server twice is applied once.
"""

import math
import os
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.base.forks import end_child_of
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import LIMITS, QueueRef, ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape, script

Operation: TypeAlias = Literal["enter", "stay", "keep", "leave"]


class Limits(msgspec.Struct, frozen=True):
    """The limits of a queue: `permits`, visits at once; `ids` that begin in any `per` seconds. None: no such limit."""

    permits: int | None = None
    ids: int | None = None
    per: float = 1.0

    @property
    def slack(self) -> float:
        """Seconds within which granted ids may begin, as admit.lua answers them without a setting at run time."""
        return math.inf if self.ids is None else min(1.0, self.per / 10)


NO_LIMITS: Final = Limits()
"""Of a queue that others wait for: its visits have permits, and each gets one."""


class AdmitReply(ReplyShape, frozen=True):
    """The reply of admit.lua to a visit with a permit. Seconds are texts."""

    scripts = ("admit",)
    status: bytes
    granted: bytes
    waiting: int
    more_in: bytes
    slack: bytes


class FullReply(ReplyShape, frozen=True):
    """The reply of admit.lua to a visit without a permit."""

    status: bytes
    seconds: bytes


class VisitsRunningReply(ReplyShape, frozen=True):
    """The reply of visits_running.lua."""

    scripts = ("visits_running",)
    status: bytes
    count: int
    seconds: bytes


class Admitted(NamedTuple):
    """The visit goes on: `ids` may begin within `slack` seconds of the call; without a rate both are infinite.

    `waiting`: how many shards wait for a permit, or for ids. `more_in`: in how many seconds another id may begin.
    """

    ids: float
    waiting: int
    more_in: float
    slack: float


class Full(NamedTuple):
    """The visit may not begin: it is worth asking again in so many seconds."""

    seconds: float


class VisitsRunning(NamedTuple):
    """How many visits to a queue run; when the last of them has ended for sure, in seconds from now."""

    running: int
    seconds: float


class PermitSession:
    """One visit's calls about its permit. Raises LeaseLost once the permit has ended, and BackendError.

    A process that was forked since does not have the permit: it ends at its first call.
    """

    def __init__(self, backend: Backend, shard: ShardRef, nonce: str, limits: Limits, ttl: float) -> None:
        self.backend = backend
        self.shard = shard
        self.queue = QueueRef(shard.queue_name, shard.prefix)
        self._nonce = nonce
        self.limits = limits
        self._ttl = ttl
        self._calls = -1
        self._pid = os.getpid()

    @property
    def clock(self) -> Clock:
        """The clock of the caller."""
        return self.backend.clock

    def enter(self, want: int, patience: float, retry_for: float) -> Admitted | Full:
        """Take a permit, and `want` ids. A visit that waits for at least `patience` seconds may be on the wait list."""
        reply = self._ask("enter", retry_for, want=want, patience=patience)
        if reply[0] == b"FULL":
            return Full(float(FullReply.of(reply).seconds))
        self._calls = 0
        return _admitted(reply)

    def stay(self, want: int, unused: float, retry_for: float) -> Admitted:
        """Prolong the permit, give back what did not begin of what was granted last, and take so many ids."""
        admitted = _admitted(self._unless_gone(self._ask("stay", retry_for, want=want, unused=unused)))
        self._calls += 1
        return admitted

    def keep(self, retry_for: float, seconds: float | None = None) -> Admitted:
        """Prolong the permit, or end it in `seconds`. May be called beside the others, by another thread."""
        return _admitted(self._unless_gone(self._ask("keep", retry_for, ttl=seconds)))

    def leave(self, unused: float, retry_for: float) -> None:
        """End the permit, and give back what did not begin; also if the answer of the last call was lost."""
        self._ask("leave", retry_for, unused=unused)

    def _ask(  # noqa: PLR0913 - all but the first two by keyword, few of them at a time
        self,
        operation: Operation,
        retry_for: float,
        *,
        want: int = 0,
        unused: float = 0.0,
        patience: float = 0.0,
        ttl: float | None = None,
    ) -> Reply:
        end_child_of(self._pid)
        limits = self.limits
        args: list[Argument] = [
            operation,
            self._nonce,
            self._calls + 1,
            self.shard.number,
            self._ttl if ttl is None else ttl,
            "" if limits.permits is None else limits.permits,
            "" if limits.ids is None else limits.ids,
            limits.per,
            want,
            0 if math.isinf(unused) else int(unused),
            self.shard.channel,
            min(patience, _LONGEST_PATIENCE),
        ]
        return self.backend.call(script("admit", (LIMITS,)), self.queue, args, retry_for, measure=False)

    def _unless_gone(self, reply: Reply) -> Reply:
        if reply[0] == b"GONE":
            shard = self.shard
            raise LeaseLost(f"A visit to shard {shard.number} of {shard.queue_name!r} has lost its permit.")
        return reply


def visits_running(backend: Backend, queue_name: str, retry_for: float) -> VisitsRunning:
    """How many visits to a queue run, of those that have permits. Raises BackendError."""
    code = script("visits_running", (LIMITS,))
    reply = VisitsRunningReply.of(
        backend.call(code, QueueRef(queue_name, backend.prefix), [], retry_for, measure=False)
    )
    return VisitsRunning(reply.count, float(reply.seconds))


_LONGEST_PATIENCE: Final = 1e9
"""Seconds that stand for an endless wait in the arguments of a script."""


def _admitted(reply: Reply) -> Admitted:
    reply_of_script = AdmitReply.of(reply)
    if not reply_of_script.granted:
        return Admitted(math.inf, reply_of_script.waiting, 0.0, math.inf)
    return Admitted(
        int(reply_of_script.granted),
        reply_of_script.waiting,
        float(reply_of_script.more_in),
        float(reply_of_script.slack),
    )
