"""The outcomes of ids, in slots of time: for charts, not for counting.

Each process that drains adds up the outcomes that it settled, and writes them every few seconds, even if no page shows
them: a few commands in one round trip for a queue, however many settlings that were. Outcomes that a process did not
write before its death are missing from the charts, but not from the counters of the shards.

A queue has three or four kinds of keys, for windows of time, which expire by themselves. A key is an array of counters
of 32 bits: of the ids that ended and that failed in each slot (SECONDS, MINUTES), or how often a time fell into each of
BUCKETS (TIMES: first how long batches took, then how long ids had waited when their batch began); DAYS has both.
ARRIVALS are written by those who look what needs somebody, see `operate/inspect/sampling.py`.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.store.server.faults import REDIS_ERRORS
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend, ExtraCommand
from lowkiq_lambda.store.shard.keys import PREFIX, queue_key


class Kind(NamedTuple):
    """An array of counters: its name, the seconds of a slot and of a window, and how long a window is kept."""

    name: str
    step: int
    window: int
    kept: int

    def key(self, queue_name: str, at: float, prefix: str = PREFIX) -> str:
        """The key of the window with the time `at` (Unix seconds); `prefix`: of the app's keys."""
        return queue_key(queue_name, f"{self.name}:{int(at // self.window)}", prefix)

    def slot(self, at: float) -> int:
        """The place of `at` in its window."""
        return int(at % self.window // self.step)


SECONDS: Final = Kind("seconds", step=5, window=600, kept=1_500)
MINUTES: Final = Kind("minutes", step=60, window=6 * 3_600, kept=79 * 3_600)
TIMES: Final = Kind("times", step=1_800, window=1_800, kept=4_500)

ARRIVALS: Final = Kind("arrivals", step=60, window=6 * 3_600, kept=7 * 3_600)
"""Of each minute one more than how many payloads arrived, so that 0 is a minute of which nobody knows."""

DAYS: Final = Kind("days", step=3_600, window=86_400, kept=0)
"""Kept for as many days as the settings say, and not written without: the hours of a day, and then its times."""

BUCKETS: Final = 96
DAY_OUTCOMES: Final = 2 * DAYS.window // DAYS.step
"""Counters of outcomes in the array of a day, before those of its times."""
SAMPLES: Final = 8
"""How many batches of a settling are looked at, or a few less; each stands for those that are not."""
LATE: Final = 120.0
"""Seconds of waiting from which a queue is late: what comes once a minute, such as a schedule on Lambda, has come."""
_FINEST: Final = 0.001
_IN_AN_OCTAVE: Final = 3


def bucket(seconds: float) -> int:
    """The bucket of a time: up to a millisecond in the first, then three in each doubling, up to five weeks."""
    if seconds <= _FINEST:
        return 0
    return min(BUCKETS - 1, math.ceil(_IN_AN_OCTAVE * math.log2(seconds / _FINEST)))


def bounds(number: int) -> tuple[float, float]:
    """The range of times of a bucket, in seconds."""
    upper = _FINEST * 2 ** (number / _IN_AN_OCTAVE)
    return (0.0 if number == 0 else _FINEST * 2 ** ((number - 1) / _IN_AN_OCTAVE)), upper


class Slot(msgspec.Struct):
    """The outcomes that were settled in five seconds."""

    ended: int = 0
    failed: int = 0
    took: Counter[int] = msgspec.field(default_factory=Counter)
    waited: Counter[int] = msgspec.field(default_factory=Counter)


Pending = dict[tuple[str, int], Slot]
Beside: TypeAlias = Callable[[str], Iterable[ExtraCommand]]
"""Further commands, of other numbers about the work of the process, by the prefix of the app's keys."""


class Recorder:
    """Adds up what drains settle, and writes it now and then; safe to use from several threads."""

    def __init__(self, backend: Backend, days: int = 0) -> None:
        """`days`: for how many of them outcomes and times are kept by the day."""
        self._backend = backend
        self._days = days
        self._lock = threading.Lock()
        self._pending: Pending = {}
        self._began_at = 0.0
        self.beside: Final[list[Beside]] = []
        self.has_seen_late = False
        """Whether the first id of a batch had been due for longer than LATE."""

    def note(self, event: SettledEvent) -> None:
        """Redis has acknowledged this."""
        place = (event.queue_name, int(event.at // SECONDS.step))
        with self._lock:
            if not self._pending:
                self._began_at = self._backend.clock.monotonic()
            slot = self._pending.setdefault(place, Slot())
            # A rejected id has come to its end, and is not an error.
            slot.ended += event.counts.get("done", 0) + event.counts.get("rejected", 0)
            slot.failed += event.counts.get("failed", 0)
            _sample(slot.took, event.took)
            _sample(slot.waited, event.waited)
        if not self.has_seen_late and event.waited:
            self.has_seen_late = event.waited[-1] > LATE
        self.hand_over_if_due()

    def hand_over_if_due(self) -> None:
        """As `hand_over`, if a part of it is five seconds old."""
        if self._pending and self._backend.clock.monotonic() - self._began_at >= SECONDS.step:
            self.hand_over()

    def hand_over(self) -> None:
        """Let what is there travel with what is sent next anyway: it costs no round trip."""
        if self._pending:
            self._backend.piggyback(self._taken())

    def flush(self) -> None:
        """Write what is there now, once: what does not get through is missing from the charts."""
        if self._pending:
            with suppress(*REDIS_ERRORS):
                send_each(self._backend.client, self._taken())

    def _taken(self) -> list[ExtraCommand]:
        with self._lock:
            pending, self._pending = self._pending, {}
        prefix = self._backend.prefix
        others = (command for each in self.beside for command in each(prefix))
        return [*commands(pending, prefix, self._days), *others]


def _sample(counts: Counter[int], times: Sequence[float]) -> None:
    # A settling may be of a thousand batches, each of which takes less than to find its bucket.
    stride = len(times) // SAMPLES + 1
    for time in times[::stride]:
        counts[bucket(time)] += stride


def commands(pending: Mapping[tuple[str, int], Slot], prefix: str = PREFIX, days: int = 0) -> Iterator[ExtraCommand]:
    """The commands that add this to the history, in slots by queue and number.

    `prefix`: of the app's keys; `days`: for how many of them a day is kept.
    """
    for (queue_name, number), slot in pending.items():
        at = number * SECONDS.step
        for kind, more in _counts(at, slot, days):
            if more:
                kept = (days + 1) * DAYS.window if kind is DAYS else kind.kept
                yield from _added(kind.key(queue_name, at, prefix), kept, more)


def _counts(at: float, slot: Slot, days: int) -> Iterator[tuple[Kind, Mapping[int, int]]]:
    """How much is added to which counters of each array."""
    counts = (slot.ended, slot.failed)
    times = {**slot.took, **{BUCKETS + place: n for place, n in slot.waited.items()}}
    for kind in (SECONDS, MINUTES):
        yield kind, _outcomes(kind, at, counts)
    yield TIMES, times
    if days:
        yield DAYS, _outcomes(DAYS, at, counts) | {DAY_OUTCOMES + place: n for place, n in times.items()}


def _outcomes(kind: Kind, at: float, counts: Sequence[int]) -> dict[int, int]:
    return {2 * kind.slot(at) + which: n for which, n in enumerate(counts) if n}


def _added(key: str, kept: int, more: Mapping[int, int]) -> Iterator[ExtraCommand]:
    additions = [part for place, n in more.items() for part in ("INCRBY", "u32", f"#{place}", n)]
    yield key, ("BITFIELD", key, "OVERFLOW", "SAT", *additions)
    yield key, ("EXPIRE", key, kept)
