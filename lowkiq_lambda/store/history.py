"""What became of ids, in slots of time: for charts, not for counting.

Each process that drains adds up what it settled, and writes it every few seconds, whoever looks or not: a few commands
in one round trip for a queue, however many settlings that were. What a process that dies has not written is missing
from the charts; the counters of the shards miss nothing.

A queue has three kinds of keys, for windows of time, which expire by themselves. A key is an array of counters of 32
bits: of what was processed and what failed in each slot (SECONDS, MINUTES), or how often a time fell into each of
BUCKETS (TIMES: first how long batches took, then how long ids had waited when their batch began).
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lowkiq_lambda.store.backend import Backend, Beside
from lowkiq_lambda.store.faults import REDIS_ERRORS
from lowkiq_lambda.store.keys import PREFIX, escape
from lowkiq_lambda.store.pipelines import send_each


class Kind(NamedTuple):
    """An array of counters: its name, the seconds of a slot and of a window, and how long a window is kept."""

    name: str
    step: int
    window: int
    kept: int

    def key(self, queue_name: str, at: float) -> str:
        """Where the window that `at` (Unix seconds) lies in is kept."""
        return f"{PREFIX}:{{{escape(queue_name)}}}:{self.name}:{int(at // self.window)}"

    def slot(self, at: float) -> int:
        """The place of `at` in its window."""
        return int(at % self.window // self.step)


SECONDS: Final = Kind("seconds", step=5, window=600, kept=1_500)
MINUTES: Final = Kind("minutes", step=60, window=6 * 3_600, kept=79 * 3_600)
TIMES: Final = Kind("times", step=1_800, window=1_800, kept=4_500)

BUCKETS: Final = 96
_FINEST: Final = 0.001
_IN_AN_OCTAVE: Final = 3


def bucket(seconds: float) -> int:
    """Where a time is counted: up to a millisecond in the first, then three in each doubling, up to seven weeks."""
    if seconds <= _FINEST:
        return 0
    return min(BUCKETS - 1, math.ceil(_IN_AN_OCTAVE * math.log2(seconds / _FINEST)))


def bounds(number: int) -> tuple[float, float]:
    """From where to where a bucket counts, in seconds."""
    upper = _FINEST * 2 ** (number / _IN_AN_OCTAVE)
    return (0.0 if number == 0 else _FINEST * 2 ** ((number - 1) / _IN_AN_OCTAVE)), upper


@dataclass(slots=True)
class Slot:
    """What was settled in five seconds."""

    processed: int = 0
    failed: int = 0
    took: Counter[int] = field(default_factory=Counter)
    waited: Counter[int] = field(default_factory=Counter)


Pending = dict[tuple[str, int], Slot]


class Recorder:
    """Adds up what drains settle, and hands it over now and then; safe to use from several threads."""

    def __init__(
        self, write: Callable[[Mapping[tuple[str, int], Slot]], object], monotonic: Callable[[], float]
    ) -> None:
        self._write = write
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pending: Pending = {}
        self._began_at = 0.0

    def note(
        self, queue_name: str, at: float, counts: Mapping[str, int], took: Sequence[float], waited: Sequence[float]
    ) -> None:
        """Redis has acknowledged this, at `at` by its clock: ids by outcome; seconds of batches, and before them."""
        place, now = (queue_name, int(at // SECONDS.step)), self._monotonic()
        with self._lock:
            if not self._pending:
                self._began_at = now
            slot = self._pending.setdefault(place, Slot())
            slot.processed += counts.get("done", 0)
            slot.failed += counts.get("failed", 0)
            slot.took.update(map(bucket, took))
            slot.waited.update(map(bucket, waited))
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Hand over what is there, if its oldest part is five seconds old."""
        if self._pending and self._monotonic() - self._began_at >= SECONDS.step:
            self.flush()

    def flush(self) -> None:
        """Hand over what is there."""
        with self._lock:
            pending, self._pending = self._pending, {}
        if pending:
            self._write(pending)


def write(backend: Backend, pending: Mapping[tuple[str, int], Slot]) -> None:
    """Add to the history, once: what does not get through is missing from it."""
    with suppress(*REDIS_ERRORS):
        send_each(backend.client, [one for place, slot in pending.items() for one in _commands(*place, slot)])


def _commands(queue_name: str, number: int, slot: Slot) -> Iterator[Beside]:
    at = number * SECONDS.step
    counts = (slot.processed, slot.failed)
    for kind in (SECONDS, MINUTES):
        yield from _added(kind, queue_name, at, {2 * kind.slot(at) + which: n for which, n in enumerate(counts) if n})
    yield from _added(TIMES, queue_name, at, {**slot.took, **{BUCKETS + place: n for place, n in slot.waited.items()}})


def _added(kind: Kind, queue_name: str, at: float, more: Mapping[int, int]) -> Iterator[Beside]:
    if more:
        key = kind.key(queue_name, at)
        additions = [part for place, n in more.items() for part in ("INCRBY", "u32", f"#{place}", n)]
        yield key, ("BITFIELD", key, "OVERFLOW", "SAT", *additions)
        yield key, ("EXPIRE", key, kind.kept)
