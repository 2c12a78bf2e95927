"""The work that waits in each shard, for drains that choose: one round trip for each node."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Self

import msgspec

from lowkiq_lambda.base.errors import BackendError, LowkiqError, ShardDamaged
from lowkiq_lambda.jobs.job import Obstacle
from lowkiq_lambda.store.server.faults import is_transient
from lowkiq_lambda.store.shard.backend import Backend, ExtraCommand
from lowkiq_lambda.store.shard.keys import ShardGroup, ShardRef, declaration_key
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

NEAR: Final = 0.1
"""Seconds by which clients may misjudge the server's time; in shard.lua, too."""
MISJUDGED: Final = 1.0
"""Seconds that a lease may seem to last beyond its TTL; in held.lua, too."""
_SCRIPT: Final = "shard_state"
_WORK: Final = "work"
"""The word for which the script leaves shards without jobs out."""


class ProbeResult(msgspec.Struct, frozen=True):
    """The result of a probe of a shard. Times are Unix seconds by the server's clock.

    `has_work`: a job is due, or lies with a holder whose lease ended, and the shard is neither held nor paused.
    `lag`: seconds that the oldest due job has waited, those in flight too; 0 if none is due.
    `next_at`: when it is worth looking again, if there is no work now; None: not before the next push.
    `ready_in`: in how many seconds it has work (below 0: since when it has), as of the probe; None: as for `next_at`.
    `obstacle`: the reason why no work is available; None if some is.
    `is_open`: whether it was opened under a declaration, and not closed since.
    `risky`: its holder died, or jobs are suspected of having ended one: the next that runs may end its process.
    `held_until`: when the lease of the last holder ended or ends, unless it was released.
    """

    ref: ShardRef
    has_work: bool
    lag: float
    next_at: float | None
    ready_in: float | None
    obstacle: Obstacle | None
    is_open: bool
    risky: bool
    held_until: float = 0.0


class ShardTimesReply(ReplyShape, frozen=True):
    """The times of a shard as scripts answer them: Unix seconds as texts."""

    due_at: bytes
    since: bytes
    flight_since: bytes
    held_until: bytes
    lease_left: int
    """Milliseconds."""
    paused_until: bytes


class ShardTimes(NamedTuple):
    """Since when a shard has work, and until when it is held or paused: Unix seconds, or None."""

    due_at: float | None
    """When the first id that waits is due."""
    since: float | None
    """Since when the oldest of those is due that queue behind others."""
    flight_since: float | None
    """Since when the oldest id in flight was due."""
    held_until: float
    """When the lease ends; it may be over."""
    paused_until: float | None

    @classmethod
    def of(cls, reply: ShardTimesReply, now: float) -> Self:
        """Raises ValueError if a field is not a time."""
        held_until = float(reply.held_until)
        if reply.lease_left:
            # The key may outlive what is written in the hash, and the other way round.
            held_until = max(held_until, now + reply.lease_left / 1_000)
        due_at = float(reply.due_at) if reply.due_at else None
        since = float(reply.since) if reply.since else None
        flight_since = float(reply.flight_since) if reply.flight_since else None
        paused_until = float(reply.paused_until) if reply.paused_until else None
        # A sum of what may be no number: one such is enough.
        if not math.isfinite(held_until + (due_at or 0) + (since or 0) + (flight_since or 0) + (paused_until or 0)):
            raise ValueError(reply)
        return cls(due_at, since, flight_since, held_until, paused_until)

    @property
    def waiting_since(self) -> tuple[float | None, ...]:
        """The times from which the lag counts."""
        return self.due_at, self.since, self.flight_since


def age(now: float, times: Iterable[float | None]) -> float:
    """Seconds since the earliest of the times; 0 if none is over."""
    return now - min([now, *[at for at in times if at is not None]])


class ShardStateReply(ReplyShape, frozen=True):
    """The reply of shard_state.lua for a shard. Times are Unix seconds as texts."""

    scripts = ("shard_state",)
    times: ShardTimesReply
    in_flight: int
    seen_at: bytes
    ttl: bytes
    is_open: int
    """-1: the jobs are not available to any holder."""
    risky: int
    in_use: bytes = b""


class DeclarationLook:
    """A look, beside another call, whether queues have other declarations than those that were read last."""

    def __init__(self, declared: Mapping[str, bytes]) -> None:
        """The declarations, by the names of their queues, as they were read last; empty if there was none."""
        self._declared = declared
        self.changed: frozenset[str] = frozenset()
        """The queues with another one, by what was seen last."""

    def commands(self, backend: Backend) -> list[ExtraCommand]:
        """The commands that read them: one, or in a cluster one for each queue."""
        keys = [declaration_key(name, backend.prefix) for name in self._declared]
        if backend.nodes.cluster is not None:
            return [(key, ("GET", key)) for key in keys]
        return [(keys[0], ("MGET", *keys))] if keys else []

    def take(self, answers: Sequence[Any]) -> None:
        """Take in the answers to the commands, or redis-py errors.

        Of a node that cannot serve now the next look tells. Any other error is left to a call that reads declarations.
        """
        each = answers[0] if answers and isinstance(answers[0], list) else answers
        if len(each) < len(self._declared):
            # One error for all of them.
            each = [*each] * len(self._declared)
        looks = zip(self._declared.items(), each, strict=True)
        self.changed = frozenset(name for (name, declared), answer in looks if _differs(declared, answer))


def _differs(declared: bytes, answer: object) -> bool:
    if isinstance(answer, Exception):
        return not is_transient(answer)
    return (answer or b"") != declared


