"""Removes a queue with all its keys. Call it only while no process uses the server, as none is notified."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.server.faults import translated
from lowkiq_lambda.store.shard.keys import escape, key_prefix


@dataclass(frozen=True, slots=True)
class Erased:
    """How many ids were removed with a queue: those that waited or were in flight, and those in the morgue."""

    waiting: int
    dead: int


def has_queue(url: str, queue_name: str, namespace: str | None, timeout: float) -> bool:
    """Whether a server (not a cluster) has anything of the queue. Raises BackendError."""
    with _connected(url, timeout) as client:
        return bool(_keys_of(client, queue_name, namespace))


def erase_queue(url: str, queue_name: str, namespace: str | None, timeout: float) -> Erased | None:
    """Remove the queue from a server (not a cluster); None if it has no queue of that name. Raises BackendError."""
    with _connected(url, timeout) as client:
        keys = _keys_of(client, queue_name, namespace)
        if not keys:
            return None
        waiting: set[object] = set()
        dead = 0
        for key in keys:
            shard, _, kind = key.rpartition(b":")
            if kind == b"due":
                waiting.update((shard, job_id) for job_id in client.zrange(key, 0, -1))
            elif kind == b"flight":
                waiting.update((shard, job_id) for job_id in client.hkeys(key))
            elif kind == b"morgue":
                dead += client.zcard(key)
        client.unlink(*keys)
        return Erased(len(waiting), dead)


@contextmanager
def _connected(url: str, timeout: float) -> Iterator[Any]:
    with closing(connect(url, max_connections=1, timeout=timeout, pool_timeout=timeout)) as client, translated():
        yield client


def _keys_of(client: Any, queue_name: str, namespace: str | None) -> list[bytes]:  # noqa: ANN401 - any of redis-py's clients
    begin = f"{key_prefix(namespace)}:{{{escape(queue_name)}"
    # The shards have more in the braces than what the queue has but once.
    return [key for end in ("}:*", ":*") for key in client.scan_iter(match=f"{begin}{end}", count=1_000)]
