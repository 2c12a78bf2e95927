"""What a drain thread knows about its shards, and where it waits until one of them has work.

Four sources tell: probes, the bell, the thread's own visits, and time, which makes due what was not. The newest
word counts, but for one: a shard whose visit failed rests, whoever says that it has work.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Final

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.plugs import Scheduler
from lowkiq_lambda.store.keys import ShardRef

LOOKS: Final = 10
"""In a poll interval, at most, where nothing says when a shard is worth a look."""
UNCHOSEN: Final = 0.1
"""Seconds until a scheduler that chose none of the shards with work is asked again."""


@dataclass(slots=True)
class _Entry:
    """Times are the clock's monotonic ones. `ready_at`: since when, or from when on, the shard has work."""

    ref: ShardRef
    ready_at: float = math.inf
    told_at: float = -math.inf
    rung_at: float = -math.inf
    rests_until: float = -math.inf
    failures: int = 0

    @property
    def free_at(self) -> float:
        return max(self.ready_at, self.rests_until)


@dataclass(frozen=True, slots=True)
class Standing:
    """A shard as its thread's scheduler sees it."""

    ref: ShardRef
    has_work: bool
    lag: float | None


@dataclass(frozen=True, slots=True)
class Word:
    """What a probe says: in how many seconds the shard has work (below 0: since when it has), or never (None)."""

    ref: ShardRef
    ready_in: float | None


class Roster:
    """The shards of one drain thread. Other threads may tell it things; only its own may `take`."""

    def __init__(self, shards: Iterable[ShardRef], clock: Clock) -> None:
        self._entries = {shard: _Entry(shard) for shard in shards}
        self._clock = clock
        self._changed = Condition()
        self._version = 0
        self._closed = False

    @property
    def shards(self) -> list[ShardRef]:
        """The shards, as the splitter dealt them."""
        return list(self._entries)

    @property
    def is_closed(self) -> bool:
        """Whether nothing is taken any more."""
        return self._closed

    def take(self, scheduler: Scheduler) -> ShardRef | None:
        """The shard to visit next, waited for; None once the roster is closed."""
        while True:
            with self._changed:
                if self._closed:
                    return None
                version, standings = self._version, self._standings()
            # Outside the lock: a scheduler may be the user's, and whoever rings must not wait for it.
            chosen = scheduler.next(standings)
            if chosen is not None:
                return chosen.ref
            with self._changed:
                if version == self._version and not self._closed:
                    passed_over = any(standing.has_work for standing in standings)
                    self._changed.wait(UNCHOSEN if passed_over else self._rest())

    def ring(self, shard: ShardRef) -> None:
        """Somebody pushed: the shard has work now, or sooner than was known."""
        with self._changed:
            entry, now = self._entries[shard], self._clock.monotonic()
            entry.rung_at = entry.told_at = now
            entry.ready_at = min(entry.ready_at, now)
            self._change()

    def learn(self, words: Iterable[Word], asked_at: float) -> None:
        """A probe that was begun at `asked_at` (monotonic) brought this; what was told since is newer."""
        with self._changed:
            now = self._clock.monotonic()
            for word in words:
                entry = self._entries[word.ref]
                if entry.told_at < asked_at:
                    entry.ready_at = _at(now, word.ready_in)
                    entry.told_at = now
            self._change()

    def visited(self, shard: ShardRef, began_at: float, ready_in: float | None) -> None:
        """The thread's visit is over and left the shard so; a bell that rang meanwhile may be about more."""
        with self._changed:
            entry, now = self._entries[shard], self._clock.monotonic()
            entry.failures = 0
            entry.told_at = now
            entry.ready_at = now if entry.rung_at >= began_at else _at(now, ready_in)

    def failed(self, shard: ShardRef, rest: float) -> None:
        """The thread's visit failed: the shard is left alone for so many seconds, and tried again then."""
        with self._changed:
            entry, now = self._entries[shard], self._clock.monotonic()
            entry.failures += 1
            entry.rests_until = now + rest
            entry.ready_at = min(entry.ready_at, now)

    def failures(self, shard: ShardRef) -> int:
        """How many visits failed in a row."""
        return self._entries[shard].failures

    def others_have_work(self, shard: ShardRef) -> bool:
        """Whether another shard of the thread waits for its turn."""
        now = self._clock.monotonic()
        return any(entry.free_at <= now for entry in self._entries.values() if entry.ref != shard)

    def close(self) -> None:
        """Nothing is taken any more; a thread that waits returns."""
        with self._changed:
            self._closed = True
            self._change()

    def _standings(self) -> Sequence[Standing]:
        now = self._clock.monotonic()
        return [
            Standing(entry.ref, entry.free_at <= now, now - entry.ready_at if entry.ready_at <= now else None)
            for entry in self._entries.values()
        ]

    def _rest(self) -> float | None:
        first = min((entry.free_at for entry in self._entries.values()), default=math.inf)
        return None if first == math.inf else max(0.0, first - self._clock.monotonic())

    def _change(self) -> None:
        self._version += 1
        self._changed.notify_all()


def _at(now: float, seconds: float | None) -> float:
    return math.inf if seconds is None else now + seconds