def probe(
    backend: Backend,
    shards: Sequence[ShardRef],
    retry_for: float,
    look: DeclarationLook | None = None,
    *,
    whole: bool = False,
) -> list[ProbeResult]:
    """The work of each shard, for a process that looks again and again: a shard without jobs is "empty".

    A job waits in `due` (its tenant in `lanes`) or lies in `flight`. A shard with none of these keys has no work before
    the next push, whether it is held, paused or neither, so two commands tell of many shards that they need no look of
    their own. A shard with any of them is read whole each time: when its next job is due, and its lease or pause ends.
    Thus nothing is found later than by a look at each.

    Other than work, such as items of tasks that are kept, is told with `whole` alone.

    `look` goes with it: that a shard without jobs was closed is not seen, but its queue has another declaration then.
    Raises BackendError if a shard cannot be read for `retry_for` seconds.
    """
    reader = ShardReader(backend, retry_for)
    groups, extra = reader.groups(shards), look.commands(backend) if look else []
    words = () if whole else (_WORK,)
    answers = reader.ask_each(_SCRIPT, [(group, words) for group in groups], extra)
    if look:
        look.take(answers[: len(extra)])
    states = (_states(backend, group, reply) for group, reply in zip(groups, answers[len(extra) :], strict=True))
    return [*chain.from_iterable(states)]


def probe_each(backend: Backend, shards: Sequence[ShardRef], retry_for: float) -> list[ProbeResult | LowkiqError]:
    """The whole state of each shard; what is wrong with one stands in its place, and the others have their state."""
    reader = ShardReader(backend, retry_for)
    groups = reader.groups(shards)
    replies = reader.try_each(_SCRIPT, groups)
    states = (_states_or_errors(backend, group, reply) for group, reply in zip(groups, replies, strict=True))
    return [*chain.from_iterable(states)]


def _states_or_errors(
    backend: Backend, group: ShardGroup, reply: Reply | LowkiqError
) -> Sequence[ProbeResult | LowkiqError]:
    try:
        if isinstance(reply, LowkiqError):
            raise reply
        return _states(backend, group, reply)
    except ShardDamaged as error:
        # One of them is, and it must not keep the others waiting.
        return [error] if len(group.shards) == 1 else [_state_or_error(backend, shard) for shard in group.shards]
    except BackendError as error:
        return [error] * len(group.shards)


def _state_or_error(backend: Backend, shard: ShardRef) -> ProbeResult | LowkiqError:
    try:
        return _read(backend, [shard])[0]
    except BackendError as error:
        return error


def _states(backend: Backend, group: ShardGroup, reply: Reply) -> list[ProbeResult]:
    """The state of each shard in the reply; if one is unreadable, it is mended, and each is asked again."""
    if reply == []:
        return [_idle(shard) for shard in group.shards]
    now = backend.now(group.shards[0])
    try:
        return [
            _idle(shard) if own == [] else _state(backend, shard, own, now)
            for shard, own in zip(group.shards, reply, strict=True)
        ]
    except (ValueError, TypeError):
        return _read(backend, group.shards)


def _read(backend: Backend, shards: Sequence[ShardRef]) -> list[ProbeResult]:
    def parse(shard: ShardRef, reply: Reply) -> ProbeResult:
        (own,) = reply
        return _state(backend, shard, own, backend.now(shard))

    return ShardReader(backend, 0.0).read(_SCRIPT, dict.fromkeys(shards, ()), parse)


def _idle(shard: ShardRef) -> ProbeResult:
    return ProbeResult(shard, False, 0.0, None, None, "empty", True, False)  # noqa: FBT003 - in the order of its fields


def _state(backend: Backend, shard: ShardRef, reply: Reply, now: float) -> ProbeResult:
    state = ShardStateReply.of(reply)
    if state.in_use:
        backend.note_use(shard, state.in_use.decode())
    times, ttl = ShardTimes.of(state.times, now), float(state.ttl or 0)
    if not math.isfinite(ttl):
        raise ValueError(reply)
    busy_until, resumes_at = times.held_until, times.paused_until or 0.0
    if not state.ttl and busy_until > now + backend.lease_ttl + MISJUDGED:
        # Nobody has held the shard: a hand wrote that.
        raise ValueError(reply)
    if state.ttl and busy_until > now + ttl + MISJUDGED:
        # The server's clock was ahead when that was written: the next `acquire` sets it right.
        busy_until = now
    free_at = max(busy_until, resumes_at)
    work_at = now if state.in_flight else times.due_at
    obstacle: Obstacle | None = None
    if free_at > now:
        obstacle = "paused" if resumes_at > now else "held"
    elif work_at is None or work_at > _due_by(now, state.seen_at):
        obstacle = "empty"
    if state.is_open < 0:
        obstacle, work_at = "empty", None
    lag = age(now, times.waiting_since)
    next_at = None if work_at is None else max(work_at, free_at)
    return ProbeResult(
        ref=shard,
        has_work=obstacle is None,
        lag=lag,
        next_at=next_at,
        ready_in=-lag if obstacle is None else next_at and next_at - now,
        obstacle=obstacle,
        is_open=state.is_open > 0,
        risky=bool(state.risky) and state.is_open >= 0,
        held_until=times.held_until,
    )


def _due_by(now: float, seen_at: bytes) -> float:
    """As in shard.lua: what another client queued as due by a clock that is a little ahead is due."""
    ahead = float(seen_at) - now if seen_at else 0.0
    return now + ahead if 0 < ahead <= NEAR else now
