"""Histograms for Prometheus, of the counts of times that Redis keeps for half an hour each.

A counter of Prometheus only grows, and Redis forgets: so a process adds up what came since its own first look. As those
of any program, the counters begin at 0 with the process. Looks that are less than half an hour apart miss nothing.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import add, sub
from threading import Lock
from typing import Final

from lowkiq_lambda.dashboard.api.server_metrics import TOOK, WAITED, LabelledFamily, head, line
from lowkiq_lambda.store.shard.history import BUCKETS, bounds
from lowkiq_lambda.views.queues import QueueOverview

EDGES: Final = (0, 6, 12, *range(18, 49, 3), 54, 60, 66)
"""The stored buckets that end where a bucket of the histograms does: from a millisecond to 70 minutes, in doublings
where people have their limits, else in fourfolds."""
_ARRAY: Final = struct.Struct(f">{2 * BUCKETS}I")
_MIDDLES: Final = tuple(sum(bounds(number)) / 2 for number in range(BUCKETS))
_KEPT: Final = 3
"""Half hours: as many as a look may read, and one more."""


@dataclass(slots=True)
class _Growth:
    """Of one queue: what each half hour had at the last look, and how much has come since the first."""

    seen: dict[int, tuple[int, ...]]
    total: list[int] = field(default_factory=lambda: [0] * 2 * BUCKETS)

    def add(self, arrays: Mapping[int, tuple[int, ...]]) -> None:
        """Take in a look. One that was overtaken by another adds nothing."""
        for number, counts in arrays.items():
            before = self.seen.get(number, (0,) * len(counts))
            now = tuple(map(max, counts, before))
            self.total = [*map(add, self.total, map(sub, now, before))]
            self.seen[number] = now
        for number in sorted(self.seen)[:-_KEPT]:
            del self.seen[number]


class TimeHistograms:
    """The times of the queues since the first look of this process; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[str, _Growth] = {}

    def lines(self, queues: Iterable[QueueOverview]) -> Iterator[str]:
        """The lines of these queues, but those that never ran anything."""
        with self._lock:
            totals = {queue.name: self._total(queue) for queue in queues}
        yield from _lines(TOOK, totals, 0)
        yield from _lines(WAITED, totals, BUCKETS)

    def _total(self, queue: QueueOverview) -> Sequence[int]:
        arrays = {number: _ARRAY.unpack(data.ljust(_ARRAY.size, b"\0")) for number, data in queue.times.items()}
        if queue.name in self._queues:
            self._queues[queue.name].add(arrays)
        else:
            self._queues[queue.name] = _Growth(arrays)
        return self._queues[queue.name].total if queue.now.calls else ()


def _lines(family: LabelledFamily, totals: Mapping[str, Sequence[int]], first: int) -> Iterator[str]:
    yield from head(family)
    name = family.name
    for queue, total in totals.items():
        counts = total[first : first + BUCKETS]
        if counts:
            reached, own = [*accumulate(counts)], ("queue", queue)
            for edge in EDGES:
                yield line(f"{name}_bucket", (own, ("le", repr(bounds(edge)[1]))), reached[edge])
            yield line(f"{name}_bucket", (own, ("le", "+Inf")), reached[-1])
            yield line(f"{name}_sum", (own,), sum(n * middle for n, middle in zip(counts, _MIDDLES, strict=True)))
            yield line(f"{name}_count", (own,), reached[-1])
