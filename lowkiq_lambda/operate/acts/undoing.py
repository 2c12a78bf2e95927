"""Takes back actions on ids, by the rows that they have left for ten minutes."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, cast, get_args

import msgspec

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.core import Core
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import UNDO_SECONDS, ActionName, ShardSnapshot
from lowkiq_lambda.operate.acts.bulk_progress import new_action_id
from lowkiq_lambda.store.shard.keys import UNDO, ShardRef
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, ReplyShape

ACTION_ID: Final = re.compile("[0-9a-f]{16}")
ANY_ARRIVAL: Final = 2**53
"""An undo knows by its rows which payloads it changes, so a look excludes none."""
EDITS: Final[frozenset[ActionName]] = frozenset({"edit", "undo_edit"})
"""To undo one of these is to edit, which takes the same right."""
UNDOS: Final[frozenset[ActionName]] = frozenset({"undo", "undo_edit"})


class UndoableAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action that can be undone: `ids` of the `changed` ids. `at`: when it began (Unix seconds)."""

    id: str
    act: ActionName
    at: float
    ids: int
    changed: int


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an undo: how many ids are as they were, and how many rows it skipped, by the reason.

    `action_id`: by this id the undo itself can be undone; empty if none of its changes can be.
    """

    restored: int
    skipped: Mapping[str, int]
    action_id: str = ""


class RowsReply(ReplyShape, frozen=True):
    """The reply of undo_rows_of.lua."""

    scripts = ("undo_rows_of",)
    numbers: list[bytes]
    following: bytes


class UndoableReply(ReplyShape, frozen=True):
    """The reply of undoable.lua: id, act, time, ids and changed ids of each action, in a row."""

    scripts = ("undoable",)
    actions: list[bytes | int]


def undoable(reader: ShardReader) -> list[UndoableAction]:
    """The actions on ids of the queue that can be undone, the newest first. Raises BackendError."""
    return [action for actions in _undoable_of(reader, reader.shards).values() for action in actions]


def undoable_in_all(core: Core) -> dict[str, list[UndoableAction]]:
    """The same of each queue, by its name, but for those that were made with another declaration.

    Two round trips, however many there are. Raises BackendError.
    """
    queues, _ = core.queues.all_current()
    reader = ShardReader(core.backend, core.config.redis_retry_for)
    return _undoable_of(reader, [shard for queue in queues.values() for shard in queue.shards])


def _undoable_of(reader: ShardReader, shards: Iterable[ShardRef]) -> dict[str, list[UndoableAction]]:
    by_queue: dict[str, dict[str, UndoableAction]] = {}
    args: dict[ShardRef, Sequence[Argument]] = dict.fromkeys(_with_rows(shards), ())
    for queue_name, of_shard in reader.read(
        "undoable", args, lambda shard, reply: (shard.queue_name, [*_actions(reader, shard, reply)])
    ):
        by_id = by_queue.setdefault(queue_name, {})
        for action in of_shard:
            other = by_id.get(action.id, action)
            ids, changed = (0, 0) if other is action else (other.ids, other.changed)
            by_id[action.id] = msgspec.structs.replace(
                action, at=min(action.at, other.at), ids=ids + action.ids, changed=changed + action.changed
            )
    newest = attrgetter("at")
    return {name: sorted(by_id.values(), key=newest, reverse=True) for name, by_id in by_queue.items()}


def undo(runner: ActionRunner, action_id: str) -> Undone:
    """Take back an action. Raises ValueError if there is no such action, BackendError."""
    value: object = action_id
    if not (isinstance(value, str) and ACTION_ID.fullmatch(value)):
        raise ValueError(f"The id of an action has 16 hex digits, so {action_id!r} is not one.")
    action = next((one for one in undoable(runner.reader) if one.id == action_id), None)
    if action is None:
        raise ValueError(f"Action {action_id} cannot be undone: it is older than ten minutes, or it is undone already.")
    own_id, restored, can_undo, skipped = new_action_id(), 0, 0, Counter[str]()
    try:
        for shard in _with_rows(runner.reader.shards):
            can_undo_here = 0
            for changed, can_undo_here, reasons in _undo_in(runner, shard, action, own_id):  # noqa: B007 - the last
                restored += changed
                skipped.update(reasons)
            can_undo += can_undo_here
    except BackendError as failure:
        failure.add_note(f"{restored:,} ids were restored before; call undo again to go on.")
        raise
    return Undone(restored=restored, skipped=dict(skipped), action_id=own_id if can_undo else "")


def _undo_in(
    runner: ActionRunner, shard: ShardRef, action: UndoableAction, own_id: str
) -> Iterator[tuple[int, int, list[str]]]:
    """Of each call: how many ids it has changed, how many of the undo can be undone, and why rows were skipped."""
    snapshot = ShardSnapshot(shard, 0.0, ANY_ARRIVAL, 0.0, 0, 0, 0)
    name: ActionName = "undo_edit" if action.act in EDITS else "undo"
    for numbers in _numbers(runner.reader, shard, action.id):
        left = numbers
        while left:
            done = runner.call_once("undo", snapshot, left, 0, b"", action.id, action_id=own_id, name=name)
            left = left[done.finished :]
            yield done.changed, done.undoable, [reason.decode() for reason in done.skipped]


def _numbers(reader: ShardReader, shard: ShardRef, action_id: str) -> Iterator[list[str]]:
    """The numbers of the rows of an action, newest first."""
    of_shard, following = reader._replace(shards=only(shard)), b"+"
    while following:
        args: dict[ShardRef, Sequence[Argument]] = {shard: [action_id, following]}
        (reply,) = of_shard.read("undo_rows_of", args, lambda _, reply: RowsReply.of(reply))
        following = reply.following
        yield [number.decode() for number in reply.numbers]


def _actions(reader: ShardReader, shard: ShardRef, reply: list[object]) -> Iterator[UndoableAction]:
    since = reader.backend.now(shard) - UNDO_SECONDS
    parts = UndoableReply.of(reply).actions
    for at in range(0, len(parts), 5):
        action_id, act, began_at, ids, changed = parts[at : at + 5]
        name = act.decode() if isinstance(act, bytes) else ""
        if name in get_args(ActionName) and float(began_at) >= since and isinstance(action_id, bytes):
            yield UndoableAction(
                id=action_id.decode(),
                act=cast("ActionName", name),
                at=float(began_at),
                ids=int(ids),
                changed=int(changed),
            )


def _with_rows(shards: Iterable[ShardRef]) -> list[ShardRef]:
    return [shard.using((*shard.features, UNDO)) for shard in shards]
