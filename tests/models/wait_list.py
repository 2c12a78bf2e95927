"""A model of the wait list of a limited queue: shards that wait, offers of a free permit, and the bell that names them.

Calls are answered at once here, as tests/models/limits.py has those that are late, doubled or lost. Anybody may die,
with or without a permit; a bell may not be heard, and a shard may come too late for its offer.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

TTL: Final = 2
PER: Final = 3
OFFERED: Final = 1
"""How long a free permit is kept for a shard, as in admit.lua."""
NEVER: Final = 99
NAMES: Final = "ABC"

Guard: TypeAlias = Literal[
    "offers take permits",
    "offers take ids",
    "the own offer",
    "those before first",
    "the place stays",
    "behind the last",
    "offered, so off the list",
    "entered, so off the list",
    "an offer ends",
    "an offer on leaving",
    "when to come again",
]
"""What keeps the order of those that wait, and their offers: without one the model has to find what it prevents."""


class WaitedQueue(NamedTuple):
    """`permits`, `offers`: shard and end. `line`: score and shard, in order. `log`: when ids were granted."""

    permits: tuple[tuple[int, int], ...] = ()
    offers: tuple[tuple[int, int], ...] = ()
    line: tuple[tuple[int, int], ...] = ()
    log: tuple[int, ...] = ()


class Asker(NamedTuple):
    """A shard's process. `came`: its place in the order, 0 without one; `offered`: until when a permit is its own."""

    does: Literal["rests", "waits", "visits", "is dead"] = "rests"
    came: int = 0
    offered: int = 0
    comes_at: int = 0
    entered: int = 0


class WaitWorld(NamedTuple):
    """`broken`: what the last call broke. `idle`: for how long a permit has been free while somebody waits for it."""

    time: int = 0
    queue: WaitedQueue = WaitedQueue()
    askers: tuple[Asker, ...] = (Asker(), Asker(), Asker())
    broken: str = ""
    idle: int = 0
    deaths: int = 1
    lapses: int = 1

    def with_asker(self, number: int, asker: Asker) -> "WaitWorld":
        """The same, but for one of the shards."""
        return self._replace(askers=(*self.askers[:number], asker, *self.askers[number + 1 :]))


class WaitBounds(NamedTuple):
    """How far the model goes: time, visits of a shard, permits, and ids in any `PER`, 0 without a rate."""

    end: int
    visits: int
    permits: int
    rate: int = 0


def fault(world: WaitWorld) -> str | None:
    """The promise to those that wait that is broken, if any."""
    return world.broken or ("starves" if world.idle > TTL else None)


def steps(world: WaitWorld, *, bounds: WaitBounds, without: Guard | None = None) -> Iterator[tuple[str, WaitWorld]]:
    """Each step that is possible."""
    for number, asker in enumerate(world.askers):
        name = NAMES[number]
        if (asker.does == "rests" and asker.entered < bounds.visits) or _is_due(world, asker):
            call = _Call(world, bounds, without)
            again = " again" if asker.does == "waits" else ""
            yield from call.ended(f"{name} enters{again}, is answered {call.enter(number)}")
        if asker.does == "visits":
            for act in ("stays", "leaves"):
                call = _Call(world, bounds, without)
                call.go_on(number, leaves=act == "leaves")
                yield from call.ended(f"{name} {act}")
        if asker.does in {"visits", "waits"} and world.deaths:
            dead = world.with_asker(number, Asker("is dead"))
            yield f"{name}, which {asker.does}, dies", dead._replace(deaths=world.deaths - 1)
    yield from _time(world, bounds)


def _is_due(world: WaitWorld, asker: Asker) -> bool:
    return asker.does == "waits" and asker.comes_at <= world.time


def _time(world: WaitWorld, bounds: WaitBounds) -> Iterator[tuple[str, WaitWorld]]:
    ends = dict(world.queue.permits)
    if world.time == bounds.end or any(
        asker.does == "visits" and ends[number] <= world.time + 1 for number, asker in enumerate(world.askers)
    ):
        return
    late = sum(_is_due(world, asker) for asker in world.askers)
    if late > world.lapses:
        return
    time, queue = world.time + 1, world.queue
    waits = any(asker.does == "waits" for asker in world.askers)
    taken = sum(end > world.time for _, end in (*queue.permits, *queue.offers))
    ids_left = not bounds.rate or sum(at > world.time - PER for at in queue.log) < bounds.rate
    # Who misses its turn has no place any more.
    askers = tuple(
        asker._replace(came=0, offered=0) if asker.does == "waits" and 0 < asker.offered <= time else asker
        for asker in world.askers
    )
    is_idle = waits and taken < bounds.permits and ids_left
    idle = world.idle + (not late) if is_idle else 0
    yield "time goes by", world._replace(time=time, askers=askers, lapses=world.lapses - late, idle=idle)


