"""Pauses of a tenant."""

from collections.abc import Callable

from lowkiq_lambda.operate.inspect.action_scripts import PauseReply
from lowkiq_lambda.operate.inspect.orders import order_each
from lowkiq_lambda.operate.inspect.tenants import shards_with_tenants
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument


def pause_tenant(reader: ShardReader, tenant: str, end_of: Callable[[float], Argument]) -> float:
    """Pause the tenant in its shards, or resume it; until when. Raises ValueError where it has none, BackendError."""
    given: object = tenant
    if not isinstance(given, str):
        raise TypeError(f"tenant must be a text, not {given!r}.")
    if ":" in tenant:
        raise ValueError(f"A tenant is what stands before the first colon of its ids, so it has none: {tenant!r}.")
    shards = shards_with_tenants(reader, tenant)
    if not shards:
        raise ValueError("The worker declares no tenants.")
    until = end_of(reader.backend.now(shards[0]))
    for shard, reply in order_each(reader, "pause_tenant", shards, lambda _: [tenant, until]):
        if PauseReply.of(reply).due_at and not until:
            reader.backend.publish(shard.channel, str(shard.number))
    return float(until or 0)
