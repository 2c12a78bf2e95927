"""Reads all queues of an app for people. No push or drain needs it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from lowkiq_lambda.operate.inspect.current_totals import SeenQueue
from lowkiq_lambda.operate.inspect.error_groups import ErrorPart, error_groups
from lowkiq_lambda.operate.inspect.find_ids import find_ids
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.metrics import in_total, numbers, queue_metrics, queue_totals
from lowkiq_lambda.operate.inspect.overview import overview
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.errors import ErrorGroups
from lowkiq_lambda.views.jobs import FoundIds
from lowkiq_lambda.views.queues import Between, MetricsByQueue, Overview, Span, Stats


class Inspector:
    """The read side of one app. Queues are given as shards by queue name.

    Each method raises BackendError if Redis cannot serve.
    """

    def __init__(self, backend: Backend, config: Config) -> None:
        self._reader = ShardReader(backend, config.redis_retry_for)
        self._errors = StoredErrors(config.load_error)

    def stats(self, queues: Mapping[str, SeenQueue], skipped: Mapping[str, str]) -> Stats:
        """Lengths and lag, in total and by queue name; `skipped`: why other queues are not among these."""
        queue_sums = queue_totals(self._reader, [queue.shards for queue in queues.values()])
        totals = apart(self._reader, [queue.worker for queue in queues.values()], queue_sums)
        by_worker = {name: numbers(metrics) for name, metrics in zip(queues, totals, strict=True)}
        stats: Stats = {"total": in_total([*by_worker.values()]), "by_worker": by_worker}
        if skipped:
            stats["skipped"] = dict(skipped)
        return stats

    def metrics(self, queues: Mapping[str, SeenQueue], skipped: Mapping[str, str]) -> MetricsByQueue:
        """All counts, by queue name."""
        metrics = queue_metrics(self._reader, [queue.shards for queue in queues.values()])
        each = apart(self._reader, [queue.worker for queue in queues.values()], metrics)
        return MetricsByQueue(dict(zip(queues, each, strict=True)), skipped)

    def overview(
        self, queues: Mapping[str, SeenQueue], span: Span | Between, days: int
    ) -> AbstractContextManager[Overview]:
        """These queues with their history, and the servers; `days`: as in `stretch_of`."""
        return overview(self._reader, queues, span, days)

    def find(self, queues: Mapping[str, QueueShards], text: str, limit: int) -> FoundIds:
        """An id in all queues, and ids that begin with it."""
        return find_ids(self._reader, [*queues.values()], text, limit)

    def errors(self, queues: Mapping[str, QueueShards], part: ErrorPart) -> ErrorGroups:
        """Last errors of ids, in groups."""
        return error_groups(self._reader, queues, self._errors, part)
