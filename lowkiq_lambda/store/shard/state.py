"""What there is to do in each shard, for drains that choose: one round trip for each node."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from lowkiq_lambda.errors import BackendError, LowkiqError, ShardDamaged
from lowkiq_lambda.job import Obstacle
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardGroup, ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

NEAR: Final = 0.1
"""Seconds by which clients may misjudge the server's time; in shard.lua, too."""
MISJUDGED: Final = 1.0
"""Seconds that a lease may seem to last beyond its TTL; in held.lua, too."""
_SCRIPT: Final = "shard_state"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A shard as it was probed. Times are Unix seconds by the server's clock.

    `has_work`: something is due, or lies with a holder whose lease ended, and nobody holds or pauses the shard.
    `lag`: seconds that the oldest due job has waited, those in flight too; 0 where none is due.
    `next_at`: when it is worth looking again, where there is no work now; None: not before somebody pushes.
    `ready_in`: in how many seconds it has work (below 0: since when it has), as of the probe; None: as for `next_at`.
    `obstacle`: why there is no work that could be had; None where there is.
    `is_open`: whether it was opened under a declaration, and not closed since.
    `risky`: its holder died, or jobs are suspected of having ended one: the next that runs may end its process.
    """

    ref: ShardRef
    has_work: bool
    lag: float
    next_at: float | None
    ready_in: float | None
    obstacle: Obstacle | None
    is_open: bool
    risky: bool


class ShardStateReply(ReplyShape, frozen=True):
    """What shard_state.lua answers for a shard. Times are Unix seconds as texts."""

    scripts = ("shard_state",)
    due_at: bytes
    since: bytes
    in_flight: int
    flight_since: bytes
    held_until: bytes
    lease_left: int
    """Milliseconds."""
    paused_until: bytes
    seen_at: bytes
    ttl: bytes
    is_open: int
    risky: int


def probe(backend: Backend, shards: Sequence[ShardRef], retry_for: float) -> list[ProbeResult]:
    """The state of each shard. Raises BackendError where one cannot be read for `retry_for` seconds."""
    reader = ShardReader(backend, retry_for)
    groups = reader.groups(shards)
    replies = reader.ask_each(_SCRIPT, [(group, ()) for group in groups])
    states = (_states(backend, group, reply) for group, reply in zip(groups, replies, strict=True))
    return [*chain.from_iterable(states)]


def probe_each(backend: Backend, shards: Sequence[ShardRef], retry_for: float) -> list[ProbeResult | LowkiqError]:
    """As `probe`, but what is wrong with one shard stands in its place, and the others have their state."""
    reader = ShardReader(backend, retry_for)
    groups = reader.groups(shards)
    replies = reader.try_each(_SCRIPT, groups)
    found = (_states_or_errors(backend, group, reply) for group, reply in zip(groups, replies, strict=True))
    return [*chain.from_iterable(found)]


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
    """What the reply says of each shard; where one cannot be read, they are asked again, and that one is mended."""
    now = backend.now(group.shards[0])
    try:
        return [_state(shard, own, now) for shard, own in zip(group.shards, reply, strict=True)]
    except (ValueError, TypeError):
        return _read(backend, group.shards)


def _read(backend: Backend, shards: Sequence[ShardRef]) -> list[ProbeResult]:
    def parse(shard: ShardRef, reply: Reply) -> ProbeResult:
        (own,) = reply
        return _state(shard, own, backend.now(shard))

    return ShardReader(backend, 0.0).read(_SCRIPT, dict.fromkeys(shards, ()), parse)


def _state(shard: ShardRef, reply: Reply, now: float) -> ProbeResult:
    state = ShardStateReply.of(reply)
    waiting = float(state.due_at) if state.due_at else None
    oldest = [float(at) for at in (state.due_at, state.since, state.flight_since) if at]
    held_until, ttl = float(state.held_until), float(state.ttl or 0)
    busy_until = max(held_until, now + state.lease_left / 1_000) if state.lease_left else held_until
    if state.ttl and busy_until > now + ttl + MISJUDGED:
        # The server's clock was ahead when that was written: the next `acquire` sets it right.
        busy_until = now
    resumes_at = float(state.paused_until) if state.paused_until else 0.0
    free_at = max(busy_until, resumes_at)
    # A sum of what may be no number: one such is enough.
    if not math.isfinite(sum(oldest) + held_until + ttl + free_at):
        raise ValueError(reply)
    work_at = now if state.in_flight else waiting
    obstacle: Obstacle | None = None
    if free_at > now:
        obstacle = "paused" if resumes_at > now else "held"
    elif work_at is None or work_at > _due_by(now, state.seen_at):
        obstacle = "empty"
    lag = max(0.0, now - min(oldest)) if oldest else 0.0
    next_at = None if work_at is None else max(work_at, free_at)
    return ProbeResult(
        ref=shard,
        has_work=obstacle is None,
        lag=lag,
        next_at=next_at,
        ready_in=-lag if obstacle is None else next_at and next_at - now,
        obstacle=obstacle,
        is_open=bool(state.is_open),
        risky=bool(state.risky),
    )


def _due_by(now: float, seen_at: bytes) -> float:
    """As in shard.lua: what another client queued as due by a clock that is a little ahead is due."""
    ahead = float(seen_at) - now if seen_at else 0.0
    return now + ahead if 0 < ahead <= NEAR else now
