"""A look at the server at start: what it says about itself that would lose jobs or break calls."""

from collections.abc import Iterator
from typing import Any, Final

import redis

from lowkiq_lambda.store.server.connection import Client, is_cluster
from lowkiq_lambda.store.server.faults import REDIS_ERRORS
from lowkiq_lambda.store.server.primary import SentinelPool

_OLDEST: Final = (6, 2)
OLDEST: Final = ".".join(map(str, _OLDEST))
"""The oldest version of Redis that serves."""


def check_server(client: Client) -> list[str]:
    """Warnings, one sentence each, at most one of a kind; never raises.

    A setting that the server does not show is a warning only if it may lose jobs.
    """
    warnings: dict[str, None] = {}
    try:
        for node in _nodes(client):
            problems = (*_policy_warnings(node), *_replica_warnings(node), *version_warnings(_version(node)))
            warnings.update(dict.fromkeys(problems))
    except REDIS_ERRORS as error:
        warnings[f"The server could not be checked ({type(error).__name__}: {error})."] = None
    return list(warnings)


def _nodes(client: Client) -> Iterator[redis.Redis]:
    if not is_cluster(client):
        yield client
        return
    for node in client.get_primaries():
        yield client.get_redis_connection(node)


def _policy_warnings(node: redis.Redis) -> Iterator[str]:
    policy = _info(node, "memory").get("maxmemory_policy") or _configured_policy(node)
    if policy is None:
        yield (
            "The server does not tell its maxmemory-policy: make sure that it is noeviction, as any other "
            "evicts keys when memory is full, and jobs with them."
        )
    elif policy != "noeviction":
        yield (
            f"The server's maxmemory-policy is {policy}: when memory is full it evicts keys, and jobs with "
            "them. Set it to noeviction, or use a server of its own for the queues."
        )


def _replica_warnings(node: redis.Redis) -> Iterator[str]:
    # INFO has the number of good replicas only if a least number is set.
    if isinstance(node.connection_pool, SentinelPool) and "min_slaves_good_slaves" not in _info(node, "replication"):
        yield (
            "The server is named by Sentinels, and does not have min-replicas-to-write set: in a failover it goes on "
            "taking jobs for seconds after another has taken its place, and loses them. Set it to 1 on every server."
        )


def _configured_policy(node: redis.Redis) -> str | None:
    try:
        reply = node.execute_command("CONFIG GET", "maxmemory-policy")
    except REDIS_ERRORS:
        return None
    values = [*reply.values()] if isinstance(reply, dict) else list(reply)[1:]
    return _text(values[0]) if values else None


def version_warnings(version: str) -> Iterator[str]:
    """A warning if the version is known and too old."""
    if is_too_old(version):
        yield f"The server's version is {version}, and {OLDEST} is the oldest that is supported."


def is_too_old(version: str) -> bool:
    """Whether it is known to be older than the oldest."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return len(numbers) == len(_OLDEST) and numbers < _OLDEST


def _version(node: redis.Redis) -> str:
    # Forks tell under this name which version of Redis they are compatible with.
    return _text(_info(node, "server").get("redis_version") or "")


def _info(node: redis.Redis, section: str) -> dict[str, Any]:
    try:
        return dict(node.info(section))
    except REDIS_ERRORS:
        return {}


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
