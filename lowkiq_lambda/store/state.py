"""What there is to do in each shard, for drains that choose: one round trip for each node."""

from collections.abc import Sequence
from dataclasses import dataclass

from lowkiq_lambda.store.backend import Backend, Reply
from lowkiq_lambda.store.keys import ShardRef


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard as it was probed. Times are Unix seconds by the server's clock.

    `has_work`: something is due, or lies with a holder whose lease ended, and nobody holds or pauses the shard.
    `lag`: seconds that the oldest due job has waited, those in flight too; 0 where none is due.
    `next_at`: when it is worth looking again, where there is no work now; None: not before somebody pushes.
    """

    ref: ShardRef
    has_work: bool
    lag: float
    next_at: float | None


def probe(backend: Backend, shards: Sequence[ShardRef], patience: float) -> list[ShardState]:
    """The state of each shard. Raises BackendError where one cannot be read for `patience` seconds."""
    if not shards:
        return []
    replies = backend.read_each("probe", shards, patience)
    nows = backend.now_each(shards)
    return [_state(*found) for found in zip(shards, replies, nows, strict=True)]


def _state(shard: ShardRef, reply: Reply, now: float) -> ShardState:
    due_at, since, in_flight, flight_since, held_until, key_left, paused_until = reply
    waiting = float(due_at) if due_at else None
    oldest = [float(at) for at in (due_at, since, flight_since) if at]
    busy_until = max(float(held_until), now + key_left / 1_000) if key_left else float(held_until)
    free_at = max(busy_until, float(paused_until) if paused_until else 0.0)
    work_at = now if in_flight else waiting
    has_work = work_at is not None and work_at <= now and free_at <= now
    return ShardState(
        ref=shard,
        has_work=has_work,
        lag=max(0.0, now - min(oldest)) if oldest else 0.0,
        next_at=None if work_at is None else max(work_at, free_at),
    )
