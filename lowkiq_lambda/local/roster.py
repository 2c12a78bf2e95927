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
from lowkiq_lambda.patience import at_most
from lowkiq_lambda.protocols import Scheduler
from lowkiq_lambda.store.shard.keys import ShardRef

LOOKS: Final = 10
"""In a poll interval, at most, where nothing says when a shard is worth a look."""
UNCHOSEN: Final = 0.1
"""Seconds until a scheduler that chose none of the shards with work is asked again."""


@dataclass(slots=True, eq=False)
class Standing:
    """A shard as its thread's scheduler sees it: `ref`, `has_work` and `lag`, as of the last look.

    Times are the clock's monotonic ones. `ready_at`: since when, or from when on, the shard has work. `put_back_at`:
    from then on its lag counts, as its last visit went wrong or its next may end the process: others come first.
    """

    ref: ShardRef
    has_work: bool = False
    lag: float = -math.inf
    ready_at: float = math.inf
    told_at: float = -math.inf
    rung_at: float = -math.inf
    rests_until: float = -math.inf
    put_back_at: float = -math.inf
    risky: bool = False
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Word:
    """What a probe says: in how many seconds the shard has work (below 0: since when it has), or never (None).

    `risky`: its next job may end the process.
    """

    ref: ShardRef
    ready_in: float | None
    risky: bool = False


class Roster:
    """The shards of one drain thread. Other threads may tell it things; only its own may `take`."""

    def __init__(self, shards: Iterable[ShardRef], clock: Clock) -> None:
        self._standings = {shard: Standing(shard) for shard in shards}
        self._clock = clock
        self._changed = Condition()
        self._version = 0
        self._closed = False

    @property
    def shards(self) -> list[ShardRef]:
        """The shards, as the splitter dealt them."""
        return list(self._standings)

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
                version = self._version
            # Outside the lock: a scheduler may be the user's, and whoever rings must not wait for it.
            standings = self._survey()
            chosen = scheduler.next(standings)
            if chosen is not None:
                return chosen.ref
            with self._changed:
                if version == self._version and not self._closed:
                    passed_over = any(standing.has_work for standing in standings)
                    self._changed.wait(at_most(UNCHOSEN if passed_over else self._rest()))

    def ring(self, shard: ShardRef) -> None:
        """Somebody pushed: the shard has work now, or sooner than was known."""
        with self._changed:
            standing, now = self._standings[shard], self._clock.monotonic()
            standing.rung_at = standing.told_at = now
            standing.ready_at = min(standing.ready_at, now)
            self._change()

    def learn(self, words: Iterable[Word], asked_at: float) -> None:
        """A probe that was begun at `asked_at` (monotonic) brought this; what was told since is newer."""
        with self._changed:
            now = self._clock.monotonic()
            for word in words:
                standing = self._standings[word.ref]
                if standing.told_at < asked_at:
                    standing.ready_at = _at(now, word.ready_in)
                    standing.told_at = now
                if word.risky and not standing.risky:
                    standing.put_back_at = max(standing.put_back_at, now)
                standing.risky = word.risky
            self._change()

    def visited(self, shard: ShardRef, began_at: float, ready_in: float | None) -> None:
        """The thread's visit is over and left the shard so; a bell that rang meanwhile may be about more."""
        with self._changed:
            standing, now = self._standings[shard], self._clock.monotonic()
            standing.failures = 0
            standing.put_back_at = -math.inf
            standing.told_at = now
            standing.ready_at = now if standing.rung_at >= began_at else _at(now, ready_in)

    def failed(self, shard: ShardRef, rest: float) -> None:
        """The thread's visit went wrong: the shard is left alone for so many seconds, and tried again then.

        It queues behind the shards that have work by then: however late it is, it is not the first again.
        """
        with self._changed:
            self._put_back(shard, rest)
            self._standings[shard].failures += 1

    def exited(self, shard: ShardRef, rest: float) -> None:
        """A handler ended itself in the visit, which came to its end: as after a failure, but it counts as none."""
        with self._changed:
            self._put_back(shard, rest)
            self._standings[shard].failures = 0

    def failures(self, shard: ShardRef) -> int:
        """How many visits went wrong in a row."""
        return self._standings[shard].failures

    def others_have_work(self, shard: ShardRef) -> bool:
        """Whether another shard of the thread waits for its turn."""
        now = self._clock.monotonic()
        return any(
            standing.ready_at <= now and standing.rests_until <= now
            for standing in self._standings.values()
            if standing.ref is not shard
        )

    def close(self) -> None:
        """Nothing is taken any more; a thread that waits returns."""
        with self._changed:
            self._closed = True
            self._change()

    def _put_back(self, shard: ShardRef, rest: float) -> None:
        standing, now = self._standings[shard], self._clock.monotonic()
        standing.rests_until = standing.put_back_at = now + rest
        standing.ready_at = min(standing.ready_at, now)

    def _survey(self) -> Sequence[Standing]:
        """All shards, with what they look like now. Only the roster's own thread may look."""
        now = self._clock.monotonic()
        standings = list(self._standings.values())
        for standing in standings:
            standing.lag = now - max(standing.ready_at, standing.put_back_at)
            standing.has_work = standing.ready_at <= now and standing.rests_until <= now
        return standings

    def _rest(self) -> float | None:
        free_at = (max(standing.ready_at, standing.rests_until) for standing in self._standings.values())
        first = min(free_at, default=math.inf)
        return None if first == math.inf else first - self._clock.monotonic()

    def _change(self) -> None:
        self._version += 1
        self._changed.notify_all()


def _at(now: float, seconds: float | None) -> float:
    return math.inf if seconds is None else now + seconds
