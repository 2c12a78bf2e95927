"""Queues as JSON, for the API and for the command line."""

import msgspec

from lowkiq_lambda.views.queues import Metrics


class QueueStats(Metrics, frozen=True, kw_only=True):
    """Metrics of a queue; its lag is the largest lag of its shards."""

    name: str
    shards_count: int


class Queues(msgspec.Struct, frozen=True):
    """All queues of the app, in declaration order.

    `skipped`: queues that were made with another declaration than the app has, by name, each with a sentence.
    """

    queues: list[QueueStats]
    skipped: dict[str, str]


def queue_stats(name: str, shards_count: int, metrics: Metrics) -> QueueStats:
    """The metrics with the name."""
    numbers = {field.name: getattr(metrics, field.name) for field in msgspec.structs.fields(Metrics)}
    return QueueStats(name=name, shards_count=shards_count, **numbers)


class ForgottenTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Drains of the queue have forgotten how long batches took."""

    queue: str


class ForgottenKeys(msgspec.Struct, frozen=True, kw_only=True):
    """How many keys of jobs the queue has forgotten: jobs with them can be pushed again."""

    queue: str
    forgotten: int


class Paused(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the queue is paused. `until`: the end of the pause in Unix seconds; null if it has no end."""

    paused: bool
    until: float | None
