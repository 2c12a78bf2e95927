"""Phrases of the answers to "Why is it not running?"."""

from typing import Final

from lowkiq_lambda.dashboard.formatting import duration, exact
from lowkiq_lambda.views import ShardDetails

CAUSES: Final = (
    "Possible causes: no process runs; a scheduled drain is not due yet; or all processes that may drain this shard "
    "are busy with other shards, also of other queues. Check that a process runs, read its log, and check which "
    "shards are held and for how long."
)


def owner(shard: ShardDetails) -> str:
    """The current or the last holder of the shard."""
    return shard.owner or "an unknown process"


def no_holder(shard: ShardDetails) -> str:
    """A holder whose writes are rejected. Redis has one flag for both causes."""
    return f"Redis rejects the writes of the holder, {owner(shard)}, which was evicted or gave up"


def held_for(shard: ShardDetails) -> str:
    """The time since the holder acquired the shard."""
    return "" if shard.acquired_at is None else f" for {ago(shard, shard.acquired_at)}"


def ended(shard: ShardDetails) -> str:
    """The time since the lease ended; empty after a release."""
    return f" (its lease ended {ago(shard, shard.held_until)} ago)" if shard.held_until else ""


def ago(shard: ShardDetails, moment: float) -> str:
    """The time from a moment until the shard was read."""
    return duration(max(0.0, shard.at - moment))


def ids(count: int) -> str:
    """A number of ids."""
    return f"{exact(count)} id{'s' if count != 1 else ''}"


def times(count: int) -> str:
    """A number of times."""
    return {1: "once", 2: "twice"}.get(count, f"{exact(count)} times")
