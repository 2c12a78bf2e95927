"""The words that an answer to "Why is it not running?" is made of."""

from typing import Final

from lowkiq_lambda.dashboard.formatting import duration, exact
from lowkiq_lambda.views import ShardDetails

CAUSES: Final = (
    "Either no process runs, or a scheduled drain is not due yet, or all that may take this shard are busy with other "
    "shards, also those of other queues: look whether a process runs, at its log, and at which shards of the queues "
    "are held, and for how long."
)


def owner(shard: ShardDetails) -> str:
    """Who holds the shard, or held it last."""
    return shard.owner or "somebody"


def no_holder(shard: ShardDetails) -> str:
    """That its holder holds it in name only."""
    # One mark stands for both, as both have the same consequences.
    return f"nothing that its holder, {owner(shard)}, writes is accepted any more: it gave up, or was evicted"


def held_for(shard: ShardDetails) -> str:
    """For how long somebody has held it."""
    return "" if shard.acquired_at is None else f" for {ago(shard, shard.acquired_at)}"


def ended(shard: ShardDetails) -> str:
    """When the lease ended of itself; empty where it was given back."""
    return f" (its lease ended {ago(shard, shard.held_until)} ago)" if shard.held_until else ""


def ago(shard: ShardDetails, moment: float) -> str:
    """How long ago a moment was when the shard was looked at."""
    return duration(max(0.0, shard.at - moment))


def ids(count: int) -> str:
    """So many ids."""
    return f"{exact(count)} id{'s' if count != 1 else ''}"


def times(count: int) -> str:
    """So many times."""
    return {1: "once", 2: "twice"}.get(count, f"{exact(count)} times")
