"""Jobs that are written in a transaction, and pushed by a worker once it has committed."""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from msgspec import UNSET
from sqlalchemy import MetaData, Table, event
from sqlalchemy.orm import Session, SessionTransaction, scoped_session, sessionmaker

from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.errors import DeclarationError, JobError
from lowkiq_lambda.contrib.checking import check_jobs
from lowkiq_lambda.contrib.outbox.relay import Relay
from lowkiq_lambda.contrib.outbox.rows import OutboxTable, Waiting, row_of
from lowkiq_lambda.declare.options import JobOptions
from lowkiq_lambda.declare.pushable import AnyWorker, one_job
from lowkiq_lambda.declare.worker import Worker, shard_index, worker_of
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.push.pushes import push_within
from lowkiq_lambda.settings.protocols import Jobs
from lowkiq_lambda.store.shard.codec import dump_json

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.declare.options import Id

logger = logging.getLogger(__name__)

RELAY_ID: Final = "outbox"
"""The only id of the relay's queue: as an id never runs twice at once, there is one relay at a time."""
SWEEP_EVERY: Final = 60.0
"""Seconds between two looks for what a lost wake-up has left."""
LONGEST_RETRY: Final = 10.0
"""Seconds after which a relay that failed runs again, at most: new rows wait for that, too."""
REST: Final = 10.0
"""Seconds for which commits wake nobody after a wake-up that failed."""


class Outbox:
    """The outbox of an app in one database.

    `sessions`: makes the sessions of the relay, which need a synchronous engine. `metadata`: where the table belongs,
    so that what makes your tables makes it too. `name`: that of the relay's queue; the table is `lowkiq_` and the name.
    `clock` is for tests.
    """

    def __init__(
        self,
        app: "Lowkiq",
        sessions: sessionmaker[Session],
        *,
        metadata: MetaData | None = None,
        name: str = "outbox",
        clock: Clock | None = None,
    ) -> None:
        self._app = app
        self._clock = clock or SystemClock()
        self._rows = OutboxTable(f"lowkiq_{name}", metadata or MetaData())
        self._relay = Relay(app, sessions, self._rows)
        self._rests_until = 0.0
        self._mark = f"lowkiq_lambda {name}"
        self.worker = _declare(app, name, self._relay)
        """What pushes the rows: a worker of the app."""

    @property
    def table(self) -> Table:
        """The table, to be made with the others of the database."""
        return self._rows.table

    def push_many(
        self,
        session: "Session | scoped_session[Session]",
        worker: AnyWorker,
        jobs: Jobs,
    ) -> list[Pushed]:
        """Write jobs in the session's transaction; they are pushed once it has committed, else never.

        The session's changes are flushed before, so that the rows of the entities are locked: then the order of
        the jobs of an id is that of their commits. Takes jobs as `push_many` does, and raises JobError as it does;
        DeclarationError for a worker of another app, TypeError for an object that is not a session.
        """
        if isinstance(jobs, dict):
            raise JobError("push_many takes a list of jobs, not one job: write push_many(session, worker, [{...}])")
        session = _plain(session)
        declared = worker_of(worker)
        if self._app.core.queues.worker_named(declared.queue_name) is not declared:
            raise DeclarationError(f"{declared.__name__} is not a worker of this app: declare it with its @app.worker.")
        session.flush()
        pushed = push_within(self._app.client_middlewares, partial(self._write, session), declared, jobs)
        self._wake_after_commit(session)
        return pushed

    def push(
        self,
        session: "Session | scoped_session[Session]",
        worker: AnyWorker,
        id: "Id",
        payload: object = UNSET,
        **options: Unpack[JobOptions],
    ) -> Pushed:
        """Write one job in the session's transaction, as `push_many` does with several."""
        return self.push_many(session, worker, [one_job(id, payload, options)])[0]

    def sweep(self) -> int:
        """Push all that waits, here and now; how many chunks it took.

        Harmless beside the relay: what both push is applied once. Raises OutboxBlocked where something had to stay.
        """
        return sum(1 for _ in self._relay.chunks())

    def waiting(self, session: "Session | scoped_session[Session]") -> Waiting:
        """How many jobs have not been pushed yet, and for how long the oldest has waited."""
        return self._rows.waiting(_plain(session), self._clock.time())

    def _write(self, session: Session, worker: type[Worker[Any]], jobs: Jobs) -> list[Pushed]:
        jobs, now = list(jobs), self._clock.time()
        new_jobs = check_jobs(self._app, worker, jobs, now)
        dump = self._app.config.dump_payload or dump_json
        rows = [row_of(worker.queue_name, job, new, dump, now) for job, new in zip(jobs, new_jobs, strict=True)]
        if rows:
            self._rows.write(session, rows)
        return [
            Pushed(new.id, shard_index(worker, new.id), merged=False, due_at=new.due_at or now, buffered=True)
            for new in new_jobs
        ]

    def _wake_after_commit(self, session: Session) -> None:
        session.info.setdefault(self._mark, False)
        if not event.contains(session, "after_commit", self._note_commit):
            event.listen(session, "after_commit", self._note_commit)
            event.listen(session, "after_transaction_end", self._end)

    def _note_commit(self, session: Session) -> None:
        # The release of a savepoint is told as a commit, too.
        if self._mark in session.info and not session.in_nested_transaction():
            session.info[self._mark] = True

    def _end(self, session: Session, transaction: SessionTransaction) -> None:
        # By then the connection is back in its pool: it is not kept while Redis is waited for.
        if transaction.parent is None and session.info.pop(self._mark, False):
            self._wake()

    def _wake(self) -> None:
        try:
            asyncio.get_running_loop().run_in_executor(None, self._push_wake_up)
        except RuntimeError:
            # No loop runs on this thread, or it takes nothing any more.
            self._push_wake_up()

    def _push_wake_up(self) -> None:
        """Have the relay run. A wake-up that is lost loses nothing: the schedule brings another."""
        if self._clock.monotonic() < self._rests_until:
            return
        try:
            self._app.core.pushes.push_past_middlewares(self.worker, [{"id": RELAY_ID}])
        except Exception as error:  # noqa: BLE001 - the transaction has committed, and its caller must not learn otherwise
            self._rests_until = self._clock.monotonic() + REST
            logger.warning("the relay of an outbox could not be woken, and will run at its next time: %s", error)


def _declare(app: "Lowkiq", name: str, relay: Relay) -> type[Worker[Any]]:
    """The worker that runs the relay, and the schedule entry that runs it without a wake-up."""

    class OutboxRelay(Worker):
        shards_count = 1
        queue_name = name

        def retry_in(self, retry_count: int) -> float:
            return min(2.0**retry_count, LONGEST_RETRY)

        def perform_job(self, _job: Any) -> Iterator[None]:  # noqa: ANN401 - a BatchJob, which it has no use for
            # It yields no cursor: where it goes on it begins with the oldest row, as what was pushed is gone.
            yield from relay.chunks()

    app.worker(OutboxRelay)
    app.every(SWEEP_EVERY, OutboxRelay, id=RELAY_ID, description="pushes what an outbox still has")
    return OutboxRelay


def _plain(session: "Session | scoped_session[Session]") -> Session:
    """The session itself. Raises TypeError for another object."""
    value: object = session() if isinstance(session, scoped_session) else session
    if isinstance(value, Session):
        return value
    raise TypeError(
        f"an outbox takes a Session, not {type(value).__name__}: of an AsyncSession, write "
        "`await session.run_sync(outbox.push, worker, jobs)`"
    )
