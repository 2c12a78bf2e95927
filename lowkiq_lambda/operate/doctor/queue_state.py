"""The queues on the server, those of the app and others, as they are now."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lowkiq_lambda.base.errors import BackendDenied, LowkiqError
from lowkiq_lambda.core import Core
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.inspect.declared_queues import declared_queues
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import Registered, read_registered, readable_shards
from lowkiq_lambda.store.shard.keys import EXPIRY, ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.state import ProbeResult, probe_each
from lowkiq_lambda.views.queues import QueueMetrics


class QueueState(NamedTuple):
    """A queue as the server has it. `metrics`, `probes`: or why they cannot be read, for all or for a shard.

    `now`: Unix seconds by the server's clock. `overdue`: ids that are due, and whose oldest payload has expired.
    """

    name: str
    there: Registered
    shards: QueueShards
    metrics: QueueMetrics | LowkiqError
    probes: Sequence[ProbeResult | LowkiqError]
    now: float
    overdue: int = 0

    @property
    def live(self) -> list[ShardRef]:
        """The shards that ids are in."""
        return [self.shards[number] for number in self.shards.layout.live] if self.shards else []


class FoundQueues(NamedTuple):
    """All that are known. `are_all`: whether the server has no others."""

    found: Sequence[QueueState]
    are_all: bool


def read_queues(core: Core, backend: Backend) -> FoundQueues:
    """The queues of the server; where it may not be searched, those of the app. Raises BackendError."""
    retry_for = core.config.redis_retry_for
    try:
        declared, are_all = declared_queues(backend, retry_for), True
    except BackendDenied:
        own = ((name, read_registered(backend, name, retry_for)) for name in core.queues)
        declared, are_all = {name: there for name, there in own if there is not None}, False
    states = [_state(core, name, there, backend) for name, there in declared.items()]
    return FoundQueues(states, are_all)


def _state(core: Core, name: str, there: Registered, backend: Backend) -> QueueState:
    retry_for = core.config.redis_retry_for
    shards = readable_shards(name, there, backend.prefix)
    if not shards:
        unread = LowkiqError("The queue was made by a version of the library that this one does not know.")
        return QueueState(name, there, shards, unread, (), backend.clock.time())
    live, reader = [shards[number] for number in shards.layout.live], ShardReader(backend, retry_for)
    metrics = _metrics(reader, shards, core.queues.worker_named(name))
    probes = probe_each(backend, live, retry_for)
    return QueueState(name, there, shards, metrics, probes, backend.now(shards[0]), _overdue(reader, live))


def _overdue(reader: ShardReader, live: Sequence[ShardRef]) -> int:
    """How many ids are held up past the expiry of their oldest payload. Only the probes tell whether any expire."""
    if not reader.backend.uses(EXPIRY):
        return 0
    from lowkiq_lambda.operate.inspect.overdue import overdue_ids  # noqa: PLC0415 - few queues have jobs that expire

    try:
        return overdue_ids(reader, live)
    except LowkiqError:
        # The findings on what cannot be read say so.
        return 0


def _metrics(reader: ShardReader, shards: QueueShards, worker: type[Worker[Any]] | None) -> QueueMetrics | LowkiqError:
    try:
        (metrics,) = apart(reader, [worker], queue_metrics(reader, [shards]))
    except LowkiqError as error:
        return error
    return metrics
