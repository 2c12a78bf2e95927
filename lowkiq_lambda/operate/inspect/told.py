"""How many ids of a queue have died since the last report: the counter in Redis minus the last reported count.

A script counts each death in the step that moves the id to the morgue, so a count survives the process that drains. The
reported count is written after the report: a process that dies between the two reports the same deaths again, and
never loses any.

A move of a queue to other shards takes the counters of a group along: they are added in the new shards, then dropped in
the old ones. While a queue moves each group counts once, also if the mover died between the two.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from lowkiq_lambda.operate.inspect.current_totals import SeenQueue
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.metrics import queue_metrics, stream_totals
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import told_key
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Metrics

_FIRST: Final = 300.0
"""Seconds before a queue's first report whose deaths it has: those of a new stack's first minutes."""


class Untold(NamedTuple):
    """A queue in numbers, and how many of its deaths were not reported yet."""

    metrics: Metrics
    dead: int
    """Of a queue that was never reported before those of the last minutes, because others may be of any age."""
    is_changed: bool
    """Whether `note_told` has to write anything."""


def untold(reader: ShardReader, seen_queues: Sequence[SeenQueue], teller: str) -> list[Untold]:
    """The unreported deaths of each queue, read in the one round trip of its numbers.

    A queue that is being resharded, or that waits for its limits, takes another one. `teller`: the reporter's name.
    Raises BackendError.
    """
    queues = [queue.shards for queue in seen_queues]
    keys = [told_key(shards[0].queue_name, reader.backend.prefix) for shards in queues]
    with stream_totals(reader, queues, [(key, ("HGET", key, teller)) for key in keys]) as (answers, totals):
        counts_sent = [_count(unless_error(answer)) for answer in answers]
        numbers = apart(reader, [queue.worker for queue in seen_queues], totals)
        counts = [_untold(metrics, count) for metrics, count in zip(numbers, counts_sent, strict=True)]
    for number, shards in enumerate(queues):
        if counts_sent[number] is None and counts[number].metrics.dead:
            counts[number] = counts[number]._replace(dead=_died_lately(reader, shards))
        if shards.layout.is_moving:
            dead = max(counts_sent[number] or 0, _dead_by_groups(reader, shards))
            metrics = msgspec.structs.replace(counts[number].metrics, dead=dead)
            counts[number] = _untold(metrics, counts_sent[number])
    return counts


def note_told(backend: Backend, retry_for: float, dead: Mapping[str, int], teller: str) -> None:
    """Store the reported counts of queues, by name. Harmless to repeat. Raises BackendError."""
    commands = [
        (key, ("HSET", key, teller, count))
        for key, count in ((told_key(name, backend.prefix), n) for name, n in dead.items())
    ]
    backend.retrying(retry_for, lambda: [unless_error(answer) for answer in send_each(backend.client, commands)])


def _untold(metrics: Metrics, count: int | None) -> Untold:
    # Fewer than were reported: the queue was declared anew, and its shards count from 0 on.
    dead = 0 if count is None else max(0, metrics.dead - count)
    return Untold(metrics, dead, metrics.dead != count)


def _died_lately(reader: ShardReader, shards: QueueShards) -> int:
    backend = reader.backend
    keys = [(shard.key("morgue"), backend.now(shard) - _FIRST) for shard in shards]
    commands = [(key, ("ZCOUNT", key, since, "+inf")) for key, since in keys]
    answers = backend.retrying(
        reader.retry_for, lambda: [unless_error(answer) for answer in send_each(backend.client, commands)]
    )
    return sum(map(int, answers))


def _dead_by_groups(reader: ShardReader, shards: QueueShards) -> int:
    """How many ids a queue that moves has killed: of each group what its old shards count, or its new ones, if more."""
    (queue,) = queue_metrics(reader, [shards])
    layout = shards.layout
    old, new = [0] * layout.groups, [0] * layout.groups
    for number, (home, metrics) in enumerate(zip(layout.homes, queue.shards, strict=True)):
        (old if number < layout.before else new)[home.index % layout.groups] += metrics.dead
    return sum(map(max, old, new))


def _count(stored: bytes | None) -> int | None:
    return int(stored) if stored is not None and stored.isdigit() else None
