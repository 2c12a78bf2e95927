"""An operator's action on many ids, in short steps. Between two steps it is a value that anybody may keep.

It begins with a snapshot of the list, taken when the operator is asked to confirm; later arrivals are never touched,
however late the steps are. So a step may run twice, even by two operators: the second run finds nothing to do.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Final, NamedTuple, Self, TypeAlias

import msgspec

from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import TICK, UNDOABLE, UNDOABLE_IDS, ActionName, ShardSnapshot
from lowkiq_lambda.operate.acts.requeue_terms import AT_ONCE, RequeueTerms
from lowkiq_lambda.operate.inspect.id_filter import ALL, IdFilter, filter_ids
from lowkiq_lambda.operate.inspect.id_ranges import (
    IDS_AT_ONCE,
    Bound,
    ListName,
    ListPosition,
    Range,
    SearchableList,
    list_positions,
)
from lowkiq_lambda.operate.inspect.jobs import by_shard, id_texts
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.store.shard.scripts import Argument

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]

_OF_MORGUE: Final = frozenset({"requeue", "delete_dead"})
_OF_FAILED: Final = frozenset({"kill", "delete_failed"})
_OF_LATER: Final = frozenset({"run_now", "kill_delayed"})
_OF_DUE: Final = frozenset({"requeue_waiting"})


class WholeListError(ValueError):
    """An action that is for a part of a list alone was to be made on all of it."""


class Changed(int):
    """How many ids an action has changed.

    `undo(action_id)` takes the action back, for ten minutes; `undoable` of its ids can be. Both are empty if none can.
    `paused`: how many more it has left as they are, because somebody has paused them (`pause_jobs`).
    `last_due`: with a rate, by when the last of them is due (Unix seconds); else None.
    """

    action_id: str
    undoable: int
    paused: int
    last_due: float | None

    def __new__(
        cls, changed: int, action_id: str = "", undoable: int = 0, paused: int = 0, last_due: float | None = None
    ) -> Self:
        """So many, of the action with this id."""
        self = super().__new__(cls, changed)
        self.action_id = action_id if undoable else ""
        self.undoable = undoable
        self.paused = paused
        self.last_due = last_due
        return self


class SavedSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """A look at a shard, as `ShardSnapshot` has it."""

    index: Count
    at: float
    arrival: Count
    seen_at: float
    waiting: Count
    failed: Count
    dead: Count

    @classmethod
    def of(cls, snapshot: ShardSnapshot) -> Self:
        """To be kept."""
        return cls(
            snapshot.shard.number,
            snapshot.at,
            snapshot.arrival,
            snapshot.seen_at,
            snapshot.waiting,
            snapshot.failed,
            snapshot.dead,
        )

    def snapshot(self, shards: Sequence[ShardRef]) -> ShardSnapshot:
        """As it was."""
        shard = shards[self.index]
        return ShardSnapshot(shard, self.at, self.arrival, self.seen_at, self.waiting, self.failed, self.dead)


class BulkAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An action on the ids that were `chosen`, or, if that is None, on those of the queue that the filter wants.

    `total`: about how many ids will be looked at; `handled`: how many were; `changed`: how many it has changed;
    `paused`: how many it has left, as they are paused; `sooner`: as they are due by their turn in any case.
    """

    act: ActionName
    shards_count: Count
    snapshots: list[SavedSnapshot]
    """Of the shards that are not done; it is at the first."""
    total: Count
    filter: IdFilter = ALL
    chosen: list[str] | None = None
    after: str | None = None
    """After which position of the shard's list it goes on; None at its beginning."""
    pending: list[str] = []
    """Ids of the shard that come first."""
    resume: bytes = b""
    """Where in the payloads of the first of them."""
    changed_here: Count = 0
    handled: Count = 0
    changed: Count = 0
    paused: Count = 0
    sooner: Count = 0
    begun: bool = False
    layout: tuple[int, ...] = ()
    """Of a queue that is or has been resharded: the last move, and the groups that had moved."""
    terms: RequeueTerms | None = None
    """Of requeueing and `run_now`: in which order, and how fast; None: as they were, and all at once."""
    error: bytes = b""
    """Of `kill_delayed`: the error that ids get in the morgue, as it is stored."""
    action_id: str = ""
    """By which it can be undone, 16 hex digits; empty if it cannot be."""
    undoable: Count = 0
    """How many ids can be undone, of those that it has changed in shards that are done."""
    undoable_here: Count = 0
    """As `undoable`, of the shard that it is at."""

    @property
    def is_done(self) -> bool:
        """Whether the action has no step left."""
        return not self.snapshots

    @property
    def result(self) -> Changed:
        """How many ids it has changed, and how many of them can be undone."""
        undoable = self.undoable + self.undoable_here
        last_due = self.last_due(self.turns) if self.changed else None
        return Changed(self.changed, self.action_id, undoable, self.paused, last_due)

    @property
    def turns(self) -> int:
        """How many ids have had their turn at its rate."""
        return self.changed + self.sooner

    def last_due(self, turns: int) -> float | None:
        """By when the last of so many is due, if it has a rate."""
        paced = self.terms if turns and self.terms and self.terms.rate is not None else None
        return None if paced is None else paced.due_at(turns - 1)

    def paced_after(self, at: float) -> Self:
        """The same action; with a rate, the first turn is a step after then or later."""
        return self if self.terms is None else msgspec.structs.replace(self, terms=self.terms.after(at))

    @property
    def beyond_undo(self) -> bool:
        """Whether it may change more ids of a shard than can be undone."""
        counts = [_listed(self.act, snapshot) for snapshot in self.snapshots]
        return bool(self.action_id) and self.total > UNDOABLE_IDS and max(counts, default=0) > UNDOABLE_IDS


