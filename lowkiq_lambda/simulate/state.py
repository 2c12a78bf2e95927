"""The state of a simulated queue: ids and their pushes, shards with their lines, holders, and the events to come.

Times are seconds from the begin of the trace. An id waits (`first` has the time of its first push), is in flight, both,
or neither: a push to a waiting id merges, and one to an id in flight waits until that is settled.
"""

import math
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable
from heapq import heappush
from itertools import count
from random import Random
from typing import Any, Final, TypeAlias

from lowkiq_lambda.simulate.choice import Choice
from lowkiq_lambda.simulate.times import Times
from lowkiq_lambda.simulate.trace import Trace

NOTHING: Final = -1.0
"""In place of a time: no payload of the id waits."""
SMOOTHING: Final = 0.1
"""Weight of a call in the mean that the engine keeps."""
Act: TypeAlias = Callable[[float, Any], None]


class SimulatedHolder:
    """What drains: the daemon, or an invocation."""

    __slots__ = ("began_at", "ended_at", "ends_at", "free", "is_alone", "open", "visits")

    def __init__(self, at: float, ends_at: float, free: int, *, is_alone: bool) -> None:
        self.began_at = self.ended_at = at
        self.ends_at = ends_at
        """When it must have ended."""
        self.free = free
        """Further shards that it may drain at once."""
        self.is_alone = is_alone
        """Whether it is for one shard, so that no other waits for its turn."""
        self.visits = 0
        self.open = 0
        """Calls that run."""


