"""The state of each shard, its back-off, and the order of visits: of shards that are ready now, and later."""

import math
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lowkiq_lambda.base.clock import doubled
from lowkiq_lambda.base.errors import BackendUnavailable, QueueMismatch
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult

CHECKS: Final = 10
"""In a poll interval, at most, if nothing says when a shard is worth a visit."""


_LEAST_LAG: Final = 0.001
"""Seconds that are added to each lag, so that weights count among shards whose work has just come, too."""


class Rests(NamedTuple):
    """Back-off in seconds for a shard whose visit failed: after the first failure, and the longest.

    `longest_outage`: the longest if the server was unreachable. `not_acquired`: after a visit that did not get the
    shard, so that a probe with another answer makes no busy loop. `limited`: the longest if its queue's limits are
    reached.
    """

    first: float
    longest: float
    longest_outage: float
    not_acquired: float
    limited: float

    @classmethod
    def of_drain(cls, poll_interval: float) -> "Rests":
        """For one thread: all other shards wait while it finds that one is unreachable."""
        return cls(poll_interval, 10.0, 10.0, poll_interval, math.inf)

    @classmethod
    def of_daemon(cls, poll_interval: float) -> "Rests":
        """An offer of a permit may get lost, so a limited shard is visited again after some seconds all the same."""
        # A shard may miss the offer of a permit, so it is visited again after this time all the same.
        return cls(poll_interval / CHECKS, 60.0, 2.0, 0.0, 5.0)

    def after(self, error: BaseException, failures: int) -> float:
        """Seconds of back-off after an error, with `failures` before it."""
        longest = self.longest_outage if isinstance(error, BackendUnavailable) else self.longest
        # A mismatch of declarations does not pass soon.
        return longest if isinstance(error, QueueMismatch) else doubled(self.first, failures, longest)


def urgency(lag: float, weight: float) -> float:
    """The rank of a shard for drains, which visit the largest first.

    A growing lag passes any other rank, whatever the weight.
    """
    least_lag = lag + _LEAST_LAG
    # Below 0 are those that others come before: there a weight brings a shard forward, too.
    return least_lag * weight if least_lag > 0 else least_lag / weight


class ShardView(NamedTuple):
    """A shard as a scheduler sees it."""

    ref: ShardRef
    has_work: bool
    lag: float
    weight: float = 1.0


class ShardEntry(msgspec.Struct, eq=False):
    """A shard on the board. Times are the clock's monotonic ones; `updated` to `claimed` are numbers of events.

    `ready_at`: since when, or from when on, the shard has work. `behind_from`: from then on its lag counts, as its last
    visit went wrong or its next may end the process: others come first. `limited_until`: until then the limits of its
    queue let it not begin, as far as is known.
    """

    ref: ShardRef
    position: int
    weight: float = 1.0
    ready_at: float = math.inf
    rests_until: float = -math.inf
    limited_until: float = -math.inf
    behind_from: float = -math.inf
    risky: bool = False
    left_at: float = 0.0
    """Unix seconds at which the holder of a risky shard left it; the last of several may be the cause of a death."""
    failures: int = 0
    updated: int = 0
    notified: int = 0
    offered: int = 0
    taken: int = 0
    claimed: int = 0
    """Its visit claimed after this event, so that it has found what was pushed until then."""
    is_taken: bool = False
    in_line: bool = False
    """Whether its last visit found no permit: it is on the wait list then."""
    places: int = 0
    """How often it was queued; an older place of it in a queue is void."""

    @property
    def free_at(self) -> float:
        """From when on it may be visited."""
        return max(self.ready_at, self.rests_until, self.limited_until)

    @property
    def since(self) -> float:
        """Since when it waits for a visit, as far as the order of visits goes."""
        return max(self.ready_at, self.behind_from)

    def probed(self, result: ProbeResult, now: float, event: int, asked_event: int, risks_from: float) -> bool:
        """A probe that was sent at event `asked_event` came at `event`; whether the entry's place has changed.

        `risks_from`: until then others come before what may end the process.
        """
        before = self.ready_at, self.behind_from
        if self.updated <= asked_event:
            self.ready_at, self.updated = at(now, result.ready_in), event
        if result.obstacle == "empty":
            self.failures = 0
        if result.risky:
            self.behind_from = max(self.behind_from, risks_from, -math.inf if self.risky else now)
        self.risky, self.left_at = result.risky, result.held_until if result.risky else 0.0
        return before != (self.ready_at, self.behind_from)

    def put_back(self, now: float, rest: float) -> None:
        """It has work, and is left alone for so many seconds; others come first."""
        self.behind_from = now + rest
        self.rests_until = max(self.rests_until, now + rest)
        self.ready_at = min(self.ready_at, now)

    def view(self, now: float) -> ShardView:
        """The view of this shard for a scheduler."""
        return ShardView(self.ref, self.free_at <= now and not self.is_taken, now - self.since, self.weight)


_Place: TypeAlias = tuple[float, float, float, int, int, ShardEntry]
"""In a queue: by time, by `left_at`, by `ready_at`, then as dealt; a number that no other place of the entry has."""


class ShardQueue:
    """The entries without a visit, the most urgent first. Call `put` after each change of an entry.

    Entries of one weight are in the order of the times since which they wait, so it never changes by time alone.
    """

    def __init__(self) -> None:
        self._later: list[_Place] = []
        self._ready: dict[float, list[_Place]] = {}
        """By weight."""

    def __bool__(self) -> bool:
        """Whether there is anything, now or later: no thread is woken for a place that is void."""
        return _drop_void(self._later) or any(map(_drop_void, self._ready.values()))

    def put(self, entry: ShardEntry) -> None:
        """Give the entry the place that is due to it."""
        entry.places += 1
        if not entry.is_taken and (free_at := entry.free_at) < math.inf:
            heappush(self._later, _place(free_at, entry))

    def fill(self, entries: Iterable[ShardEntry], now: float) -> None:
        """Start anew with all entries, and without the places that are void."""
        self._later, self._ready = [], {}
        for entry in entries:
            free_at = entry.free_at
            if entry.is_taken or free_at == math.inf:
                continue
            if free_at <= now:
                self._ready.setdefault(entry.weight, []).append(_place(entry.since, entry))
            else:
                self._later.append(_place(free_at, entry))
        heapify(self._later)
        for ready in self._ready.values():
            heapify(ready)

    def first(self, now: float) -> ShardEntry | None:
        """The most urgent entry that may be visited now; of equals the one that was dealt first."""
        while self._later and self._later[0][0] <= now:
            *_, place, entry = heappop(self._later)
            if place == entry.places:
                heappush(self._ready.setdefault(entry.weight, []), _place(entry.since, entry))
        heads = [ready[0] for ready in self._ready.values() if _drop_void(ready)]
        if len(heads) > 1:
            heads.sort(key=lambda head: (-urgency(now - head[0], head[-1].weight), *head[1:-1]))
        return heads[0][-1] if heads else None

    def next_at(self) -> float:
        """When it is worth asking for the first again, if there was none."""
        return self._later[0][0] if self._later else math.inf


def _drop_void(heap: list[_Place]) -> bool:
    """Whether the heap has a place that counts, which is its first one then."""
    while heap and heap[0][-2] != heap[0][-1].places:
        heappop(heap)
    return bool(heap)


def _place(time: float, entry: ShardEntry) -> _Place:
    return time, entry.left_at, entry.ready_at, entry.position, entry.places, entry


def at(now: float, seconds: float | None) -> float:
    """In so many seconds; infinity if that is not known."""
    return math.inf if seconds is None else now + seconds
