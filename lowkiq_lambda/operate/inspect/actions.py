"""The actions of operators: bounded calls, each safe to send twice, which leave later arrivals alone."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from lowkiq_lambda.base.error_text import text_to_bytes
from lowkiq_lambda.base.errors import BackendError, ShardClosed, ShardMoving
from lowkiq_lambda.operate.inspect.action_scripts import (
    ActionName,
    ActionProgress,
    ShardSnapshot,
    SnapshotReply,
    action_scripts,
)
from lowkiq_lambda.operate.inspect.forgetting import forget_keys, forget_marks
from lowkiq_lambda.operate.inspect.id_filter import IdFilter, Wanted, filter_by, filter_ids
from lowkiq_lambda.operate.inspect.id_ranges import IDS_AT_ONCE, Bound, ListName, Range, at_once, list_positions
from lowkiq_lambda.operate.inspect.jobs import by_shard, id_texts
from lowkiq_lambda.operate.inspect.shard_actions import ShardActions
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.store.shard.action_replies import BYTES_AT_ONCE, PAYLOADS_AT_ONCE, ActionReply
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply

_LEAST, _MOST = Bound.of("-inf"), Bound.of("+inf")


class ActionCall(NamedTuple):
    """An action, and what it says itself where its script wants that."""

    name: ActionName
    more: Sequence[Argument] = ()


class Actions(ShardActions):
    """What `app.operate.actions(worker)` returns. Each method returns how many ids it changed.

    What is in flight stays as it is, and so does what was pushed after the action had begun. Raises BackendError
    where Redis cannot serve: a note on it tells how many ids were changed, and a second call goes on from there.
    """

    def __init__(
        self,
        reader: ShardReader,
        merge: str,
        morgue_limits: tuple[int, int, float],
        dump_error: Callable[[str], bytes] = text_to_bytes,
        errors: StoredErrors = StoredErrors(),  # noqa: B008 - it cannot be changed
    ) -> None:
        super().__init__(reader)
        self.merge = merge
        self.errors = errors
        self._dump_error = dump_error
        self._scripts = action_scripts(morgue_limits)

    def delete(self, ids: Iterable[object]) -> int:
        """Delete what waits under the ids. Raises JobError for a bad id."""
        return self._to_ids("delete", ids)

    def perform_jobs_now(self, ids: Iterable[object]) -> int:
        """Make what waits under the ids for a later time due, in the order that it has, with its retry_count.

        Raises JobError for a bad id.
        """
        return self._to_ids("expedite", ids)

    def perform_all_jobs_now(self) -> int:
        """Make what waits for a later time due, in the order that it has, with its retry_count."""
        snapshots = [snapshot for snapshot in self._snapshots() if snapshot.waiting]
        return self._to_listed(
            "expedite", snapshots, "due", lambda snapshot: Range(Bound(snapshot.at, exclusive=True), _MOST)
        )

    def release(self, ids: Iterable[object], how: Literal["retry", "skip"]) -> int:
        """Let held ids go on: "retry" tries the head again, as if it had never failed, "skip" sends it to the morgue.

        Raises JobError for a bad id, ValueError for anything else than these two.
        """
        if how not in ("retry", "skip"):
            raise ValueError(f'how must be "retry" or "skip", not {how!r}.')
        return self._to_ids("release" if how == "retry" else "release_skipping", ids)

    def kill_failed_jobs(self, ids: Iterable[object]) -> int:
        """Send those of the ids that wait and have failed to the morgue, with their last error.

        Raises JobError for a bad id.
        """
        return self._to_ids("kill", ids)

    def kill_all_failed_jobs(self) -> int:
        """Send what waits and has failed to the morgue, with its last error."""
        snapshots = [snapshot for snapshot in self._snapshots() if snapshot.failed]
        return self._to_listed("kill", snapshots, "retry", lambda _snapshot: Range(_LEAST, _MOST))

    def bury(
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        error: str,
    ) -> int:
        """Send what is not due yet to the morgue, with this error: ids, or those that a filter wants of what waits.

        It takes back a redrive, as far as its time has not come. What is held is left alone. Raises JobError for a bad
        id, ValueError if not one of the two is given.
        """
        if (ids is None) == (filter is None):
            raise ValueError("Give ids, or a filter.")
        given: object = error
        if not isinstance(given, str):
            raise TypeError(f"error must be a text, not {type(given).__name__}.")
        told = self._dump_error(error)
        if ids is not None:
            return self._to_ids("bury", ids, told)
        wanted = filter_by(filter or {})
        snapshots = [snapshot for snapshot in self._snapshots() if snapshot.waiting]
        parts = (
            (snapshot, [*filter_ids(self.reader, self.errors, "waiting", wanted, {snapshot.shard: part})])
            for snapshot in snapshots
            for part in self._listed(snapshot.shard, "due", _later(snapshot, wanted))
        )
        return self._carry_out(ActionCall("bury", [told]), parts)

    def delete_all_failed_jobs(self) -> int:
        """Delete what waits and has failed."""
        snapshots = [snapshot for snapshot in self._snapshots() if snapshot.failed]
        return self._to_listed("delete_failed", snapshots, "retry", lambda _snapshot: Range(_LEAST, _MOST))

    def morgue_queue_up(self, ids: Iterable[object]) -> int:
        """Put ids from the morgue back among what waits: due now, retry_count -1, payloads where their score belongs.

        Raises JobError for a bad id.
        """
        return self._to_ids("requeue", ids)

    def morgue_queue_up_all_jobs(self) -> int:
        """Put everything in the morgue back among what waits."""
        return self._to_all_buried("requeue")

    def morgue_delete(self, ids: Iterable[object]) -> int:
        """Delete ids from the morgue. Raises JobError for a bad id."""
        return self._to_ids("delete_buried", ids)

    def morgue_delete_all_jobs(self) -> int:
        """Delete everything in the morgue."""
        return self._to_all_buried("delete_buried")

    def forget_keys(self, pushed: Iterable[tuple[object, str]]) -> int:
        """Forget that jobs with these ids and keys, in pairs, were pushed: the next push of each counts again.

        Returns how many were remembered. What waits or runs is left alone. Raises JobError for a bad id.
        """
        return forget_keys(self.reader, pushed)

    def forget_marks(self, ids: Iterable[object]) -> int:
        """Forget up to which score ids were done, in a queue with `merge = "latest"`: any score is accepted again.

        Returns how many had been done. Raises JobError for a bad id, ValueError if the worker has another merge.
        """
        return forget_marks(self.reader, ids)

    def _call_once(
        self,
        act: ActionName,
        snapshot: ShardSnapshot,
        ids: Sequence[str],
        changed: int,
        resume: bytes = b"",
        *more: Argument,
    ) -> ActionProgress:
        """One call for ids of the snapshot's shard, after `changed` changes there; it may not reach the last id.

        `more`: what the action itself says, where its script wants that.
        """
        return self._call(ActionCall(act, more), snapshot, at_once(ids), changed, resume)

    def _snapshots(self, shards: Sequence[ShardRef] | None = None) -> list[ShardSnapshot]:
        """The shards before the first change."""
        chosen = self.reader.shards if shards is None else shards
        return self.reader.read("snapshot", dict.fromkeys(chosen, ()), self._snapshot)

    def _snapshot(self, shard: ShardRef, reply: Reply) -> ShardSnapshot:
        shape = SnapshotReply.of(reply)
        counts = shape.waiting, shape.failed, shape.buried
        return ShardSnapshot(shard, self.reader.backend.now(shard), int(shape.arrival), float(shape.seen_at), *counts)

    def _to_ids(self, act: ActionName, ids: Iterable[object], *more: Argument) -> int:
        of_shard = by_shard(id_texts(ids), self.reader.shards)
        snapshots = self._snapshots(list(of_shard))
        parts = ((snapshot, of_shard[snapshot.shard]) for snapshot in snapshots)
        return self._carry_out(ActionCall(act, more), parts)

    def _to_all_buried(self, act: ActionName) -> int:
        snapshots = [snapshot for snapshot in self._snapshots() if snapshot.buried]
        return self._to_listed(act, snapshots, "morgue", lambda snapshot: Range(_LEAST, Bound(snapshot.newest_burial)))

    def _to_listed(
        self,
        act: ActionName,
        snapshots: Sequence[ShardSnapshot],
        listed: ListName,
        within: Callable[[ShardSnapshot], Range],
    ) -> int:
        parts = (
            (snapshot, ids) for snapshot in snapshots for ids in self._listed(snapshot.shard, listed, within(snapshot))
        )
        return self._carry_out(ActionCall(act), parts)

    def _listed(self, shard: ShardRef, listed: ListName, within: Range) -> Iterator[list[str]]:
        """The ids of a list in parts. Ids that leave the list meanwhile make none of the others missed."""
        reader = self.reader._replace(shards=only(shard))
        while places := list_positions(reader, listed, within, IDS_AT_ONCE):
            yield [place.id for place in places]
            within = within._replace(after=places[-1])

    def _carry_out(self, act: ActionCall, parts: Iterable[tuple[ShardSnapshot, Sequence[str]]]) -> int:
        changed: Counter[ShardRef] = Counter()
        try:
            for snapshot, ids in parts:
                for more in self._calls(act, snapshot, ids, changed):
                    changed[snapshot.shard] += more
        except BackendError as error:
            error.add_note(f"{changed.total():,} ids were changed before; call the action again to go on.")
            raise
        return changed.total()

    def _calls(
        self, act: ActionCall, snapshot: ShardSnapshot, ids: Sequence[str], changed: Counter[ShardRef]
    ) -> Iterator[int]:
        """How many ids each call changed, until all ids are finished."""
        start, resume = 0, b""
        while start < len(ids):
            more, finished, resume = self._call(act, snapshot, at_once(ids, start), changed[snapshot.shard], resume)
            start += finished
            yield more

    def _call(
        self, act: ActionCall, snapshot: ShardSnapshot, ids: Sequence[str], changed: int, resume: bytes
    ) -> ActionProgress:
        script = self._scripts[act.name]
        args: list[Argument] = [secrets.token_bytes(12), self.merge, snapshot.arrival]
        args += [PAYLOADS_AT_ONCE, BYTES_AT_ONCE, resume, *script.details(snapshot, changed), *act.more, *ids]
        try:
            reply = self.reader.backend.run(script.script, snapshot.shard, args, retry_for=self.reader.retry_for)
        except ShardClosed as error:
            if error.floors is None:
                raise
            raise ShardMoving from None
        done = ActionReply.of(reply)
        if done.is_sooner:
            self._notify(snapshot.shard)
        return ActionProgress(done.changed, done.finished, done.resume)


def _later(snapshot: ShardSnapshot, wanted: IdFilter) -> Range:
    """What is due after the look, as far as the filter wants it."""
    least = max(Bound.of(wanted.least), Bound(snapshot.at, exclusive=True))
    return Range(least, Bound.of(wanted.most))
