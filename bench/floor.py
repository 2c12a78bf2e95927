"""The floor of a drain: the same scripts, called by the smallest loop that there can be.

No worker, no decoding, no threads, no retries, and nothing is measured to choose the size of the next claim.
"""

import time
from typing import Any, Final

import msgspec
import redis

from bench.blank import QUEUE, Load
from lowkiq_lambda import Config
from lowkiq_lambda.store.keys import ShardRef
from lowkiq_lambda.store.scripts import CONTRACT_VERSION, script

_TTL: Final = 30
_MERGE: Final = "min"
_NOTHING_NAMED: Final = msgspec.msgpack.encode([])


def floor(load: Load, window: int, client: redis.Redis) -> float:
    """Jobs a second, at `window` jobs a claim."""
    config = Config()
    limits = [min(window, 1_000), config.claim_payloads, config.claim_bytes]
    limits += [config.morgue_max_entries, config.morgue_max_bytes, int(config.morgue_max_age)]
    for name in ("acquire", "settle"):
        client.script_load(script(name).source)
    began_at, drained = time.perf_counter(), 0
    for index in range(load.shards):
        drained += _drain(client, ShardRef(QUEUE, load.shards, index), limits)
    if drained != load.jobs:
        raise RuntimeError(f"the floor's loop found {drained} jobs of {load.jobs}")
    return drained / (time.perf_counter() - began_at)


def _drain(client: redis.Redis, shard: ShardRef, limits: list[int]) -> int:
    nonce, number, drained = f"floor {shard.index}", 0, 0
    claimed = _call(client, "acquire", shard, nonce, "floor", _TTL, _MERGE, *limits, "")[5]
    while claimed:
        jobs = len(claimed[1]) // 2
        drained += jobs
        number += 1
        settled = ("claim", "0 0", jobs, _NOTHING_NAMED)
        claimed = _call(client, "settle", shard, nonce, number, _TTL, _MERGE, *limits, *settled)[1]
    return drained


def _call(client: redis.Redis, name: str, shard: ShardRef, *args: str | int | bytes) -> Any:  # noqa: ANN401 - a reply
    code, stamp = script(name), (CONTRACT_VERSION, f"{time.time():.6f}", 1)
    return client.execute_command("EVALSHA", code.sha, len(code.keys), *shard.some(code.keys), *stamp, *args)
