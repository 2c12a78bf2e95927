"""What operators do to a queue: in bounded calls, each safe to send twice, to nothing that came after their look."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from lowkiq_lambda.errors import BackendError
from lowkiq_lambda.store.inspect.damaged_records import delete_damaged
from lowkiq_lambda.store.inspect.id_ranges import IDS_AT_ONCE, Bound, ListName, Range, at_once, list_positions
from lowkiq_lambda.store.inspect.jobs import UNLIMITED, by_shard, id_texts
from lowkiq_lambda.store.server.server_time import FOREVER
from lowkiq_lambda.store.shard.keys import ShardRef, notification_channel
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape

PAYLOADS_AT_ONCE: Final = 1_000
"""How many payloads one call touches."""
BYTES_AT_ONCE: Final = 4 * 1024 * 1024
TICK: Final = 2.0**-21
"""Seconds between times that are made the same but for their order: they are told apart down to this."""

ActionName: TypeAlias = Literal["expedite", "kill", "delete_failed", "delete", "requeue", "delete_buried"]
"""What is done to ids: those that wait become due, go to the morgue or to nothing (the second and third of these
only where they have failed); those in the morgue wait again, or go to nothing."""

_LEAST, _MOST = Bound.of("-inf"), Bound.of("+inf")


@dataclass(frozen=True, slots=True)
class ShardSnapshot:
    """A shard when the action began. What was pushed since then has a larger arrival number.

    `seen_at`: the latest time that anybody told the shard, who may have been a little ahead of `at`.
    """

    shard: ShardRef
    at: float
    arrival: int
    seen_at: float
    waiting: int
    failed: int
    buried: int

    @property
    def newest_burial(self) -> float:
        """The latest time of a burial that the look can have seen."""
        return max(self.at, self.seen_at)


@dataclass(frozen=True, slots=True)
class ActionScript:
    """What is done to ids: by which script, and what that is told beside what all are told.

    `details` is given the look and how many ids of its shard were changed before.
    """

    script: str
    details: Callable[[ShardSnapshot, int], Sequence[Argument]]


class SnapshotReply(ReplyShape, frozen=True):
    """What snapshot.lua answers."""

    arrival: bytes
    seen_at: bytes
    waiting: int
    failed: int
    buried: int


class PauseReply(ReplyShape, frozen=True):
    """What pause.lua answers."""

    status: bytes
    due_at: bytes


class ActionReply(ReplyShape, frozen=True):
    """What the scripts of actions answer, by include/action.lua."""

    status: bytes
    changed: int
    finished: int
    resume: bytes
    is_sooner: int


class ActionProgress(NamedTuple):
    """What one call did: how many ids it changed, how many of those given it finished, where to go on in the next."""

    changed: int
    finished: int
    resume: bytes


def _times(look: ShardSnapshot, changed: int) -> Sequence[Argument]:
    """Behind which time the next ids become due: so that the last of all that wait would be due just now."""
    return [look.at - (look.waiting - changed) * TICK, TICK, int(changed == 0)]


_DELETE: Final = ActionScript("delete", lambda _look, _changed: [""])
_DELETE_FAILED: Final = ActionScript("delete", lambda _look, _changed: ["failed"])
_EXPEDITE: Final = ActionScript("expedite", _times)
_REQUEUE: Final = ActionScript("requeue", lambda look, _changed: [look.newest_burial])
_DELETE_BURIED: Final = ActionScript("delete_morgue", lambda look, _changed: [look.newest_burial])


class Actions:
    """What `app.actions(worker)` returns. Each method returns how many ids it changed.

    What is in flight stays as it is, and so does what was pushed after the action had begun. Raises BackendError
    where Redis cannot serve: a note on it tells how many ids were changed, and a second call goes on from there.
    """

    def __init__(self, reader: ShardReader, merge: str, morgue_limits: tuple[int, int, float]) -> None:
        self.reader = reader
        self._merge = merge
        self._kill = ActionScript("kill", lambda _look, _changed: morgue_limits)
        self._orders: dict[ActionName, ActionScript] = {
            "expedite": _EXPEDITE,
            "kill": self._kill,
            "delete_failed": _DELETE_FAILED,
            "delete": _DELETE,
            "requeue": _REQUEUE,
            "delete_buried": _DELETE_BURIED,
        }

    def delete(self, ids: Iterable[object]) -> int:
        """Delete what waits under the ids. Raises JobError for what can be no id."""
        return self._to_ids(_DELETE, ids)

    def perform_jobs_now(self, ids: Iterable[object]) -> int:
        """Make what waits under the ids for a later time due, in the order that it has, with its retry_count.

        Raises JobError for what can be no id.
        """
        return self._to_ids(_EXPEDITE, ids)

    def perform_all_jobs_now(self) -> int:
        """Make what waits for a later time due, in the order that it has, with its retry_count."""
        looks = [look for look in self.look() if look.waiting]
        return self._to_listed(_EXPEDITE, looks, "due", lambda look: Range(Bound(look.at, exclusive=True), _MOST))

    def kill_failed_jobs(self, ids: Iterable[object]) -> int:
        """Send those of the ids that wait and have failed to the morgue, with their last error.

        Raises JobError for what can be no id.
        """
        return self._to_ids(self._kill, ids)

    def kill_all_failed_jobs(self) -> int:
        """Send what waits and has failed to the morgue, with its last error."""
        looks = [look for look in self.look() if look.failed]
        return self._to_listed(self._kill, looks, "retry", lambda _look: Range(_LEAST, _MOST))

    def delete_all_failed_jobs(self) -> int:
        """Delete what waits and has failed."""
        looks = [look for look in self.look() if look.failed]
        return self._to_listed(_DELETE_FAILED, looks, "retry", lambda _look: Range(_LEAST, _MOST))

    def morgue_queue_up(self, ids: Iterable[object]) -> int:
        """Put ids from the morgue back among what waits: due now, retry_count -1, payloads where their score belongs.

        Raises JobError for what can be no id.
        """
        return self._to_ids(_REQUEUE, ids)

    def morgue_queue_up_all_jobs(self) -> int:
        """Put everything in the morgue back among what waits."""
        return self._to_all_buried(_REQUEUE)

    def morgue_delete(self, ids: Iterable[object]) -> int:
        """Delete ids from the morgue. Raises JobError for what can be no id."""
        return self._to_ids(_DELETE_BURIED, ids)

    def morgue_delete_all_jobs(self) -> int:
        """Delete everything in the morgue."""
        return self._to_all_buried(_DELETE_BURIED)

    def pause(self, seconds: float | None = None) -> float:
        """Nobody takes a shard of the queue for so long (None: until it is resumed); the time when that ends.

        Who holds one claims no more. Pushes go on. A second call counts from its own time. Raises ValueError for what
        is no time to come.
        """
        if seconds is not None and not seconds > 0:
            raise ValueError(f"seconds must be more than 0, or None for a pause without an end, not {seconds!r}.")
        return self._set_pause(lambda now: FOREVER if seconds is None else min(now + seconds, FOREVER))

    def resume(self) -> None:
        """End a pause, if there is one."""
        self._set_pause(lambda _now: "")

    def evict(self, shard: ShardRef | int, token: int) -> bool:
        """Refuse all further writes of who holds the shard, given by its number, under this token; whether it did.

        The shard is free when the lease would have ended without a renewal, not before: until then a handler may
        still run. What is in flight counts as abandoned (docs/lease.md).
        """
        return self._to_holder("evict", shard, token)

    def quiet(self, shard: ShardRef | int, token: int) -> bool:
        """Ask the shard's holder to let go of it, if it holds it under this token; whether it does.

        `shard` may be its number. What runs comes to its end, nothing more is begun, and jobs that were claimed and not
        begun go back as they were. Anybody may take the shard then, the same process too.
        """
        return self._to_holder("quiet", shard, token)

    def _to_holder(self, name: str, shard: ShardRef | int, token: int) -> bool:
        held = self.reader.shards[shard] if isinstance(shard, int) else shard
        reply = self.reader.backend.run(name, held, [str(token)], patience=self.reader.patience)
        return bool(reply[0] == b"OK")

    def repair(self) -> int:
        """Look through all shards for records that no script wrote, and set them aside; how many were damaged.

        Whoever meets such a record does that by itself. Here it is done for those that nobody meets.
        """
        mender = self.reader.backend.mender
        return sum(mender.repair(shard) for shard in self.reader.shards)

    def delete_damaged(self, last: int | None = None) -> int:
        """Delete what was set aside (`queries.damaged` shows it), up to a number; how many records that were."""
        return delete_damaged(self.reader, UNLIMITED if last is None else last)

    def call_once(
        self, act: ActionName, look: ShardSnapshot, ids: Sequence[str], changed: int, resume: bytes = b""
    ) -> ActionProgress:
        """One call on ids of the look's shard, of which `changed` were changed before; it may not get to the last."""
        return self._call(self._orders[act], look, at_once(ids), changed, resume)

    def look(self, shards: Sequence[ShardRef] | None = None) -> list[ShardSnapshot]:
        """What is there before the first change."""
        chosen = self.reader.shards if shards is None else shards
        return self.reader.read("snapshot", dict.fromkeys(chosen, ()), self._look)

    def _look(self, shard: ShardRef, reply: Reply) -> ShardSnapshot:
        told = SnapshotReply.of(reply)
        counts = told.waiting, told.failed, told.buried
        return ShardSnapshot(shard, self.reader.backend.now(shard), int(told.arrival), float(told.seen_at), *counts)

    def _to_ids(self, order: ActionScript, ids: Iterable[object]) -> int:
        of_shard = by_shard(id_texts(ids), self.reader.shards)
        return self._carry_out(order, ((look, of_shard[look.shard]) for look in self.look(list(of_shard))))

    def _to_all_buried(self, order: ActionScript) -> int:
        looks = [look for look in self.look() if look.buried]
        return self._to_listed(order, looks, "morgue", lambda look: Range(_LEAST, Bound(look.newest_burial)))

    def _to_listed(
        self,
        order: ActionScript,
        looks: Sequence[ShardSnapshot],
        listed: ListName,
        within: Callable[[ShardSnapshot], Range],
    ) -> int:
        parts = ((look, ids) for look in looks for ids in self._listed(look.shard, listed, within(look)))
        return self._carry_out(order, parts)

    def _listed(self, shard: ShardRef, listed: ListName, within: Range) -> Iterator[list[str]]:
        """The ids of a list in parts; what leaves the list meanwhile moves nothing past."""
        reader = self.reader._replace(shards=[shard])
        while places := list_positions(reader, listed, within, IDS_AT_ONCE):
            yield [place.id for place in places]
            within = within._replace(after=places[-1])

    def _carry_out(self, order: ActionScript, parts: Iterable[tuple[ShardSnapshot, Sequence[str]]]) -> int:
        changed: Counter[ShardRef] = Counter()
        try:
            for look, ids in parts:
                for more in self._calls(order, look, ids, changed):
                    changed[look.shard] += more
        except BackendError as error:
            error.add_note(f"{changed.total():,} ids were changed before; call the action again to go on.")
            raise
        return changed.total()

    def _calls(
        self, order: ActionScript, look: ShardSnapshot, ids: Sequence[str], changed: Counter[ShardRef]
    ) -> Iterator[int]:
        """Calls the script until all ids are finished; how many ids each call changed."""
        start, resume = 0, b""
        while start < len(ids):
            more, finished, resume = self._call(order, look, at_once(ids, start), changed[look.shard], resume)
            start += finished
            yield more

    def _call(
        self, order: ActionScript, look: ShardSnapshot, ids: Sequence[str], changed: int, resume: bytes
    ) -> ActionProgress:
        args: list[Argument] = [secrets.token_bytes(12), self._merge, look.arrival]
        args += [PAYLOADS_AT_ONCE, BYTES_AT_ONCE, resume, *order.details(look, changed), *ids]
        reply = self.reader.backend.run(order.script, look.shard, args, patience=self.reader.patience)
        done = ActionReply.of(reply)
        if done.is_sooner:
            self._notify(look.shard)
        return ActionProgress(done.changed, done.finished, done.resume)

    def _set_pause(self, until_of: Callable[[float], Argument]) -> float:
        reader, until = self.reader, until_of(self.reader.backend.now(self.reader.shards[0]))
        for shard in reader.shards:
            paused = PauseReply.of(reader.backend.run("pause", shard, [until], patience=reader.patience))
            if paused.due_at and not until:
                self._notify(shard)
        return float(until or 0)

    def _notify(self, shard: ShardRef) -> None:
        self.reader.backend.publish(notification_channel(shard.queue_name), str(shard.index))
