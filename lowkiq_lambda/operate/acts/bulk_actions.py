"""An operator's action on many ids, in short steps. Between two steps it is a value that anybody may keep.

It begins with a snapshot of the list, taken when the operator is asked to confirm; later arrivals are never touched,
however late the steps are. So a step may run twice, even by two operators: the second run finds nothing to do.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import TICK, UNDOABLE, ActionName, ShardSnapshot
from lowkiq_lambda.operate.acts.bulk_progress import (
    OF_FAILED,
    OF_MORGUE,
    BulkAction,
    SavedSnapshot,
    listed,
    new_action_id,
)
from lowkiq_lambda.operate.acts.requeue_terms import AT_ONCE
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

_OF_LATER: Final = frozenset({"run_now", "kill_delayed"})
_OF_DUE: Final = frozenset({"requeue_waiting"})


class WholeListError(ValueError):
    """An action that is for a part of a list alone was to be made on all of it."""


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
        snapshot.shard: listed(act, snapshot) if ids is None else len(of_shard[snapshot.shard])
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
    where: SearchableList = "morgue" if action.act in OF_MORGUE else "waiting"
    matches = filter_ids(runner.jobs, where, _wanted(action), {snapshot.shard: ids})
    return _Listed([*matches], len(ids), positions[-1].cursor())


def _list_of(action: BulkAction) -> ListName:
    if action.act in OF_MORGUE:
        return "morgue"
    return "retry" if action.act in OF_FAILED and action.filter == ALL else "due"


def _wanted(action: BulkAction) -> IdFilter:
    """The filter, which finds nothing that the action would leave as it is."""
    if action.act not in OF_FAILED or action.filter == ALL:
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
    elif action.act in OF_MORGUE:
        most = _lower(most, Bound(snapshot.newest_death))
    return Range(least, most, after=None if action.after is None else ListPosition.of(action.after))


def _lower(one: Bound, other: Bound) -> Bound:
    return min(one, other, key=lambda bound: (bound.value, not bound.exclusive))
