"""Removes a queue with all that it holds. Only while nobody uses the server: whoever does is not told."""

from contextlib import closing
from dataclasses import dataclass

from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.server.faults import translated
from lowkiq_lambda.store.shard.keys import PREFIX, escape


@dataclass(frozen=True, slots=True)
class Erased:
    """How many ids were removed with a queue: those that waited or were in flight, and those in the morgue."""

    pending: int
    buried: int


def erase_queue(url: str, queue_name: str, timeout: float) -> Erased | None:
    """Remove the queue from a server (not a cluster); None where it has none of that name. Raises BackendError."""
    name = escape(queue_name)
    with closing(connect(url, max_connections=1, timeout=timeout, pool_timeout=timeout)) as client, translated():
        # The shards have more in the braces than what the queue has but once.
        keys = [key for end in ("}:*", ":*") for key in client.scan_iter(match=f"{PREFIX}:{{{name}{end}", count=1_000)]
        if not keys:
            return None
        pending: set[object] = set()
        buried = 0
        for key in keys:
            shard, _, kind = key.rpartition(b":")
            if kind == b"due":
                pending.update((shard, job_id) for job_id in client.zrange(key, 0, -1))
            elif kind == b"flight":
                pending.update((shard, job_id) for job_id in client.hkeys(key))
            elif kind == b"morgue":
                buried += client.zcard(key)
        client.unlink(*keys)
        return Erased(len(pending), buried)
