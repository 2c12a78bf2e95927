"""`app.operate(worker)`: what operators see of one queue, and do to it."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import JobView, MorgueJob, id_text
from lowkiq_lambda.operate.acts import forgetting
from lowkiq_lambda.operate.acts.chosen_ids import act_on, chosen
from lowkiq_lambda.operate.acts.shards import chosen_shard, no_pause, pause_ends, set_pause
from lowkiq_lambda.operate.inspect import damaged_records, journal_level
from lowkiq_lambda.operate.inspect.biography import biography
from lowkiq_lambda.operate.inspect.id_filter import Wanted
from lowkiq_lambda.operate.inspect.jobs import UNLIMITED
from lowkiq_lambda.operate.inspect.journal_level import JournalLevel
from lowkiq_lambda.operate.inspect.limits import QueueLimits
from lowkiq_lambda.operate.inspect.recovered import recovered
from lowkiq_lambda.operate.inspect.shard_details import explain_job, shard_details
from lowkiq_lambda.operate.inspect.tenants import tenants_of
from lowkiq_lambda.operate.inspect.whereabouts import whereabouts
from lowkiq_lambda.operate.queue_parts import QueueParts, StoredQueue, parts_of
from lowkiq_lambda.store.shard.codec import load_json
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.nodes import FAR

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.operate.acts.action_runner import ActionRunner
    from lowkiq_lambda.operate.acts.bulk_actions import Changed
    from lowkiq_lambda.operate.acts.editing import Edited, StoredPayload
    from lowkiq_lambda.operate.acts.replaying import Replayed
    from lowkiq_lambda.operate.acts.undoing import UndoableAction, Undone
    from lowkiq_lambda.operate.in_flight import InFlightIds
    from lowkiq_lambda.operate.morgue import MorgueIds
    from lowkiq_lambda.operate.verify.verifier import VerificationReport
    from lowkiq_lambda.operate.waiting import WaitingIds
    from lowkiq_lambda.reshard.resharding import Resharding
    from lowkiq_lambda.store.shard.reader import ShardReader
    from lowkiq_lambda.views.journal import Biography, Recovered
    from lowkiq_lambda.views.lateness import HourDigest, Lateness
    from lowkiq_lambda.views.queues import DamagedRecord, JobExplanation, ShardDetails, TenantOrder, Tenants
    from lowkiq_lambda.views.requests import JobRequest, Requested
    from lowkiq_lambda.views.runs import RunPage
    from lowkiq_lambda.views.verification import Verified

Unblocking: TypeAlias = Literal["retry", "skip"]


class QueueOperations:
    """The result of `app.operate(worker)`: three lists of ids, and acts on the queue as a whole.

    Acts on ids take `ids`, a `filter`, or `everything=True`, exactly one of the three, and return how many ids they
    changed. They leave ids in flight alone, and payloads that were pushed after the act had begun; a second call after
    an error does the rest.

    The first call that needs Redis looks up which shards the queue has, and these count for all calls of this object.
    Each method raises QueueMismatch if the queue was made with another declaration, and BackendError if Redis cannot
    serve.
    """

    def __init__(
        self,
        core: "Core",
        worker: type[Worker[Any]] | None,
        queue: Callable[[], StoredQueue],
        *,
        retry_for: float | None = None,
        is_glimpse: bool = False,
    ) -> None:
        self._core = core
        self._worker = worker
        self._found = queue
        self._retry_for: Final = core.config.redis_retry_for if retry_for is None else retry_for
        self._is_glimpse = is_glimpse
        self._made: QueueParts | None = None

    # The three lists

    @property
    def waiting(self) -> "WaitingIds":
        """The ids that wait, due now or later."""
        return self._parts.waiting

    @property
    def in_flight(self) -> "InFlightIds":
        """The ids in flight."""
        return self._parts.in_flight

    @property
    def morgue(self) -> "MorgueIds":
        """The dead jobs."""
        return self._parts.morgue

    # One id

    def explain(self, job_id: object) -> "JobExplanation":
        """Why the id runs, or does not run yet. Raises JobError for an invalid id."""
        return explain_job(self.reader, id_text(job_id), self.runner.errors.text)

    def biography(self, job_id: object) -> "Biography":
        """An id's pushes, claims and ends, as far as the journal has them, and where it is now.

        Raises JobError for an invalid id.
        """
        text, reader = id_text(job_id), self.reader
        jobs: list[JobView | MorgueJob] = [*self.in_flight.fetch([text]), *self.waiting.fetch([text])]
        jobs += self.morgue.fetch([text])
        failures = next((job.failures for job in jobs if job.failures), ())
        (now,) = whereabouts(reader, [text]).values()
        return biography(reader, reader.shards.homes_ever(text), text, now, failures)

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

    def undoable(self) -> list["UndoableAction"]:
        """The actions on ids that can be undone, the newest first."""
        from lowkiq_lambda.operate.acts.undoing import undoable  # noqa: PLC0415 - as above

        return undoable(self.reader)

    def payloads(self, job_id: object) -> list["StoredPayload"]:
        """The payloads of an id that wait or are dead, with the arrival numbers by which `edit` names them.

        Raises JobError for an invalid id.
        """
        from lowkiq_lambda.operate.acts.editing import stored_payloads  # noqa: PLC0415 - for those that edit alone

        return stored_payloads(self._parts.jobs, job_id, self._core.config.load_payload or load_json)

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

    def cancel(self, ids: Iterable[object], *, kill: bool = False, by: str = "") -> "Requested":
        """Stop ids for good, in any state: their payloads go, or to the morgue with `kill`.

        Payloads that wait go at once. The holder of an id in flight is asked: a job with a cursor stops at its next
        yield, a coroutine is cancelled if all ids of its batch are, and a plain function sees `batch.cancelled`. A run
        that ends well all the same is done; of any other its payloads go. Payloads that are pushed later stay. `by`:
        the operator's name. Raises JobError for an invalid id, and RequestsFull.
        """
        from lowkiq_lambda.operate.acts import requesting  # noqa: PLC0415 - for people

        return requesting.cancel(self.runner, ids, by, kill=kill)

    def pause_jobs(self, ids: Iterable[object], seconds: float | None = None, *, by: str = "") -> "Requested":
        """Pause ids, each by itself, for so many seconds (None: until `resume_jobs`); the later end wins.

        Payloads that wait under them, or are pushed, are due no sooner than the end. An id in flight is put back when
        its run ends and is not done, at the next yield of a job with a cursor. `by`: the operator's name. Raises
        JobError for an invalid id, ValueError if `seconds` is not above 0, and RequestsFull.
        """
        from lowkiq_lambda.operate.acts import requesting  # noqa: PLC0415 - for people

        return requesting.pause_jobs(self.runner, ids, pause_ends(seconds), by)

    def resume_jobs(self, ids: Iterable[object]) -> "Requested":
        """End the pauses of ids: they are due when they would have been, or now. Raises JobError."""
        from lowkiq_lambda.operate.acts import requesting  # noqa: PLC0415 - for people

        return requesting.resume_jobs(self.runner, ids)

    def requests(self) -> "list[JobRequest]":
        """The requests for single ids that the queue keeps, the oldest first."""
        from lowkiq_lambda.operate.inspect.requests import requests_of  # noqa: PLC0415 - for people

        return requests_of(self.reader)

    def forget_keys(self, pushed: Iterable[tuple[object, str]]) -> int:
        """Forget that jobs with these ids and keys, in pairs, were pushed: the next push of each counts again.

        Returns how many were remembered. Jobs that wait or run are left alone. Raises JobError for a bad id.
        """
        return forgetting.forget_keys(self.reader, pushed)

    def forget_marks(self, ids: Iterable[object]) -> int:
        """Forget up to which score ids were done, in a queue with `merge = "latest"`: any score is accepted again.

        Returns how many had been done. Raises JobError for a bad id, ValueError if the worker has another merge.
        """
        return forgetting.forget_marks(self.reader, ids)

    # The queue

    @property
    def limits(self) -> QueueLimits:
        """The limits of the queue: set at run time, and explained."""
        return QueueLimits(self.reader, self._declared)

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

    def shards(self) -> list["ShardDetails"]:
        """The shards and their holders."""
        return shard_details(self.reader)

    def why_late(self, limit: float | None = None) -> "Lateness":
        """Whether the queue is late, and why, in a sentence with its evidence.

        `limit`: seconds of lag from which it is late, None for the 120 of the doctor. The cause is judged by the last
        eight minutes, which housekeeping keeps once a queue is late; without them by the present, as far as it shows.
        """
        from lowkiq_lambda.operate.lateness.look import look_at  # noqa: PLC0415 - for people
        from lowkiq_lambda.store.shard.history import LATE  # noqa: PLC0415 - as above

        return look_at(self._core, self.reader, self._worker, LATE if limit is None else limit)

    def hours(self) -> "list[HourDigest]":
        """The hours of the queue that are over, the oldest first, of 35 days, as far as it was watched."""
        from lowkiq_lambda.operate.lateness.kept import read_hours  # noqa: PLC0415 - for people

        return read_hours(self._core.backend, self.reader.shards[0].queue_name, self._retry_for)

    def tenants(self, limit: int = 100, *, order: "TenantOrder" = "fair", tenant: str | None = None) -> "Tenants":
        """Tenants with waiting ids or a record, in their fair order.

        With `order="waiting"` the tenants with the most ids: each shard counts the ids of all its tenants for that, and
        names so many of them. With `tenant` only that one, if there is one. Empty without tenants of the worker. Raises
        ValueError for a limit below 1 or above 1,000, and for an unknown order.
        """
        return tenants_of(self.reader, limit, order, tenant)

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

    def recovered(self, limit: int = 100) -> list["Recovered"]:
        """Jobs recovered from holders that died, stopped or were evicted; newest first."""
        return recovered(self.reader, limit)

    def runs(  # noqa: PLR0913 - each narrows the list
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        id: object = None,
        outcome: str | Iterable[str] | None = None,
        fingerprint: str | None = None,
        release: str | None = None,
        holder: str | None = None,
        took_over: float | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> "RunPage":
        """The runs that the queue keeps (`Worker.keep_runs`), the newest first.

        `since`, `until`: those that ran at some moment between (Unix seconds). `took_over`: those that took longer than
        so many seconds. `after`: the `next` of the page before. Raises JobError for an invalid id, and ValueError.
        """
        from lowkiq_lambda.operate.inspect.run_filter import RunFilter  # noqa: PLC0415 - for those that keep runs
        from lowkiq_lambda.operate.inspect.runs import runs_of  # noqa: PLC0415 - as above

        run_filter = RunFilter.of(
            since=since,
            until=until,
            id=id,
            outcome=outcome,
            fingerprint=fingerprint,
            release=release,
            holder=holder,
            took_over=took_over,
        )
        return runs_of(self.reader, self.runner.errors, run_filter, limit, after)

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

    def verify(self) -> "VerificationReport":
        """Check the entries in the journals of the queue for violated promises, as `lowkiq verify` does.

        `journal("all")` switches full recording on.
        """
        from lowkiq_lambda.operate.verify.verifier import Verifier  # noqa: PLC0415 - for those that verify alone

        return Verifier(self.reader).report()

    def verified(self) -> "Verified | None":
        """The verification by housekeeping within the last day (`Config(verify=0.01)`); None if it has not begun."""
        from lowkiq_lambda.operate.verify.record import read_verified  # noqa: PLC0415 - for those that verify alone

        return read_verified(self.reader)

    def acknowledge_violations(self) -> int:
        """Forget the violations that housekeeping has found; how many they were. The evidence stays for its month."""
        from lowkiq_lambda.operate.verify.record import acknowledge  # noqa: PLC0415 - for those that verify alone

        return acknowledge(self.reader)

    def damaged(self, largest: int = 64 * 1024) -> list["DamagedRecord"]:
        """Records that were set aside as unreadable, by shard, the oldest first: `largest` bytes of each."""
        return damaged_records.damaged_records(self.reader, largest)

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

    # Below the face; private

    @property
    def reader(self) -> "ShardReader":
        """Reads the shards; private."""
        return self._parts.reader

    @property
    def runner(self) -> "ActionRunner":
        """Runs the steps of acts, for those that stop between two of them; private."""
        return self._parts.runner

    @property
    def _parts(self) -> QueueParts:
        # No lock: the look may wait for Redis, and two threads may look at once.
        if self._made is None:
            self._made = parts_of(self._core, self._found(), self._retry_for, is_glimpse=self._is_glimpse)
        return self._made

    @property
    def _declared(self) -> type[Worker[Any]]:
        if self._worker is None:
            raise TypeError("The app has no worker for this queue.")
        return self._worker
