"""Hours of a queue that are made up."""

from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.operate.lateness.kept import OpenHour, write, writing
from lowkiq_lambda.operate.lateness.samples import Sample
from lowkiq_lambda.stack.advice.loads import HOUR, QueueLoad
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import queue_key
from lowkiq_lambda.views.lateness import HourDigest

NOON: Final = 1_794_916_800.0
"""Twelve o'clock on the 17th of November 2026, in UTC."""
SAMPLE: Final = Sample(3_600.0, "1 1 0 0", 10, 0, 0, 10, 10, 5.0, 1.0, 9.0, 0, 0, 0.0, 0.5, 1.0, 5, ())
"""With which the hour that goes on began."""


def hour(at: float, ids: int, *, took: float = 0.05, computing: float = 0.01, busiest: int = 0) -> HourDigest:
    """An hour with so many ids, each in a call of its own, that wait for most of their time."""
    busy = ids * took
    return HourDigest(
        at, HOUR, ids, ids, ids, busy, busy * computing, busy, 0, 0, busiest or ids // 60, 0.01, 0.05, 0.1
    )


def hours_before(at: float, count: int, ids: int, *, took: float = 0.05) -> tuple[HourDigest, ...]:
    """So many hours alike until `at`, the oldest first."""
    return tuple(hour(at - HOUR * (count - place), ids, took=took) for place in range(count))


def queue_of(hours: tuple[HourDigest, ...], *, shards: int = 5, concurrency: int = 1, rough: bool = False) -> QueueLoad:
    """A queue with them."""
    return QueueLoad(name="Sync", shards=shards, concurrency=concurrency, batch=1, hours=hours, is_rough=rough)


def keep_hours(backend: Backend, queue_name: str, hours: Sequence[HourDigest], retry_for: float) -> str:
    """Give the queue these hours behind it, as housekeeping would; the key that they are in."""
    opened = OpenHour(int(backend.clock.time() // HOUR), SAMPLE, SAMPLE)
    write(backend, [*writing(backend.prefix, queue_name, SAMPLE, opened, hours)], retry_for)
    return queue_key(queue_name, "hours", backend.prefix)
