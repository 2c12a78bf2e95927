"""The leases of a process that has ended, released by who knows that it has. docs/lease.md tells why that is safe."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ask_each
from lowkiq_lambda.store.shard.scripts import StatusReply

_FREED: Final = b"FREED"


def release_dead(backend: Backend, shards: Sequence[ShardRef], nonce_prefix: str, retry_for: float) -> list[ShardRef]:
    """Release the leases of a process that is surely gone, and notify who waits for the shards; which ones it held.

    `nonce_prefix`: what the nonces of its lease sessions begin with, and no other process's. A shard that cannot be
    asked for `retry_for` seconds is left to the end of its lease.
    """
    if not nonce_prefix:
        raise ValueError("Every nonce begins with nothing: the leases of all would be released.")
    replies = ask_each(backend, "release_dead", shards, [nonce_prefix], retry_for)
    freed = [
        shard
        for shard, reply in replies.items()
        if not isinstance(reply, LowkiqError) and StatusReply.of(reply).status == _FREED
    ]
    by_channel: defaultdict[str, list[str]] = defaultdict(list)
    for shard in freed:
        by_channel[shard.channel].append(str(shard.number))
    for channel, indexes in by_channel.items():
        backend.publish(channel, ",".join(indexes))
    return freed
