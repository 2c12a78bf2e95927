"""Shards that an operator names, and their pauses."""

from collections.abc import Callable

from lowkiq_lambda.jobs.job import is_number
from lowkiq_lambda.operate.acts.action_scripts import PauseReply
from lowkiq_lambda.operate.inspect.orders import order_each
from lowkiq_lambda.operate.inspect.tenants import shards_with_tenants
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.nodes import FOREVER
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, StatusReply

EndOfPause = Callable[[float], Argument]


def chosen_shard(shards: QueueShards, shard: ShardRef | int) -> ShardRef:
    """One of the shards, which may be named by its number. Raises ValueError for any other."""
    value: object = shard
    if isinstance(value, ShardRef) and value in shards:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(shards):
        return shards[value]
    raise ValueError(f"A shard is one of the queue, or its number from 0 to {len(shards) - 1}, not {value!r}.")


def pause_ends(seconds: float | None) -> EndOfPause:
    """When a pause that begins at a time ends. Raises ValueError if `seconds` is not above 0."""
    if seconds is not None and not (is_number(seconds) and seconds > 0):
        raise ValueError(f"seconds must be more than 0, or None for a pause without an end, not {seconds!r}.")
    # An int may be larger than any float.
    lasts = FOREVER if seconds is None else min(seconds, FOREVER)
    return lambda now: min(now + lasts, FOREVER)


def no_pause(_now: float) -> Argument:
    """The end of a pause that is taken back."""
    return ""


def set_pause(reader: ShardReader, tenant: str | None, end_of: EndOfPause) -> float:
    """Pause the queue, or a tenant of it, or resume it; returns the end of the pause.

    Raises ValueError for a tenant if the queue has no tenants, TypeError if it is not a text, BackendError.
    """
    shards = reader.shards if tenant is None else _with_tenants(reader, tenant)
    until = end_of(reader.backend.now(shards[0]))
    script, args = ("pause", [until]) if tenant is None else ("pause_tenant", [tenant, until])
    for shard, reply in order_each(reader, script, shards, lambda _: args):
        if PauseReply.of(reply).due_at and not until:
            reader.backend.publish(shard.channel, str(shard.number))
    return float(until or 0)


def forget_timing(reader: ShardReader) -> None:
    """Drains of the queue forget how long batches took until now. Raises BackendError."""
    for _, reply in order_each(reader, "forget_timing", reader.shards, lambda _: []):
        StatusReply.of(reply)


def _with_tenants(reader: ShardReader, tenant: str) -> list[ShardRef]:
    value: object = tenant
    if not isinstance(value, str):
        raise TypeError(f"tenant must be a text, not {value!r}.")
    if ":" in tenant:
        raise ValueError(f"A tenant is what stands before the first colon of its ids, so it has none: {tenant!r}.")
    shards = [*shards_with_tenants(reader, tenant)]
    if not shards:
        raise ValueError("The worker declares no tenants.")
    return shards