def prepare(
    runner: ActionRunner,
    act: ActionName,
    *,
    chosen_ids: Iterable[object] | None = None,
    filter: IdFilter = ALL,  # noqa: A002 - it is one
    whole_list: bool = False,
) -> BulkAction:
    """The action before its first step, after a look at the queue. `whole_list`: the caller explicitly wants all jobs.

    Raises JobError for an impossible id, BackendError, and WholeListError if it would delete all waiting jobs,
    including those that never failed, without `whole_list`.
    """
    if act == "delete" and chosen_ids is None and filter.is_everything and not whole_list:
        raise WholeListError(
            "Without a filter this would delete every waiting job of the queue: give a filter, or ids."
        )
    shards = runner.reader.shards
    ids = None if chosen_ids is None else id_texts(chosen_ids)
    of_shard = {} if ids is None else by_shard(ids, shards)
    snapshots = runner.snapshots([*of_shard] if ids is not None else None)
    counts = {
        snapshot.shard: _listed(act, snapshot) if ids is None else len(of_shard[snapshot.shard])
        for snapshot in snapshots
    }
    return BulkAction(
        act=act,
        shards_count=len(shards),
        snapshots=[SavedSnapshot.of(snapshot) for snapshot in snapshots if counts[snapshot.shard]],
        total=sum(counts.values()),
        filter=filter,
        chosen=ids,
        layout=_moved(runner),
        action_id=new_action_id() if act in UNDOABLE else "",
    )


def new_action_id() -> str:
    """The id of an action: 16 hex digits at random."""
    return secrets.token_hex(8)


def _moved(runner: ActionRunner) -> tuple[int, ...]:
    layout = runner.reader.shards.layout
    return (layout.epoch, *sorted(layout.moved_groups)) if layout.epoch else ()


