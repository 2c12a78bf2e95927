"""Queues in numbers: one round trip for each node, whatever they hold."""

from collections.abc import Sequence

from lowkiq_lambda.store.backend import Backend, Reply
from lowkiq_lambda.store.keys import ShardRef
from lowkiq_lambda.views import Metrics, Numbers, QueueMetrics


def measure(backend: Backend, queues: Sequence[Sequence[ShardRef]], patience: float) -> list[QueueMetrics]:
    """The numbers of each queue, given by its shards. Raises BackendError."""
    shards = [shard for queue in queues for shard in queue]
    return measured(backend, queues, backend.read_each("measure", shards, patience))


def measured(backend: Backend, queues: Sequence[Sequence[ShardRef]], replies: Sequence[Reply]) -> list[QueueMetrics]:
    """What `measure.lua` just said of the shards, one after the other, by queue."""
    shards = [shard for queue in queues for shard in queue]
    nows = backend.now_each(shards)
    found = iter([_shard(reply, now) for reply, now in zip(replies, nows, strict=True)])
    return [_queue(tuple(next(found) for _ in queue)) for queue in queues]


def numbers(metrics: Metrics) -> Numbers:
    """Those that everybody asks for."""
    return {"length": metrics.length, "morgue_length": metrics.morgue_length, "lag": metrics.lag}


def in_total(each: Sequence[Numbers]) -> Numbers:
    """Sums, and the largest lag; zeros where there is nothing."""
    return {
        "length": sum(one["length"] for one in each),
        "morgue_length": sum(one["morgue_length"] for one in each),
        "lag": max((one["lag"] for one in each), default=0.0),
    }


def _shard(reply: Reply, now: float) -> Metrics:
    length, retries, busy, morgue_length, *times = reply[:7]
    processed, retried, dead, payloads = map(int, reply[7:])
    oldest = min((float(at) for at in times if at), default=now)
    earliest_due = float(times[0] or now)
    return Metrics(
        length=length,
        fresh=length - retries,
        retries=retries,
        busy=busy,
        morgue_length=morgue_length,
        lag=max(0.0, now - oldest),
        oldest_due_age=max(0.0, now - earliest_due),
        processed=processed,
        failed=retried + dead,
        dead=dead,
        payloads=payloads,
    )


def _queue(shards: tuple[Metrics, ...]) -> QueueMetrics:
    return QueueMetrics(
        length=sum(shard.length for shard in shards),
        fresh=sum(shard.fresh for shard in shards),
        retries=sum(shard.retries for shard in shards),
        busy=sum(shard.busy for shard in shards),
        morgue_length=sum(shard.morgue_length for shard in shards),
        lag=max(shard.lag for shard in shards),
        oldest_due_age=max(shard.oldest_due_age for shard in shards),
        processed=sum(shard.processed for shard in shards),
        failed=sum(shard.failed for shard in shards),
        dead=sum(shard.dead for shard in shards),
        payloads=sum(shard.payloads for shard in shards),
        shards=shards,
    )
