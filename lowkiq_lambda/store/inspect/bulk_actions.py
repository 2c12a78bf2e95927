"""An operator's action on many ids, in steps of a moment each. Between two steps it is a value that anybody may keep.

It begins with a look, at what there is when the operator is asked whether they mean it; what came since is left alone,
however much later the steps are. So each may be taken twice, by two operators too: the second finds nothing to do.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final, NamedTuple, Self, TypeAlias

import msgspec

from lowkiq_lambda.store.inspect.actions import ActionName, Actions, ShardSnapshot
from lowkiq_lambda.store.inspect.id_filter import ALL, IdFilter, Where, filter_ids
from lowkiq_lambda.store.inspect.id_ranges import IDS_AT_ONCE, Bound, ListName, ListPosition, Range, list_positions
from lowkiq_lambda.store.inspect.jobs import by_shard, id_texts
from lowkiq_lambda.store.shard.keys import ShardRef

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]

_OF_MORGUE: Final = frozenset({"requeue", "delete_buried"})
_OF_FAILED: Final = frozenset({"kill", "delete_failed"})


class SavedSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """A look at a shard, as `ShardSnapshot` has it."""

    index: Count
    at: float
    arrival: Count
    seen_at: float
    waiting: Count
    failed: Count
    buried: Count

    @classmethod
    def of(cls, look: ShardSnapshot) -> Self:
        """To be kept."""
        return cls(look.shard.index, look.at, look.arrival, look.seen_at, look.waiting, look.failed, look.buried)

    def look(self, shards: Sequence[ShardRef]) -> ShardSnapshot:
        """As it was."""
        shard = shards[self.index]
        return ShardSnapshot(shard, self.at, self.arrival, self.seen_at, self.waiting, self.failed, self.buried)


class BulkAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An action on the ids that were `chosen`, or, where that is None, on those of the queue that the filter wants.

    `total`: about how many ids will be looked at; `handled`: how many were; `changed`: how many it has changed.
    """

    act: ActionName
    shards_count: Count
    looks: list[SavedSnapshot]
    """Of the shards that are not done; it is at the first."""
    total: Count
    filter: IdFilter = ALL
    chosen: list[str] | None = None
    after: str | None = None
    """Behind which place of the shard's list it goes on; None at its beginning."""
    pending: list[str] = []
    """Ids of the shard that come first."""
    resume: bytes = b""
    """Where in the payloads of the first of them."""
    changed_here: Count = 0
    handled: Count = 0
    changed: Count = 0
    begun: bool = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.looks


def prepare(
    actions: Actions,
    act: ActionName,
    *,
    chosen: Sequence[object] | None = None,
    filter: IdFilter = ALL,  # noqa: A002 - it is one
) -> BulkAction:
    """The sweep that would be made, after a look. Raises JobError for what can be no id, BackendError."""
    shards = actions.reader.shards
    ids = None if chosen is None else id_texts(chosen)
    of_shard = {} if ids is None else by_shard(ids, shards)
    looks = actions.look([*of_shard] if ids is not None else None)
    counts = {look.shard: _listed(act, look) if ids is None else len(of_shard[look.shard]) for look in looks}
    return BulkAction(
        act=act,
        shards_count=len(shards),
        looks=[SavedSnapshot.of(look) for look in looks if counts[look.shard]],
        total=sum(counts.values()),
        filter=filter,
        chosen=ids,
    )


def count(actions: Actions, sweep: BulkAction, go_on: Callable[[], bool]) -> tuple[int, bool]:
    """How many ids the sweep would find, counted while `go_on()`; and whether these are all. Raises BackendError."""
    if sweep.chosen is not None or (sweep.filter == ALL and sweep.act != "expedite"):
        return sweep.total, True
    number = 0
    for seen in sweep.looks:
        look = seen.look(actions.reader.shards)
        while go_on():
            found = _fetch(actions, sweep, look)
            if found is None:
                sweep = msgspec.structs.replace(sweep, after=None)
                break
            number += len(found.ids)
            sweep = msgspec.structs.replace(sweep, after=found.after)
        else:
            return number, False
    return number, True