def count(runner: ActionRunner, action: BulkAction, go_on: Callable[[], bool]) -> tuple[int, bool]:
    """How many ids the action would find, counted while `go_on()`; and whether these are all. Raises BackendError."""
    if action.chosen is not None or (action.filter == ALL and action.act not in _OF_LATER | _OF_DUE):
        return action.total, True
    number = 0
    for saved in action.snapshots:
        snapshot = saved.snapshot(runner.reader.shards)
        while go_on():
            step = _fetch(runner, action, snapshot)
            if step is None:
                action = msgspec.structs.replace(action, after=None)
                break
            number += len(step.ids)
            action = msgspec.structs.replace(action, after=step.after)
        else:
            return number, False
    return number, True


def steps(runner: ActionRunner, action: BulkAction) -> Iterator[BulkAction]:
    """The action after each call that was made for it, until it is done.

    Raises BackendError (the last action that came goes on from there), ValueError if the queue's shards are others
    by now, as it is resharded: then the action is to be begun again.
    """
    shards = runner.reader.shards
    is_other = action.shards_count != len(shards) or action.layout != _moved(runner)
    if is_other or any(saved.index >= len(shards) for saved in action.snapshots):
        raise ValueError("The queue has other shards than it had when the action began: begin it again.")
    if not action.begun:
        action = _begin(runner, action)
    while action.snapshots:
        action = _act(runner, action) if action.pending else _find(runner, action)
        yield action


def _begin(runner: ActionRunner, action: BulkAction) -> BulkAction:
    """Jobs become due as of the beginning of the action, not of the question, so that it adds no lag."""
    if action.act != "run_now" or not action.snapshots:
        return msgspec.structs.replace(action, begun=True)
    shards = runner.reader.shards
    now = {
        snapshot.shard.number: snapshot
        for snapshot in runner.snapshots([shards[saved.index] for saved in action.snapshots])
    }
    snapshots = [
        msgspec.structs.replace(saved, at=now[saved.index].at, waiting=now[saved.index].waiting)
        for saved in action.snapshots
    ]
    begun = msgspec.structs.replace(action, snapshots=snapshots, begun=True)
    return begun.paced_after(max(saved.at for saved in snapshots))


def _act(runner: ActionRunner, action: BulkAction) -> BulkAction:
    snapshot = action.snapshots[0].snapshot(runner.reader.shards)
    done = runner.call_once(
        action.act,
        snapshot,
        action.pending,
        action.changed_here,
        action.resume,
        *_more(action, snapshot),
        action_id=action.action_id,
    )
    words = [*done.words.values()]
    return msgspec.structs.replace(
        action,
        pending=action.pending[done.finished :],
        resume=done.resume,
        changed_here=action.changed_here + done.changed,
        # An id that is half done was looked at.
        handled=action.handled + done.finished + bool(done.resume) - bool(action.resume),
        changed=action.changed + done.changed,
        paused=action.paused + words.count("paused"),
        sooner=action.sooner + words.count("sooner"),
        undoable_here=done.undoable,
    )


def _more(action: BulkAction, snapshot: ShardSnapshot) -> Sequence[Argument]:
    """The arguments of this action alone."""
    if action.act == "requeue":
        return AT_ONCE if action.terms is None else action.terms.arguments(action.changed)
    if action.act == "requeue_waiting" and action.terms is not None:
        return action.terms.times(action.changed)
    if action.act == "run_now":
        if action.terms is not None:
            return [*action.terms.times(action.turns), 0]
        # One tick for each id, so that the last of all is due just now.
        first_at = snapshot.at - (snapshot.waiting - action.changed_here - 1) * TICK
        return [first_at, TICK, int(action.changed_here == 0)]
    return [action.error] if action.act == "kill_delayed" else ()


def _find(runner: ActionRunner, action: BulkAction) -> BulkAction:
    step = _fetch(runner, action, action.snapshots[0].snapshot(runner.reader.shards))
    if step is None:
        return msgspec.structs.replace(
            action,
            snapshots=action.snapshots[1:],
            after=None,
            changed_here=0,
            undoable=action.undoable + action.undoable_here,
            undoable_here=0,
        )
    handled = action.handled + step.listed - len(step.ids)
    return msgspec.structs.replace(action, pending=step.ids, after=step.after, handled=handled)


