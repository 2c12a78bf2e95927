"""Which ids of a queue have most of its payloads: counted in memory by those that drain it, where that is asked for.

Each process keeps its counts of the hour in a field of its own, so that a process that dies takes some seconds of them
along, and nothing is counted twice. The names are kept for two hours; the digest of an hour has shares alone.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from statistics import median
from typing import Final

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.engine.perform import BatchContext, BatchResult, Performer
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend, ExtraCommand
from lowkiq_lambda.store.shard.keys import queue_key

FREQUENT: Final = 64
"""Ids of an hour that are kept, the most frequent ones."""
MOST: Final = 2_048
"""Counters in memory: a count is too low by a thousandth of all payloads at most, and never too high."""
HOUR: Final = 3_600
KEPT: Final = 2 * HOUR
Counts = tuple[int, dict[str, int]]
"""All payloads that were counted, and those of the most frequent ids."""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Counts).decode


class SkewCounter:
    """Counts the payloads of each id; where there are too many ids, all counts are lowered (Misra and Gries)."""

    def __init__(self, queue_name: str, clock: Clock) -> None:
        self._queue_name, self._clock = queue_name, clock
        self._field = os.urandom(8)
        self._lock = threading.Lock()
        self._hour = self._total = 0
        self._counts: Counter[str] = Counter()
        self._unwritten: dict[int, bytes | None] = {}
        """Of each hour that is to be written: its counts; None: as they are now."""

    def note(self, sizes: Mapping[str, int]) -> None:
        """A handler is given so many payloads of each id."""
        hour = int(self._clock.time() // HOUR)
        with self._lock:
            if hour != self._hour:
                if self._hour in self._unwritten:
                    self._unwritten[self._hour] = self._packed()
                self._hour, self._total, self._counts = hour, 0, Counter()
            self._counts.update(sizes)
            self._total += sum(sizes.values())
            self._unwritten[hour] = None
            if len(self._counts) > MOST:
                floor = int(median(self._counts.values()))
                self._counts = Counter({name: n - floor for name, n in self._counts.items() if n > floor})

    def commands(self, prefix: str) -> Iterator[ExtraCommand]:
        """The commands that write the counts which have changed."""
        with self._lock:
            unwritten, self._unwritten = self._unwritten, {}
            packed = {hour: counts or self._packed() for hour, counts in unwritten.items()}
        for hour, counts in packed.items():
            key = _key(self._queue_name, hour, prefix)
            yield key, ("HSET", key, self._field, counts)
            yield key, ("EXPIRE", key, KEPT)

    def _packed(self) -> bytes:
        return _encode((self._total, dict(nlargest(FREQUENT, self._counts.items(), key=lambda item: item[1]))))


class CountingPerformer(Performer, frozen=True):
    """Counts what it gives to handlers."""

    counter: SkewCounter | None = None

    def begin(self, deliveries: Sequence[Delivery], context: BatchContext) -> tuple[Batch | None, BatchResult]:
        """As the class above."""
        if self.counter is not None:
            self.counter.note({delivery.id: len(delivery.entries) for delivery in deliveries})
        return super().begin(deliveries, context)


def read_shares(backend: Backend, queue_name: str, hours: Sequence[float], retry_for: float) -> dict[str, float] | None:
    """The share of the payloads that each frequent id had in hours (Unix seconds), the most frequent id first.

    None where nothing was counted. Raises BackendError.
    """
    keys = [_key(queue_name, int(at // HOUR), backend.prefix) for at in hours]
    reads = [(key, ("HVALS", key)) for key in keys]
    replies = backend.retrying(retry_for, lambda: [unless_error(each) for each in send_each(backend.client, reads)])
    total, counts = 0, Counter[str]()
    for value in (value for values in replies for value in values):
        with suppress(msgspec.MsgspecError):
            own_total, own = _decode(value)
            total += own_total
            counts.update(own)
    return {name: count / total for name, count in counts.most_common(FREQUENT)} if total else None


def _key(queue_name: str, hour: int, prefix: str) -> str:
    return queue_key(queue_name, f"skew:{hour}", prefix)
