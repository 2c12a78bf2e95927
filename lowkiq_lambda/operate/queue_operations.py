"""`app.operate(worker)`: what operators do to one queue, over what they see of it."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from lowkiq_lambda.operate.acts import forgetting
from lowkiq_lambda.operate.acts.chosen_ids import act_on, chosen
from lowkiq_lambda.operate.acts.shards import chosen_shard, forget_timing, no_pause, pause_ends, set_pause
from lowkiq_lambda.operate.inspect import damaged_records, journal_level
from lowkiq_lambda.operate.inspect.id_filter import Wanted
from lowkiq_lambda.operate.inspect.jobs import UNLIMITED
from lowkiq_lambda.operate.inspect.journal_level import JournalLevel
from lowkiq_lambda.operate.queue_looks import QueueLooks
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.nodes import FAR

if TYPE_CHECKING:
    from lowkiq_lambda.operate.acts.bulk_progress import Changed
    from lowkiq_lambda.operate.acts.editing import Edited
    from lowkiq_lambda.operate.acts.replaying import Replayed
    from lowkiq_lambda.operate.acts.undoing import Undone
    from lowkiq_lambda.reshard.resharding import Resharding
    from lowkiq_lambda.views.requests import Requested

Unblocking: TypeAlias = Literal["retry", "skip"]


class QueueOperations(QueueLooks):
    """The result of `app.operate(worker)`: three lists of ids, and acts on the queue as a whole.

    Acts on ids take `ids`, a `filter`, or `everything=True`, exactly one of the three, and return how many ids they
    changed. They leave ids in flight alone, and payloads that were pushed after the act had begun; a second call after
    an error does the rest.

    The first call that needs Redis looks up which shards the queue has, and these count for all calls of this object.
    Each method raises QueueMismatch if the queue was made with another declaration, and BackendError if Redis cannot
    serve.
    """

    # Single ids

    def unblock(
        self,
        ids: Iterable[object] | None = None,
        how: Unblocking = "retry",
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        everything: bool = False,
    ) -> "Changed":
        """Unblock ids with a dead head (`Worker.dead_head`); how many were unblocked.

        "retry" tries the head again, as if it had never failed, "skip" sends it to the morgue. Takes `ids`, those that
        match a `filter`, or `everything=True`. Raises JobError for an invalid id, and ValueError.
        """
        if how not in {"retry", "skip"}:
            raise ValueError(f'how must be "retry" or "skip", not {how!r}.')
        choice = chosen(ids, filter, everything=everything)
        if choice.ids is None:
            # Only blocked ids are due as late as FAR.
            choice = choice._replace(filter=choice.filter.from_time(FAR))
        return act_on(self.runner, "unblock" if how == "retry" else "unblock_skipping", choice)

    def undo(self, action_id: str) -> "Undone":
        """Take back an action on ids of the last ten minutes, by its id (`Changed.action_id`).

        It can be undone itself. Ids that have run or changed since are skipped. Raises ValueError if the queue has
        no such action, for a bad id as well.
        """
        from lowkiq_lambda.operate.acts.undoing import undo  # noqa: PLC0415 - for those that undo alone

        return undo(self.runner, action_id)

    def edit(  # noqa: PLR0913 - what is edited, and how
        self,
        job_id: object,
        arrival: int,
        payload: object,
        *,
        reason: str,
        keep_cursor: bool = False,
        digest: str | None = None,
        by: str = "",
    ) -> "Edited":
        """Put another payload in the place of one that waits or is dead; `payloads` has the arrival numbers.

        Place, score, time and retry_count stay. An equal payload of the id that waits too becomes one with it, by
        `merge`. A started job begins again unless `keep_cursor`. The journal keeps the beginning of the old payload
        with `by`; `undo` takes the edit back. `digest`: that of the payload that somebody saw (default: as the
        call itself finds it). `reason`: 1 to 200 characters.

        Raises JobError if the payload is too large or not of the type that the worker declares, EditRefused, a
        ValueError, if it runs or has changed, and ValueError for a bad reason or number.
        """
        from lowkiq_lambda.operate.acts import editing  # noqa: PLC0415 - for those that edit alone

        editing.checked_reason(reason)
        dumped = editing.dumped_payload(self._declared, payload, self._core.config)
        parts = self._parts
        return editing.edit(
            parts.runner, parts.jobs, job_id, arrival, dumped, digest=digest, keep_cursor=keep_cursor, by=by
        )

    def cancel(
        self, ids: Iterable[object], *, kill: bool = False, forget_keys: bool = False, by: str = ""
    ) -> "Requested":
        """Stop ids for good, in any state: their payloads go, or to the morgue with `kill`.

        Payloads that wait go at once. The holder of an id in flight is asked: a job with a cursor stops at its next
        yield, a coroutine is cancelled if all ids of its batch are, and a plain function sees `batch.cancelled`: only
        its own end stops it, or `in_flight.evict` if it hangs. `Requested.stops_at` tells which of them it is. A run
        that ends well all the same is done; of any other its payloads go. Payloads that are pushed later stay. With
        `forget_keys` the keys of the ids are forgotten, too. `by`: the operator's name. Raises JobError for an invalid
        id, and RequestsFull.
        """
        from lowkiq_lambda.operate.acts import requesting  # noqa: PLC0415 - for people

        ids = [*ids]
        answer = requesting.cancel(self.runner, ids, by, self._worker, kill=kill)
        if forget_keys:
            forgetting.forget_keys_of(self.reader, ids)
        return answer

    def pause_jobs(self, ids: Iterable[object], seconds: float | None = None, *, by: str = "") -> "Requested":
        """Pause ids, each by itself, for so many seconds (None: until `resume_jobs`); the later end wins.

        Payloads that wait under them, or are pushed, are due no sooner than the end. An id in flight is put back when
        its run ends and is not done, at the next yield of a job with a cursor. `by`: the operator's name. Raises
        JobError for an invalid id, ValueError if `seconds` is not above 0, and RequestsFull.
        """
        from lowkiq_lambda.operate.acts import requesting  # noqa: PLC0415 - for people

        return requesting.pause_jobs(self.runner, ids, pause_ends(seconds), by, self._worker)

    def resume_jobs(self, ids: Iterable[object]) -> "Requested":
        """End the pauses of ids: they are due when they would have been, or now. Raises JobError."""
        from lowkiq_lambda.operate.acts import requesting  # noqa: PLC0415 - for people

        return requesting.resume_jobs(self.runner, ids)

    def forget_keys(self, pushed: Iterable[tuple[object, str]] = (), *, ids: Iterable[object] = ()) -> int:
        """Forget that jobs with these ids and keys, in pairs, were pushed: the next push of each counts again.

        `ids`: the same of all keys of these ids. Returns how many were remembered. Jobs that wait or run are left
        alone. Raises JobError for a bad id.
        """
        return forgetting.forget_keys(self.reader, pushed) + forgetting.forget_keys_of(self.reader, ids)

    def forget_all_keys(self) -> int:
        """Forget all keys of the queue; how many were remembered."""
        return forgetting.forget_all_keys(self.reader)

    def forget_marks(self, ids: Iterable[object]) -> int:
        """Forget up to which score ids were done, in a queue with `merge = "latest"`: any score is accepted again.

        Returns how many had been done. Raises JobError for a bad id, ValueError if the worker has another merge.
        """
        return forgetting.forget_marks(self.reader, ids)

    # The queue

    def pause(self, seconds: float | None = None, *, tenant: str | None = None) -> float:
        """Pause draining of the queue for so many seconds (None: until `resume`); the time when the pause ends.

        A holder claims no more ids. Pushes go on. A second call counts from its own time. With a `tenant` only its
        ids are not claimed; its suspects still run, because suspects go first. Raises ValueError if `seconds` is not
        above 0, if the worker declares no tenants, or for a name with a colon, which no tenant has.
        """
        return set_pause(self.reader, tenant, pause_ends(seconds))

    def resume(self, *, tenant: str | None = None) -> None:
        """End a pause of the queue, or of a tenant, if there is one. Raises ValueError as `pause`."""
        set_pause(self.reader, tenant, no_pause)

    def forget_timing(self) -> None:
        """Let the next drains forget how long batches took until now.

        They predict by that whether a further batch fits, so one that was far slower than usual leaves some of their
        time unused for minutes. A drain that holds a shard forgets when it takes one again. Raises BackendError.
        """
        forget_timing(self.reader)

    def journal(
        self, level: JournalLevel, seconds: float = 600.0, shards: Sequence[ShardRef | int] | None = None
    ) -> None:
        """Write pushes, claims and outcomes into the journal too for so long ("all"), or from now on not ("trouble").

        `shards` (None: all of the queue) may be their numbers. Raises ValueError if `seconds` is not above 0 or more
        than a day, and for a shard that the queue does not have.
        """
        value: object = shards
        if not (value is None or isinstance(value, Iterable)):
            raise TypeError(f"shards are given as a list, not as one {type(value).__name__}")
        reader = self.reader
        which = reader.shards if shards is None else [chosen_shard(reader.shards, shard) for shard in shards]
        journal_level.set_journal_level(reader, level, seconds, which)

    def replay(  # noqa: PLR0913 - each narrows the runs
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        outcome: str | Iterable[str] | None = "done",
        id_prefix: str = "",
        rate: float | None = None,
        dry_run: bool = False,
    ) -> "Replayed":
        """Push the payloads of kept runs again, by id and score: of those that ran at some moment between.

        The worker has to keep payloads (`KeepRuns(..., payloads=True)`). A payload is pushed under a key that names its
        run, so that a second call within a week changes nothing. With a `rate` so many ids become due in a second.
        `dry_run` pushes nothing. Raises ValueError without kept payloads, for more than 100,000 of them, and for a rate
        that is not above 0; and what a push raises.
        """
        from lowkiq_lambda.operate.acts.replaying import replay_of  # noqa: PLC0415 - for those that keep runs

        steps = replay_of(
            self._core,
            self.reader,
            self.runner.errors,
            self._declared,
            (since, until),
            outcome=outcome,
            id_prefix=id_prefix,
            rate=rate,
        )
        return steps.plan.replayed if dry_run else steps.run()

    def forget_runs(self) -> None:
        """Delete the runs that the queue has kept; later ones are kept if its worker declares it."""
        from lowkiq_lambda.operate.acts.forgetting import forget_runs  # noqa: PLC0415 - for those that keep runs

        forget_runs(self.reader)

    def acknowledge_violations(self) -> int:
        """Forget the violations that housekeeping has found; how many they were. The evidence stays for its month."""
        from lowkiq_lambda.operate.verify.record import acknowledge  # noqa: PLC0415 - for those that verify alone

        return acknowledge(self.reader)

    def repair(self) -> int:
        """Set aside all records of the queue that no script wrote; how many records were damaged.

        Drains and readers set aside the damaged records that they meet; this finds the others.
        """
        mender = self.reader.backend.mender
        return sum(mender.repair(shard) for shard in self.reader.shards)

    def delete_damaged(self, last: int | None = None) -> int:
        """Delete records that were set aside (see `damaged`), up to a number; how many records were deleted."""
        return damaged_records.delete_damaged(self.reader, UNLIMITED if last is None else last)

    def redeclare(self) -> None:
        """Make an empty queue anew with the `shards_count` and the `merge` that the worker has now.

        Call it when producers have stopped and everything is drained: processes that still use the old ones get
        QueueMismatch from then on. Raises QueueMismatch if jobs are left, the queue was made with another codec, or
        another call came between. If a call breaks off half-way, another call finishes it.
        """
        core = self._core
        core.queues.of(self._declared).redeclare(core.backend, core.config.redis_retry_for)
        # The layout has changed.
        QueueOperations(core, self._worker, self._found).limits.keep()

    def reshard(self, *, to: int, unreplicated: bool = False) -> None:
        """Give the queue so many shards, while it is pushed to and drained (docs/resharding.md).

        Returns when all ids lie in the new shards. If a call breaks off, another call goes on. If the server has
        replicas, one of them has each step before the next, unless `unreplicated`. Raises LowkiqError if another move
        is under way, or no replica has a step.
        """
        resharding = self.resharding(unreplicated=unreplicated)
        resharding.begin(to)
        resharding.go_on(lambda *_: None)
        self._core.queues.of(self._declared).doubt()

    def resharding(self, *, unreplicated: bool = False) -> "Resharding":
        """The moves of the queue, step by step."""
        from lowkiq_lambda.reshard.duty import resharding_of  # noqa: PLC0415 - for those that reshard alone

        return resharding_of(self._core, self._declared, unreplicated=unreplicated)

    # Other ways to ask

    def glimpse(self) -> "QueueOperations":
        """The same for long lists: a job has its first payload only, and none if that is large."""
        return QueueOperations(
            self._core, self._worker, lambda: self._parts.stored, retry_for=self._retry_for, is_glimpse=True
        )

    def retrying(self, seconds: float) -> "QueueOperations":
        """The same, with calls that give up after so many seconds, if they would try longer otherwise."""
        retry_for = min(seconds, self._retry_for)
        return QueueOperations(
            self._core, self._worker, lambda: self._parts.stored, retry_for=retry_for, is_glimpse=self._is_glimpse
        )
