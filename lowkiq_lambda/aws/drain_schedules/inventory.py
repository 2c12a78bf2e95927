"""What the drift guard looks at: the app's declarations, and the queues in Redis. Writes nothing."""

from collections.abc import Mapping

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.drain_schedules.guard import Held, QueueFound
from lowkiq_lambda.declaring import MAX_SHARDS
from lowkiq_lambda.store.inspect.declared_queues import declared_queues
from lowkiq_lambda.store.inspect.metrics import queue_metrics
from lowkiq_lambda.store.shard.declarations import HASHES, LAYOUTS, Declaration, shards_of
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views import Metrics


def declarations_of(app: Lowkiq) -> dict[str, Declaration]:
    """What the code says of each of its queues."""
    codec = app.config.codec_name
    return {name: queue.declaration(codec) for name, queue in app.queues.items()}


def queues_in_redis(app: Lowkiq) -> list[QueueFound]:
    """Every queue that the app's Redis knows, whoever made it, with what its shards hold. Raises BackendError."""
    declared = declared_queues(app.backend, app.config.retry_for)
    shards = {name: _shards(name, made_with) for name, made_with in declared.items()}
    readable = {name: found for name, found in shards.items() if found}
    # One round trip for each node, for all of them.
    measured = queue_metrics(ShardReader(app.backend, app.config.retry_for), list(readable.values()))
    held = {name: tuple(map(_held, numbers.shards)) for name, numbers in zip(readable, measured, strict=True)}
    return [QueueFound(name, made_with, held.get(name)) for name, made_with in declared.items()]


def _shards(name: str, made_with: Mapping[str, object]) -> list[ShardRef]:
    """None of a queue that a library with another layout has made: what is in its keys cannot be told."""
    count = made_with.get("shards_count")
    known = made_with.get("layout") in LAYOUTS and made_with.get("hash") in HASHES
    if not (known and isinstance(count, int) and 1 <= count <= MAX_SHARDS):
        return []
    return shards_of(name, made_with)


def _held(shard: Metrics) -> Held:
    return Held(waiting=shard.length, in_flight=shard.in_flight, morgue=shard.morgue_length)
