"""`app.operate(worker)`: what operators see of one queue."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.declare.worker import Worker, auto_of
from lowkiq_lambda.jobs.job import JobView, MorgueJob, id_text
from lowkiq_lambda.operate.inspect import damaged_records
from lowkiq_lambda.operate.inspect.limits import QueueLimits
from lowkiq_lambda.operate.inspect.recovered import recovered
from lowkiq_lambda.operate.inspect.shard_details import explain_job, shard_details
from lowkiq_lambda.operate.inspect.tenants import tenants_of
from lowkiq_lambda.operate.queue_parts import QueueParts, StoredQueue, parts_of
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.store.shard.codec import load_json

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.operate.acts.action_runner import ActionRunner
    from lowkiq_lambda.operate.acts.editing import StoredPayload
    from lowkiq_lambda.operate.acts.undoing import UndoableAction
    from lowkiq_lambda.operate.auto.queue_auto import QueueAuto
    from lowkiq_lambda.operate.in_flight import InFlightIds
    from lowkiq_lambda.operate.morgue import MorgueIds
    from lowkiq_lambda.operate.verify.verifier import VerificationReport
    from lowkiq_lambda.operate.waiting import WaitingIds
    from lowkiq_lambda.store.shard.reader import ShardReader
    from lowkiq_lambda.views.jobs import JobExplanation
    from lowkiq_lambda.views.journal import Biography, Recovered
    from lowkiq_lambda.views.lateness import HourDigest, Lateness
    from lowkiq_lambda.views.requests import JobRequest
    from lowkiq_lambda.views.runs import RunPage
    from lowkiq_lambda.views.shards import DamagedRecord, ShardDetails, TenantOrder, Tenants
    from lowkiq_lambda.views.verification import Verified


class QueueLooks:
    """What is read of one queue: its three lists, its single ids, and the queue as a whole.

    The first call that needs Redis looks up which shards the queue has, and these count for all calls of this object.
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

    @property
    def limits(self) -> QueueLimits:
        """The limits of the queue: set at run time, and explained."""
        return QueueLimits(self.reader, self._declared)

    @property
    def auto(self) -> "QueueAuto":
        """The shards of a queue whose worker leaves their count to the library (docs/auto.md)."""
        from lowkiq_lambda.operate.auto.queue_auto import QueueAuto  # noqa: PLC0415 - only where a queue is "auto"

        return QueueAuto(self._core, self._declared)

    # One id

    def explain(self, job_id: object) -> "JobExplanation":
        """Why the id runs, or does not run yet. Raises JobError for an invalid id."""
        return explain_job(self.reader, id_text(job_id), self.runner.errors.text)

    def biography(self, job_id: object) -> "Biography":
        """An id's pushes, claims and ends, as far as the journal has them, and where it is now.

        Raises JobError for an invalid id.
        """
        from lowkiq_lambda.operate.inspect.biography import biography  # noqa: PLC0415 - for those that ask for it alone
        from lowkiq_lambda.operate.inspect.journal import read_journals, read_levels  # noqa: PLC0415 - as above
        from lowkiq_lambda.operate.inspect.whereabouts import whereabouts  # noqa: PLC0415 - as above

        text, reader = id_text(job_id), self.reader
        shards = reader.shards.homes_ever(text)
        with Together() as side:
            lists = [side.look(ids.fetch, [text]) for ids in (self.in_flight, self.waiting)]
            dead = side.look(self.morgue.fetch, [text])
            now = side.look(whereabouts, reader, [text])
            journals = side.look(read_journals, reader, shards)
            levels = side.look(read_levels, reader, [shards[-1]])
        jobs: list[JobView | MorgueJob] = [*chain.from_iterable(jobs.result for jobs in lists), *dead.result]
        return biography(
            text,
            journals.result,
            now=now.result[text],
            failures=next((job.failures for job in jobs if job.failures), ()),
            is_on=levels.result[0].until > reader.backend.now(shards[-1]),
        )

    def payloads(self, job_id: object) -> list["StoredPayload"]:
        """The payloads of an id that wait or are dead, with the arrival numbers by which `edit` names them.

        Raises JobError for an invalid id.
        """
        from lowkiq_lambda.operate.acts.editing import stored_payloads  # noqa: PLC0415 - for those that edit alone

        return stored_payloads(self._parts.jobs, job_id, self._core.config.load_payload or load_json)

    def undoable(self) -> list["UndoableAction"]:
        """The actions on ids that can be undone, the newest first."""
        from lowkiq_lambda.operate.acts.undoing import undoable  # noqa: PLC0415 - as above

        return undoable(self.reader)

    def requests(self) -> "list[JobRequest]":
        """The requests for single ids that the queue keeps, the oldest first."""
        from lowkiq_lambda.operate.inspect.requests import requests_of  # noqa: PLC0415 - for people

        return requests_of(self.reader)

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

    # The queue

    def shards(self) -> list["ShardDetails"]:
        """The shards and their holders."""
        return shard_details(self.reader)

    def tenants(self, limit: int = 100, *, order: "TenantOrder" = "fair", tenant: str | None = None) -> "Tenants":
        """Tenants with waiting ids or a record, in their fair order.

        With `order="waiting"` the tenants with the most ids: each shard counts the ids of all its tenants for that, and
        names so many of them. With `tenant` only that one, if there is one. Empty without tenants of the worker. Raises
        ValueError for a limit below 1 or above 1,000, and for an unknown order.
        """
        return tenants_of(self.reader, limit, order, tenant)

    def why_late(self, limit: float | None = None) -> "Lateness":
        """Whether the queue is late, and why, in a sentence with its evidence.

        `limit`: seconds of lag from which it is late, None for those of its `Auto`, else the 120 of the doctor. The
        cause is judged by the last eight minutes, which housekeeping keeps once a queue is late; without them by the
        present, as far as it shows.
        """
        from lowkiq_lambda.operate.lateness.look import look_at  # noqa: PLC0415 - for people
        from lowkiq_lambda.store.shard.history import LATE  # noqa: PLC0415 - as above

        auto = None if self._worker is None else auto_of(self._worker)
        usual = auto.lag if auto else LATE
        return look_at(self._core, self.reader, self._worker, usual if limit is None else limit)

    def hours(self) -> "list[HourDigest]":
        """The hours of the queue that are over, the oldest first, of 35 days, as far as it was watched."""
        from lowkiq_lambda.operate.lateness.kept import read_hours  # noqa: PLC0415 - for people

        return read_hours(self._core.backend, self.reader.shards[0].queue_name, self._retry_for)

    def recovered(self, limit: int = 100) -> list["Recovered"]:
        """Jobs recovered from holders that died, stopped or were evicted; newest first."""
        return recovered(self.reader, limit)

    def damaged(self, largest: int = 64 * 1024) -> list["DamagedRecord"]:
        """Records that were set aside as unreadable, by shard, the oldest first: `largest` bytes of each."""
        return damaged_records.damaged_records(self.reader, largest)

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