class _Call:
    """One call of admit.lua: its variables are those of the script."""

    def __init__(self, world: WaitWorld, bounds: WaitBounds, without: Guard | None) -> None:
        now, queue, self._without = world.time, world.queue, without
        self._world, self._now, self._bounds = world, now, bounds
        self._permits = {shard: end for shard, end in queue.permits if end > now}
        self._offers = {shard: end for shard, end in queue.offers if end > now or without == "an offer ends"}
        self._line = {shard: score for score, shard in queue.line}
        self._log = [at for at in queue.log if at > now - PER]
        self._taken = len(self._permits) + (0 if without == "offers take permits" else len(self._offers))
        self._offered = 0 if without == "offers take ids" else len(self._offers)
        self._rung: list[int] = []

    def enter(self, number: int) -> str:
        """The answer to a shard that asks for a permit."""
        asker = self._world.askers[number]
        if number in self._offers and self._without != "the own offer":
            del self._offers[number]
            self._taken -= self._without != "offers take permits"
            self._offered -= self._without != "offers take ids"
        elif self._without != "those before first":
            self._offer(up_to=number)
        if self._free() < 1:
            if asker.offered > self._now:
                self._break("offer")
            self._join_line(number)
            came = asker.came or max(one.came for one in self._world.askers) + 1
            self._set(number, Asker("waits", came, 0, self._comes_at(), asker.entered))
            return "FULL"
        if any(self._is_passed_over(other, asker.came or NEVER) for other in self._others(number)):
            self._break("order")
        if self._without != "entered, so off the list":
            self._line.pop(number, None)
        self._grant(number)
        self._set(number, Asker("visits", 0, 0, 0, asker.entered + 1))
        return "OK"

    def go_on(self, number: int, *, leaves: bool) -> None:
        """A visit that has a permit prolongs it and asks for an id, or ends it."""
        if not leaves:
            self._offer()
            self._grant(number)
            return
        del self._permits[number]
        self._taken -= 1
        if self._without != "an offer on leaving":
            self._offer()
        if self._line and self._free() >= 1:
            self._break("told")
        self._set(number, self._world.askers[number]._replace(does="rests"))

    def ended(self, label: str) -> Iterator[tuple[str, WaitWorld]]:
        """What it leads to, if the bell is heard, and if it is not."""
        line = tuple(sorted((score, shard) for shard, score in self._line.items()))
        permits, offers = tuple(sorted(self._permits.items())), tuple(sorted(self._offers.items()))
        world = self._world._replace(queue=WaitedQueue(permits, offers, line, tuple(self._log)))
        waiting = [shard for shard in self._rung if world.askers[shard].does == "waits"]
        heard = world
        for shard in waiting:
            heard = heard.with_asker(shard, heard.askers[shard]._replace(comes_at=self._now))
        yield label, heard
        if waiting and world.lapses:
            yield f"{label}, the bell is not heard", world._replace(lapses=world.lapses - 1)

    def _free(self) -> float:
        return min(self._bounds.permits - self._taken, self._left() - self._offered)

    def _left(self) -> float:
        return self._bounds.rate - len(self._log) if self._bounds.rate else NEVER

    def _offer(self, up_to: int | None = None) -> None:
        while self._free() >= 1 and self._line:
            head = min(self._line, key=lambda shard: (self._line[shard], shard))
            if head == up_to:
                return
            if self._without != "offered, so off the list":
                del self._line[head]
            self._offers[head] = self._now + OFFERED
            self._taken, self._offered = self._taken + 1, self._offered + 1
            self._rung.append(head)
            self._set(head, self._world.askers[head]._replace(offered=self._now + OFFERED))

    def _grant(self, number: int) -> None:
        if self._bounds.rate and self._left() - self._offered >= 1:
            self._log.append(self._now)
        self._permits[number] = self._now + TTL

    def _join_line(self, number: int) -> None:
        if number in self._line and self._without != "the place stays":
            return
        last = 0 if self._without == "behind the last" else max(self._line.values(), default=0)
        self._line[number] = last + 1

    def _comes_at(self) -> int:
        """When the shard comes of itself: the first end of a permit or an offer, or the next id."""
        if self._without == "when to come again":
            return NEVER
        ends = [*self._permits.values(), *self._offers.values()]
        first_end = min(ends, default=0) if self._taken >= self._bounds.permits else 0
        ids_at = self._now + OFFERED if self._left() >= 1 else self._log[0] + PER
        return max(first_end, ids_at)

    def _others(self, number: int) -> Iterator[Asker]:
        return (asker for other, asker in enumerate(self._world.askers) if other != number)

    def _is_passed_over(self, asker: Asker, came: int) -> bool:
        return asker.does == "waits" and 0 < asker.came < came and asker.offered <= self._now

    def _break(self, promise: str) -> None:
        self._world = self._world._replace(broken=promise)

    def _set(self, number: int, asker: Asker) -> None:
        self._world = self._world.with_asker(number, asker)
