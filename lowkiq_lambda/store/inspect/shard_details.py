"""Shards as their holders have them, and what decides when an id runs: one round trip for each node."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from lowkiq_lambda.job import NEVER_FAILED, shard_for
from lowkiq_lambda.store.server.server_time import FOREVER
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.views import JobExplanation, ShardDetails


def shard_details(reader: ShardReader) -> list[ShardDetails]:
    """The shards in their order. Raises BackendError."""
    backend = reader.backend
    asked = dict.fromkeys(reader.shards, ())
    return reader.read("shard_details", asked, lambda shard, reply: _shard(shard.index, reply, backend.now(shard)))


def explain_job(reader: ShardReader, job_id: str) -> JobExplanation:
    """What decides when the id runs. Raises BackendError."""
    shard = reader.shards[shard_for(job_id, len(reader.shards))]
    (found,) = reader.read("explain_job", {shard: [job_id]}, lambda one, reply: _situation(reader, one, reply))
    return found


def _situation(reader: ShardReader, shard: ShardRef, reply: Reply) -> JobExplanation:
    situation, due_at, since, ahead, retry_count, suspects_ahead, trouble, flies, buried_at, closed, version = reply
    return JobExplanation(
        shard=_shard(shard.index, situation, reader.backend.now(shard)),
        perform_in=_time(since or due_at),
        retry_count=float(retry_count or NEVER_FAILED),
        ahead=ahead,
        suspects_ahead=None if suspects_ahead == b"" else suspects_ahead,
        strikes=len(msgspec.msgpack.decode(trouble, type=dict[str, Any]).get("strikes", ())) if trouble else 0,
        in_flight=bool(flies),
        buried_at=_time(buried_at),
        closed=bool(closed),
        least_version=int(version) if version else None,
    )


def _shard(index: int, reply: Reply, now: float) -> ShardDetails:
    length, retries, in_flight, morgue_length, suspects, *times, token, owner, acquired_at, until, left = reply[:13]
    gave_up, paused_until, woken_until = reply[13:]
    return ShardDetails(
        index=index,
        at=now,
        length=length,
        retries=retries,
        in_flight=in_flight,
        morgue_length=morgue_length,
        suspects=suspects,
        lag=_lag(times, now),
        due_at=_time(times[0]),
        token=int(token),
        owner=owner.decode(errors="replace"),
        acquired_at=_time(acquired_at),
        # The key may outlive what is written in the hash, and the other way round.
        held_until=max(float(until), now + left / 1_000 if left else 0.0),
        gave_up=bool(gave_up),
        paused_until=math.inf if paused_until and float(paused_until) >= FOREVER else _time(paused_until),
        woken_until=_time(woken_until),
    )


def _lag(times: Sequence[bytes], now: float) -> float:
    oldest = min((float(at) for at in times if at), default=now)
    return max(0.0, now - oldest)


def _time(text: bytes) -> float | None:
    """Raises ValueError where it is no time."""
    if not text:
        return None
    at = float(text)
    if not math.isfinite(at):
        raise ValueError(text)
    return at
