"""A model of completion: items run and push others while a reader looks at the shards of a closed task one by one.

Every order of steps is gone through. Shards 0 and 1 are of a queue that the task knows, shard 2 of another one, which
a push registers first. A running item may push others before it ends, and a dead one may be put back. The reader's
steps are those of `tasks/completion.py`: the record, all shards, all shards again, the swap.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

Guard: TypeAlias = Literal["second wave", "version", "revived"]
"""What keeps a reader from a wrong answer: each can be left out."""
KNOWN: Final = (0, 1)
OTHER: Final = 2


class Bounds(NamedTuple):
    """How many items there are at most, and how often dead ones are put back."""

    items: int
    put_back: int


MANY_ITEMS: Final = Bounds(3, 1)
MUCH_PUT_BACK: Final = Bounds(2, 3)


class ModelItem(NamedTuple):
    """An item. `pushing`: the shards that it has registered an item for, and not written it to yet."""

    shard: int
    status: Literal["enqueued", "running", "done", "dead"]
    pushing: tuple[int, ...] = ()


class CountedShard(NamedTuple):
    """What a reader is told of a shard."""

    open: int
    ended: int
    revived: int


class Reader(NamedTuple):
    """What a reader has read since it began: the record, and shard after shard."""

    version: int
    shards: tuple[int, ...]
    has_been_idle: bool
    """Whether at some moment since then no item was open."""
    seen: tuple[CountedShard, ...] = ()


class ModelState(NamedTuple):
    """All that matters at one moment. `revived`: how often dead items were put back, by shard."""

    items: tuple[ModelItem, ...]
    version: int
    knows_other: bool
    revived: tuple[int, int, int]
    reader: Reader | None
    is_complete: bool


BEGIN: Final = ModelState(
    (ModelItem(0, "running"),), 0, knows_other=False, revived=(0, 0, 0), reader=None, is_complete=False
)


def violation(bounds: Bounds, without: Guard | None = None) -> ModelState | None:
    """A world whose task was completed though at no moment since the reader's begin all items had ended; or None.

    That a dead item may be put back at any time, also a moment later, is no mistake of the reader.
    """
    seen, todo = {BEGIN}, deque([BEGIN])
    while todo:
        for world in map(_noting_idle, _next(todo.popleft(), bounds, without)):
            if world.is_complete:
                if world.reader and not world.reader.has_been_idle:
                    return world
            elif world not in seen:
                seen.add(world)
                todo.append(world)
    return None


def _noting_idle(world: ModelState) -> ModelState:
    if world.reader is None or world.reader.has_been_idle or any(_is_open(item) for item in world.items):
        return world
    return world._replace(reader=world.reader._replace(has_been_idle=True))


def _is_open(item: ModelItem) -> bool:
    return item.status in {"enqueued", "running"}


def _next(world: ModelState, bounds: Bounds, without: Guard | None) -> Iterator[ModelState]:
    for position, item in enumerate(world.items):
        if item not in world.items[:position]:
            yield from _of_item(world, position, bounds)
    yield from _of_reader(world, without)


def _of_item(world: ModelState, position: int, bounds: Bounds) -> Iterator[ModelState]:
    items, item = world.items, world.items[position]
    others = sum(len(one.pushing) for one in items)

    def became(new: ModelItem, *more: ModelItem) -> ModelState:
        # In one order: which of them is which does not matter.
        return world._replace(items=tuple(sorted((*items[:position], new, *items[position + 1 :], *more))))

    if item.status == "enqueued":
        yield became(item._replace(status="running"))
    if item.status == "dead" and sum(world.revived) < bounds.put_back:
        revived = [count + (shard == item.shard) for shard, count in enumerate(world.revived)]
        yield became(item._replace(status="enqueued"))._replace(revived=(revived[0], revived[1], revived[2]))
    if item.status != "running":
        return
    if not item.pushing:
        yield became(item._replace(status="done"))
        yield became(item._replace(status="dead"))
    if item.pushing:
        pushed = ModelItem(item.pushing[0], "enqueued")
        yield became(item._replace(pushing=item.pushing[1:]), pushed)
    elif len(items) + others < bounds.items:
        for shard in (*KNOWN, OTHER):
            registered = became(item._replace(pushing=(shard,)))
            yield registered._replace(version=world.version + 1, knows_other=world.knows_other or shard == OTHER)


def _of_reader(world: ModelState, without: Guard | None) -> Iterator[ModelState]:
    reader = world.reader
    if reader is None:
        shards = (*KNOWN, OTHER) if world.knows_other else KNOWN
        yield world._replace(reader=Reader(world.version, shards, has_been_idle=False))
        return
    waves = 1 if without == "second wave" else 2
    at, count = len(reader.seen), len(reader.shards)
    if at == waves * count:
        if reader.version == world.version or without == "version":
            yield world._replace(is_complete=True)
        yield world._replace(reader=None)
        return
    told = _counted(world, reader.shards[at % count], without)
    if told.open or (at >= count and told != reader.seen[at - count]):
        yield world._replace(reader=None)
    else:
        yield world._replace(reader=reader._replace(seen=(*reader.seen, told)))


def _counted(world: ModelState, shard: int, without: Guard | None) -> CountedShard:
    is_open = [_is_open(item) for item in world.items if item.shard == shard]
    revived = 0 if without == "revived" else world.revived[shard]
    return CountedShard(sum(is_open), len(is_open) - sum(is_open), revived)