class Lanes:
    """A line in which tenants take turns: one that was served goes behind all that wait."""

    def __init__(self, trace: Trace, since: Callable[[int], float]) -> None:
        self._of, self._since = trace.tenants or trace.hashes, since
        self._lanes: dict[int, deque[int]] = {}
        """In the order of their turns."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, _first: int) -> int:
        """Of the heads of all lanes the id that has waited longest."""
        return min((lane[0] for lane in self._lanes.values()), key=self._since)

    def append(self, number: int) -> None:
        """The id is due."""
        self._lanes.setdefault(self._of[number], deque()).append(number)
        self._count += 1

    def popleft(self) -> int:
        """The first id of the tenant whose turn it is."""
        tenant = next(iter(self._lanes))
        lane = self._lanes.pop(tenant)
        number = lane.popleft()
        if lane:
            self._lanes[tenant] = lane
        self._count -= 1
        return number

    def extendleft(self, numbers: Iterable[int]) -> None:
        """They are given back."""
        for number in numbers:
            self._lanes.setdefault(self._of[number], deque()).appendleft(number)
            self._count += 1


class SimulatedShard:
    """A shard, its line of due ids, and its visit."""

    __slots__ = (
        "alike",
        "began_at",
        "busy",
        "held",
        "holder",
        "holderless",
        "line",
        "mean",
        "payloads",
        "side",
        "waits_since",
    )

    def __init__(self) -> None:
        self.line: deque[int] | Lanes = deque()
        self.holder: SimulatedHolder | None = None
        self.began_at = 0.0
        """When the visit began."""
        self.mean = 0.0
        """Seconds of a call, as the engine smooths them; 0: not known."""
        self.side: Any = None
        """Of a visit whose calls run side by side: how it stands."""
        self.alike = 0
        """Calls of several ids that failed as a whole, in a row."""
        self.waits_since = NOTHING
        """Since when it has due work and no holder."""
        self.busy = self.held = self.holderless = 0.0
        self.payloads = 0


class SimulatedQueue:
    """All that a simulation changes."""

    def __init__(self, trace: Trace, times: Times, choice: Choice, seed: int) -> None:
        self.choice, self.times = choice, times
        self.trace = trace
        self.serve: Callable[[float], None] = lambda _: None
        """Lets those that drain, if they are idle, take the shards with due work."""
        self.rng = Random(seed)  # noqa: S311 - a simulation needs no cryptography
        self.shards = [SimulatedShard() for _ in range(choice.shards)]
        of_shards = choice.shards
        places = trace.tenants if choice.tenants == "home" and trace.tenants else trace.hashes
        self.shard_of = [self.shards[number % of_shards] for number in places]
        self.first = array("d", [NOTHING]) * len(trace.hashes)
        if choice.tenants != "none":
            for shard in self.shards:
                shard.line = Lanes(trace, self.since)
        self._tenants, self._largest = trace.tenants, -1
        if trace.tenants and trace.ids:
            self._largest = Counter(map(trace.tenants.__getitem__, trace.ids)).most_common(1)[0][0]
        self.others = array("d")
        """Waits of payloads of all tenants but the largest."""
        self.more: dict[int, list[float]] = {}
        """Further pushes of waiting ids."""
        self.carried: dict[int, int] = {}
        """Payloads of ids that failed, which wait for another run; how long they waited until the first is noted."""
        self.due_again: dict[int, float] = {}
        """Since when those of them wait whose rest is over."""
        self.retries: dict[int, int] = {}
        """How often ids have failed that are not done."""
        self.blamed: set[int] = set()
        """Those of them whose last failure was their own: each is alone in its batch."""
        self.flying = bytearray(len(trace.hashes))
        self.ready: dict[SimulatedShard, None] = {}
        """Shards with due work that nobody holds, in an order that hangs on nothing but the arguments."""
        self.events: list[tuple[float, int, Act, Any]] = []
        self._next_number = count(1).__next__
        self.waits = array("d")
        self._note_wait = self.waits.append
        self.calls = self.runs = self.visits = self.invocations = self.running = self.dead = 0
        self.billed = self.busy = 0.0
        self.last = 0.0
        """When something happened last."""
        self.not_told = 0
        """Payloads that had begun when the warm-up was over."""
        self.closed: dict[str, Any] = {}
        """Of a part of a trace: the sums at its end."""
        self.step = max(60.0, math.ceil(trace.seconds / 10_000 / 60) * 60.0)
        self.lags, self.depths = [0.0], list[int]()
        self.pushed = 0
        self._permits = deque[float](maxlen=max(1, round(choice.rate * choice.rate_per)))
        self._is_plain = not (choice.failures or choice.payloads_at_once or choice.breakdowns or self._tenants)
        self.outages, self.breakdowns = (
            [(since - trace.starts_at, until - trace.starts_at) for since, until in spans]
            for spans in (choice.outages, choice.breakdowns)
        )
        self._spread = times.spread
        self._mu = -times.spread * times.spread / 2

    @property
    def waiting(self) -> int:
        """How many payloads wait for their first call."""
        return self.pushed - self.not_told - len(self.waits)

    def sums(self) -> dict[str, Any]:
        """What is told of an outcome as sums, by its names."""
        return {
            "jobs": len(self.waits),
            "calls": self.calls,
            "runs": self.runs,
            "seconds": self.busy,
            "visits": self.visits,
            "invocations": self.invocations,
            "billed": self.billed,
            "dead": self.dead,
        }

    def end_warm_up(self, at: float, invocations: Iterable[SimulatedHolder]) -> None:
        """The warm-up is over: what was until now is not told, and not billed."""
        self.not_told = len(self.waits)
        del self.waits[:], self.others[:]
        self.calls = self.runs = self.visits = self.invocations = self.dead = 0
        self.billed = self.busy = 0.0
        for holder in invocations:
            holder.began_at = at

    def end_part(self, at: float, invocations: Iterable[SimulatedHolder]) -> None:
        """A part is over: only the waits of what is left are told."""
        self.closed = self.sums()
        self.closed["billed"] += sum(at - holder.began_at for holder in invocations)

    def plan(self, at: float, act: Act, what: object) -> None:
        """`act(at, what)` is called when its time has come."""
        heappush(self.events, (at, self._next_number(), act, what))

    def begin(self, part: list[int], at: float) -> int:
        """The ids are given to a call now; how many payloads they have."""
        first, flying, more, wait = self.first, self.flying, self.more, self._note_wait
        head = part[0]
        longest = at - first[head]
        payloads = len(part)
        if payloads == 1 and self._is_plain and head not in more:
            wait(longest)
            first[head] = NOTHING
            flying[head] = 1
        elif self._is_plain:
            for number in part:
                wait(at - first[number])
                first[number] = NOTHING
                flying[number] = 1
                if more and number in more:
                    further = more.pop(number)
                    payloads += len(further)
                    for pushed_at in further:
                        wait(at - pushed_at)
        else:
            payloads = sum(self._begin_one(number, at) for number in part)
        place = int(at / self.step)
        lags = self.lags
        while place >= len(lags):
            lags.append(0.0)
        lags[place] = max(lags[place], longest)
        return payloads

    def _begin_one(self, number: int, at: float) -> int:
        """As `begin`, where ids fail or have a bound of payloads: the payloads of the id."""
        most = self.choice.payloads_at_once or math.inf
        carried = self.carried.pop(number, 0)
        self.due_again.pop(number, None)
        pushes = [self.first[number], *self.more.pop(number, ())] if self.first[number] >= 0 else []
        room = int(min(len(pushes), max(0, most - carried)))
        waits = [at - pushed_at for pushed_at in pushes[:room]]
        self.waits.extend(waits)
        if self._tenants and self._tenants[number] != self._largest:
            self.others.extend(waits)
        self.first[number] = NOTHING
        if left := pushes[room:]:
            self.first[number] = left[0]
            if left[1:]:
                self.more[number] = left[1:]
        self.flying[number] = 1
        return carried + room

    def took(self, shard: SimulatedShard, holder: SimulatedHolder, ids: int, payloads: int) -> float:
        """A call with so many is drawn, and noted; its seconds."""
        times, choice = self.times, self.choice
        seconds = times.fixed + times.each_id * ids + times.each_payload * payloads
        if self._spread:
            seconds *= self.rng.lognormvariate(self._mu, self._spread)
        if times.computing:
            cores = choice.usable_cores
            stretch = max(1.0 / min(1.0, cores), holder.open * times.computing / cores)
            seconds *= 1.0 + times.computing * (stretch - 1.0)
        seconds += choice.engine
        mean = shard.mean
        shard.mean = mean + (seconds - mean) * SMOOTHING if mean else seconds
        shard.busy += seconds
        shard.payloads += payloads
        self.busy += seconds
        self.calls += 1
        self.runs += ids
        return seconds

    def permitted_at(self, at: float, ids: int) -> float:
        """When so many ids may begin by the rate: as many as it allows in its time may begin at once."""
        permits = self._permits
        for _ in range(ids):
            if len(permits) == permits.maxlen:
                at = max(at, permits[0] + len(permits) / self.choice.rate)
            permits.append(at)
        return at

    def free(self, ids: list[int], at: float) -> None:
        """They are settled: those that were pushed meanwhile, or are to run again, wait in their line."""
        flying, first, retries = self.flying, self.first, self.retries
        for number in ids:
            flying[number] = 0
            if retries and number not in self.carried:
                retries.pop(number, None)
                self.blamed.discard(number)
            if first[number] >= 0 or (self.carried and number in self.carried):
                if number in self.carried:
                    self.due_again[number] = at
                shard = self.shard_of[number]
                shard.line.append(number)
                if shard.holder is None:
                    self.note_ready(shard, at)

    def note_ready(self, shard: SimulatedShard, at: float) -> None:
        """It has due work, and nobody holds it."""
        self.ready[shard] = None
        if shard.waits_since < 0:
            shard.waits_since = at

    def head(self, shard: SimulatedShard) -> float:
        """Since when its first id waits: a shard that has waited longest is visited first."""
        return self.since(shard.line[0])

    def since(self, number: int) -> float:
        """Since when the id is due: one that runs again since its rest is over, as its score has it."""
        return self.due_again[number] if number in self.due_again else self.first[number]

    def away_until(self, at: float) -> float:
        """The end of the outage at this time; 0 without one."""
        return end_of(self.outages, at)


def end_of(spans: list[tuple[float, float]], at: float) -> float:
    """The end of the span that has begun; 0 without one."""
    return next((until for since, until in spans if since <= at < until), 0.0)
