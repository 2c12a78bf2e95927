"""What the drift guard looks at: the app's declarations, and the queues in Redis. Writes nothing."""

from collections.abc import Sequence

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.drain_schedules.guard import Held, QueueFound
from lowkiq_lambda.operate.inspect.declared_queues import declared_queues
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.store.shard.declarations import Declaration, read_registered, readable_shards
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Metrics


def declarations_of(app: Lowkiq) -> dict[str, Declaration]:
    """What the code says of each of its queues."""
    return {name: queue.declaration for name, queue in app.core.queues.items()}


def queues_in_redis(app: Lowkiq) -> list[QueueFound]:
    """Every queue that the app's Redis knows, whoever made it, with what its shards hold. Raises BackendError."""
    declared = declared_queues(app.core.backend, app.config.retry_for)
    shards = {name: readable_shards(name, there) for name, there in declared.items()}
    readable = {name: found for name, found in shards.items() if found}
    # One round trip for each node, for all of them.
    measured = queue_metrics(ShardReader(app.core.backend, app.config.retry_for), list(readable.values()))
    held = {
        name: _by_index(own, numbers.shards) for (name, own), numbers in zip(readable.items(), measured, strict=True)
    }
    return [
        QueueFound(name, there.made_with, held.get(name), there.layout.accepts if there.layout else ())
        for name, there in declared.items()
    ]


def shards_counts(app: Lowkiq) -> list[int]:
    """How many indexes the app's queues have that were resharded, or are to be. Raises BackendError."""
    found = (
        (queue, read_registered(app.core.backend, name, app.config.retry_for))
        for name, queue in app.core.queues.items()
    )
    return [there.layout.most for queue, there in found if there and there.layout and there.agrees(queue.declaration)]


def _by_index(shards: Sequence[ShardRef], numbers: Sequence[Metrics]) -> tuple[Held, ...]:
    """What a drain of each index finds: while a queue is resharded two shards have the same."""
    held = [Held()] * max(shard.shards_count for shard in shards)
    for shard, metrics in zip(shards, numbers, strict=True):
        held[shard.index] += _held(metrics)
    return tuple(held)


def _held(shard: Metrics) -> Held:
    return Held(waiting=shard.length, in_flight=shard.in_flight, morgue=shard.morgue_length)
