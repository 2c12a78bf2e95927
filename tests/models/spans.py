"""A model of the arrival numbers of a queue that moves between two shards and one: two ids, and what they have waiting.

Pushes come before a move, to its new shards while it carries, and after it. The sums are those of the library:
`Floors.over` and `bases_of`.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from lowkiq_lambda.store.shard.moving import MARGIN, SLOT, Floors, bases_of

IDS: Final = 2
Guard: TypeAlias = Literal["bases", "kin"]
"""What moves numbers apart, and no further than they must be: without it the model has to find what it prevents."""


class ArrivedPayload(NamedTuple):
    """A payload: its id, the how manieth of its pushes it is, and its arrival number."""

    job: int
    turn: int
    number: int


class SpanShard(NamedTuple):
    """`first`: the number from which pushes count on; `kin` names the move that made it."""

    arrival: int = 0
    above: int = 0
    kin: bytes = b""
    first: int = 0
    waiting: frozenset[ArrivedPayload] = frozenset()

    def pushed(self, job: int, turn: int) -> "SpanShard":
        """With one payload more."""
        number = self.arrival + 1
        return self._replace(arrival=number, waiting=self.waiting | {ArrivedPayload(job, turn, number)})

    def floors(self, room: int, without: Guard | None) -> Floors:
        """As the shard tells them, with `room` for the pushes that may still come."""
        above = self.above if self.waiting else self.arrival
        is_kin = bool(self.kin) and without != "kin" and self.first <= self.arrival <= self.first + room
        return Floors(self.arrival, b"0", b"0", above, self.kin if is_kin else b"")


class SpanWorld(NamedTuple):
    """The shards that have jobs; while a move carries, `sources` are closed and `shards` take pushes already."""

    shards: tuple[SpanShard, ...] = (SpanShard(), SpanShard())
    sources: tuple[SpanShard, ...] = ()
    pushes: tuple[int, ...] = (0,) * IDS
    moves: int = 0


def steps(
    world: SpanWorld, *, moves: int, pushes: int, without: Guard | None = None
) -> Iterator[tuple[str, SpanWorld]]:
    """What may come next: of each id `pushes` at most, and so many moves."""
    for job, turn in enumerate(world.pushes):
        if turn < pushes:
            at = job % len(world.shards)
            after = _with(world.shards, at, world.shards[at].pushed(job, turn))
            counted = (*world.pushes[:job], turn + 1, *world.pushes[job + 1 :])
            yield f"a push of {job}", world._replace(shards=after, pushes=counted)
    for at, shard in enumerate(world.shards):
        if shard.waiting:
            oldest = min(shard.waiting, key=lambda one: one.number)
            drained = _with(world.shards, at, shard._replace(waiting=shard.waiting - {oldest}))
            yield f"a job of {at} is done", world._replace(shards=drained)
    if world.sources:
        yield "all is carried", _carried(world, without)
    elif world.moves < moves:
        yield "a move begins", _begun(world, without)


def fault(world: SpanWorld) -> str | None:
    """The first thing that must hold and does not."""
    for shard in world.shards:
        numbers = [one.number for one in shard.waiting]
        if len({*numbers}) < len(numbers):
            return "a number is given twice"
        if any(number > shard.arrival for number in numbers):
            return "a later push may get the number of another"
        if any(number <= shard.above for number in numbers):
            return "a number lies below what the shard says"
    for job in range(IDS):
        of_job = sorted(one for shard in (*world.sources, *world.shards) for one in shard.waiting if one.job == job)
        settled = [one.number for one in of_job if not world.sources]
        if settled != sorted(settled):
            return "payloads of an id have changed places"
    return None


def room_taken(world: SpanWorld) -> int:
    """How far the numbers have come."""
    return max(shard.arrival for shard in world.shards)


def _begun(world: SpanWorld, without: Guard | None) -> SpanWorld:
    told = Floors.over([one.floors(SLOT - MARGIN, without) for one in world.shards], MARGIN)
    kin = b"%d" % (world.moves + 1)
    targets = tuple(
        SpanShard(first := told.arrival + at * SLOT, told.above, kin, first) for at in range(3 - len(world.shards))
    )
    return world._replace(shards=targets, sources=world.shards, moves=world.moves + 1)


def _carried(world: SpanWorld, without: Guard | None) -> SpanWorld:
    bases = bases_of([one.floors(SLOT, without) for one in world.sources])
    shards = list(world.shards)
    for source, base in zip(world.sources, bases, strict=True):
        for one in source.waiting:
            at = one.job % len(shards)
            number = one.number + (0 if without == "bases" else base)
            shards[at] = shards[at]._replace(waiting=shards[at].waiting | {one._replace(number=number)})
    return world._replace(shards=tuple(shards), sources=())


def _with(shards: tuple[SpanShard, ...], at: int, shard: SpanShard) -> tuple[SpanShard, ...]:
    return (*shards[:at], shard, *shards[at + 1 :])