def first_ids(runner: ActionRunner, action: BulkAction, most: int, go_on: Callable[[], bool]) -> list[str]:
    """Some ids that the action would find, looked for while `go_on()`; only read. Raises BackendError."""
    first: list[str] = []
    for _, ids in listed_ids(runner, action):
        first += ids[: most - len(first)]
        if len(first) >= most or not go_on():
            break
    return first


def listed_ids(runner: ActionRunner, action: BulkAction) -> Iterator[tuple[ShardRef, list[str]]]:
    """The ids that the action would find, in its order; only read. Raises BackendError."""
    for saved in action.snapshots:
        snapshot, after = saved.snapshot(runner.reader.shards), None
        while step := _fetch(runner, msgspec.structs.replace(action, after=after), snapshot):
            yield snapshot.shard, step.ids
            after = step.after


class _Listed(NamedTuple):
    """The ids to change, the number of ids that were listed for them, and the cursor after them."""

    ids: list[str]
    listed: int
    after: str


def _fetch(runner: ActionRunner, action: BulkAction, snapshot: ShardSnapshot) -> _Listed | None:
    """The next ids of the shard; None at its end."""
    reader = runner.reader._replace(shards=only(snapshot.shard))
    if action.chosen is not None:
        ids_of_shard = by_shard(action.chosen, runner.reader.shards).get(snapshot.shard, ())
        return None if action.after is not None else _Listed([*ids_of_shard], len(ids_of_shard), "")
    within = _within(action, snapshot)
    positions = list_positions(reader, _list_of(action), within, IDS_AT_ONCE)
    if not positions:
        return None
    ids = [position.id for position in positions]
    where: SearchableList = "morgue" if action.act in _OF_MORGUE else "waiting"
    matches = filter_ids(runner.jobs, where, _wanted(action), {snapshot.shard: ids})
    return _Listed([*matches], len(ids), positions[-1].cursor())


def _list_of(action: BulkAction) -> ListName:
    if action.act in _OF_MORGUE:
        return "morgue"
    return "retry" if action.act in _OF_FAILED and action.filter == ALL else "due"


def _wanted(action: BulkAction) -> IdFilter:
    """The filter, which finds nothing that the action would leave as it is."""
    if action.act not in _OF_FAILED or action.filter == ALL:
        return action.filter
    least = max(Bound(0.0), Bound.of(action.filter.least_count or "-inf"))
    return msgspec.structs.replace(action.filter, least_count=str(least))


def _within(action: BulkAction, snapshot: ShardSnapshot) -> Range:
    """Upwards: a changed id leaves the list, or moves to a part that was read before."""
    least, most = Bound.of(action.filter.least), Bound.of(action.filter.most)
    if action.act in _OF_LATER:
        # An id that is due before the first turn keeps its time in any case: earlier steps may have given it that.
        first_at = snapshot.at if action.terms is None else max(snapshot.at, action.terms.due_at(-1))
        least = max(least, Bound(first_at, exclusive=True))
        # An id that is due as late as FAR waits for an operator.
        most = _lower(most, Bound(FAR, exclusive=True))
    elif action.act in _OF_DUE:
        most = _lower(most, Bound(snapshot.at))
    elif action.act in _OF_MORGUE:
        most = _lower(most, Bound(snapshot.newest_death))
    return Range(least, most, after=None if action.after is None else ListPosition.of(action.after))


def _lower(one: Bound, other: Bound) -> Bound:
    return min(one, other, key=lambda bound: (bound.value, not bound.exclusive))


def _listed(act: ActionName, snapshot: ShardSnapshot | SavedSnapshot) -> int:
    if act in _OF_MORGUE:
        return snapshot.dead
    return snapshot.failed if act in _OF_FAILED else snapshot.waiting