def steps(actions: Actions, sweep: BulkAction) -> Iterator[BulkAction]:
    """The sweep after each call that was made for it, until it is done.

    Raises BackendError (the last sweep that came goes on from there), ValueError where the queue's shards are others
    by now.
    """
    shards = actions.reader.shards
    if sweep.shards_count != len(shards) or any(seen.index >= len(shards) for seen in sweep.looks):
        raise ValueError("The queue has another number of shards than it had when the action began.")
    if not sweep.begun:
        sweep = _begin(actions, sweep)
    while sweep.looks:
        sweep = _act(actions, sweep) if sweep.pending else _find(actions, sweep)
        yield sweep


def _begin(actions: Actions, sweep: BulkAction) -> BulkAction:
    """What becomes due does so when the action begins, not when the operator was asked: no lag comes of that."""
    if sweep.act != "expedite" or not sweep.looks:
        return msgspec.structs.replace(sweep, begun=True)
    shards = actions.reader.shards
    now = {look.shard.index: look for look in actions.look([shards[seen.index] for seen in sweep.looks])}
    looks = [
        msgspec.structs.replace(seen, at=now[seen.index].at, waiting=now[seen.index].waiting) for seen in sweep.looks
    ]
    return msgspec.structs.replace(sweep, looks=looks, begun=True)


def _act(actions: Actions, sweep: BulkAction) -> BulkAction:
    look = sweep.looks[0].look(actions.reader.shards)
    done = actions.call_once(sweep.act, look, sweep.pending, sweep.changed_here, sweep.resume)
    return msgspec.structs.replace(
        sweep,
        pending=sweep.pending[done.finished :],
        resume=done.resume,
        changed_here=sweep.changed_here + done.changed,
        # An id that is half done was looked at.
        handled=sweep.handled + done.finished + bool(done.resume) - bool(sweep.resume),
        changed=sweep.changed + done.changed,
    )


def _find(actions: Actions, sweep: BulkAction) -> BulkAction:
    found = _fetch(actions, sweep, sweep.looks[0].look(actions.reader.shards))
    if found is None:
        return msgspec.structs.replace(sweep, looks=sweep.looks[1:], after=None, changed_here=0)
    handled = sweep.handled + found.listed - len(found.ids)
    return msgspec.structs.replace(sweep, pending=found.ids, after=found.after, handled=handled)


class _Found(NamedTuple):
    """Ids that are meant, of how many that were listed, up to which place."""

    ids: list[str]
    listed: int
    after: str


def _fetch(actions: Actions, sweep: BulkAction, look: ShardSnapshot) -> _Found | None:
    """The next ids of the shard; None where there are no more."""
    reader = actions.reader._replace(shards=[look.shard])
    if sweep.chosen is not None:
        chosen = by_shard(sweep.chosen, actions.reader.shards).get(look.shard, ())
        return None if sweep.after is not None else _Found([*chosen], len(chosen), "")
    within = _within(sweep, look)
    places = list_positions(reader, _list_of(sweep), within, IDS_AT_ONCE)
    if not places:
        return None
    ids = [place.id for place in places]
    where: Where = "morgue" if sweep.act in _OF_MORGUE else "waiting"
    return _Found(filter_ids(reader, where, _wanted(sweep), ids), len(ids), places[-1].cursor())


def _list_of(sweep: BulkAction) -> ListName:
    if sweep.act in _OF_MORGUE:
        return "morgue"
    return "retry" if sweep.act in _OF_FAILED and sweep.filter == ALL else "due"


def _wanted(sweep: BulkAction) -> IdFilter:
    """The filter, which finds nothing that the action would leave as it is."""
    if sweep.act not in _OF_FAILED or sweep.filter == ALL:
        return sweep.filter
    least = max(Bound(0.0), Bound.of(sweep.filter.least_count or "-inf"))
    return msgspec.structs.replace(sweep.filter, least_count=str(least))


def _within(sweep: BulkAction, look: ShardSnapshot) -> Range:
    """Upwards: what is changed leaves the list, or goes to where it was read before."""
    least, most = Bound.of(sweep.filter.least), Bound.of(sweep.filter.most)
    if sweep.act == "expedite":
        least = max(least, Bound(look.at, exclusive=True))
    elif sweep.act in _OF_MORGUE:
        most = min(most, Bound(look.newest_burial), key=lambda bound: (bound.value, not bound.exclusive))
    return Range(least, most, after=None if sweep.after is None else ListPosition.of(sweep.after))


def _listed(act: ActionName, look: ShardSnapshot) -> int:
    if act in _OF_MORGUE:
        return look.buried
    return look.failed if act in _OF_FAILED else look.waiting
