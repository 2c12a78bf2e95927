"""The floor of a drain: the same scripts, called by the smallest loop that there can be.

No worker, no decoding, no threads, no retries, and nothing is measured to choose the size of the next claim.
"""

import struct
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import redis

from bench.blank import QUEUE, Load
from lowkiq_lambda import Config
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION, script
from lowkiq_lambda.store.shard.session import ClaimLimits

_TTL: Final = 30
_MERGE: Final = "min"
_NOTHING_NAMED: Final = msgspec.msgpack.encode([])


def floor(load: Load, claim_size: int, client: redis.Redis) -> float:
    """Jobs a second, at `claim_size` jobs a claim."""
    limits = _limits(claim_size)
    _load(client)
    began_at, drained = time.perf_counter(), 0
    for index in range(load.shards):
        drained += _drain(client, ShardRef(QUEUE, load.shards, index), limits)
    if drained != load.jobs:
        raise RuntimeError(f"the floor's loop found {drained} jobs of {load.jobs}")
    return drained / (time.perf_counter() - began_at)


def leave_in_flight(client: redis.Redis, shards: Sequence[ShardRef], claim_size: int) -> None:
    """Claim so many jobs of each shard, as a drain does that is at work."""
    _load(client)
    for shard in shards:
        _acquire(client, shard, _limits(claim_size))


def _load(client: redis.Redis) -> None:
    for name in ("acquire", "settle"):
        client.script_load(script(name).source)


def _limits(claim_size: int) -> list[int | bytes]:
    config = Config()
    claimed = ClaimLimits(ids=min(claim_size, 1_000), payloads=config.claim_payloads, bytes=config.claim_bytes)
    morgue = config.morgue.entries, config.morgue.bytes, int(config.morgue.age)
    return [msgspec.msgpack.encode(claimed), *morgue]


def _drain(client: redis.Redis, shard: ShardRef, limits: list[int | bytes]) -> int:
    nonce, number, drained = _nonce(shard), 0, 0
    token, claimed = _acquire(client, shard, limits)
    while claimed:
        jobs = len(claimed[1]) // 2
        drained += jobs
        number += 1
        settled = ("claim", "0 0", struct.pack(">dddd", jobs, 1, 0, 0), _NOTHING_NAMED)
        claimed = _call(client, "settle", shard, nonce, token, number, _TTL, _MERGE, *limits, *settled)[1]
    return drained


def _acquire(client: redis.Redis, shard: ShardRef, limits: list[int | bytes]) -> tuple[bytes, Any]:
    """The token and the first claim; None where the shard has none, as few jobs leave some of many shards empty."""
    status, *granted = _call(client, "acquire", shard, _nonce(shard), "floor", _TTL, _MERGE, *limits, "")
    return (granted[0], granted[4]) if status == b"OK" else (b"", None)


def _nonce(shard: ShardRef) -> str:
    return f"floor {shard.index}"


def _call(client: redis.Redis, name: str, shard: ShardRef, *args: str | int | bytes) -> Any:  # noqa: ANN401 - a reply
    code, stamp = script(name), (CONTRACT_VERSION, f"{time.time():.6f}", 1)
    return client.execute_command("EVALSHA", code.sha, len(code.keys), *shard.some(code.pick), *stamp, *args)
