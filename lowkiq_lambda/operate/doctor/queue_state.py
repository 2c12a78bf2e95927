"""The queues on the server, those of the app and others, as they are now."""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from lowkiq_lambda.base.errors import BackendDenied, LowkiqError
from lowkiq_lambda.core import Core
from lowkiq_lambda.operate.inspect.declared_queues import ShardNotes, declared_queues, shard_notes
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import Registered, read_each_registered, readable_shards
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
    notes: ShardNotes
    overdue: int = 0

    @property
    def live(self) -> list[ShardRef]:
        """The shards that ids are in."""
        return [self.shards[number] for number in self.shards.layout.live] if self.shards else []


class FoundQueues(NamedTuple):
    """All that are known. `are_all`: whether the server has no others."""

    found: Sequence[QueueState]
    are_all: bool


def read_queues(core: Core, backend: Backend, *, only_own: bool = False) -> FoundQueues:
    """The queues of the server; where it may not be searched, or with `only_own`, those of the app.

    Each kind of thing is read in one round trip, however many queues there are. Raises BackendError.
    """
    if only_own:
        # Nobody asked for others, so none are missing.
        return FoundQueues(_states(core, _own(core, backend), backend), are_all=True)
    try:
        declared, are_all = declared_queues(backend, core.config.redis_retry_for), True
    except BackendDenied:
        declared, are_all = _own(core, backend), False
    return FoundQueues(_states(core, declared, backend), are_all)


def _own(core: Core, backend: Backend) -> dict[str, Registered]:
    names = [*core.queues]
    each = read_each_registered(backend, names, core.config.redis_retry_for) if names else []
    return {name: there for name, there in zip(names, each, strict=True) if there is not None}


def _states(core: Core, declared: Mapping[str, Registered], backend: Backend) -> list[QueueState]:
    each = {name: readable_shards(name, there, backend.prefix) for name, there in declared.items()}
    readable = {name: shards for name, shards in each.items() if shards}
    live = {name: [shards[number] for number in shards.layout.live] for name, shards in readable.items()}
    reader = ShardReader(backend, core.config.redis_retry_for)
    everything = [*chain.from_iterable(live.values())]
    with Together() as side:
        numbers = side.look(_metrics_of_all, core, reader, readable)
        probed_each = side.look(probe_each, backend, everything, core.config.redis_retry_for)
        noted = side.look(shard_notes, backend, [*live.values()])
    metrics, probes = numbers.result, iter(probed_each.result)
    notes = dict(zip(live, noted.result, strict=True))
    states = []
    for name, there in declared.items():
        if name not in readable:
            unread = LowkiqError("The queue was made by a version of the library that this one does not know.")
            states.append(QueueState(name, there, each[name], unread, (), backend.clock.time(), ShardNotes(0, ())))
            continue
        shards, own = readable[name], live[name]
        probed = [*islice(probes, len(own))]
        now = backend.now(shards[0])
        states.append(QueueState(name, there, shards, metrics[name], probed, now, notes[name], _overdue(reader, own)))
    return states


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


def _metrics_of_all(
    core: Core, reader: ShardReader, queues: Mapping[str, QueueShards]
) -> dict[str, QueueMetrics | LowkiqError]:
    try:
        return _metrics(core, reader, queues)
    except LowkiqError:
        # Of one of them, perhaps: it hides no other.
        return {name: _metrics_or_error(core, reader, name, shards) for name, shards in queues.items()}


def _metrics_or_error(core: Core, reader: ShardReader, name: str, shards: QueueShards) -> QueueMetrics | LowkiqError:
    try:
        return _metrics(core, reader, {name: shards})[name]
    except LowkiqError as error:
        return error


def _metrics(
    core: Core, reader: ShardReader, queues: Mapping[str, QueueShards]
) -> dict[str, QueueMetrics | LowkiqError]:
    if not queues:
        return {}
    workers = [core.queues.worker_named(name) for name in queues]
    return dict(zip(queues, apart(reader, workers, queue_metrics(reader, [*queues.values()])), strict=True))
