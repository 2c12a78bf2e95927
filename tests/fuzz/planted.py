"""Handlers with a planted fault, and their mended twins."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from tests.fuzz.payloads import AddPoints, Status

app = Lowkiq()
_local = threading.local()
_PLACE = "file:planted?mode=memory&cache=shared"
_anchors: list[sqlite3.Connection] = []
points: dict[str, int] = {}
mails: list[str] = []
provider: dict[str, str] = {}
journal: dict[str, int] = {}
runs: dict[float, int] = {}
orders: dict[str, tuple[str, float]] = {}


def db() -> sqlite3.Connection:
    """A connection for each thread, as each process has its own."""
    if not hasattr(_local, "connection"):
        _local.connection = sqlite3.connect(_PLACE, uri=True)
    connection: sqlite3.Connection = _local.connection
    return connection


ADD = "INSERT INTO points VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET n = n + ?2"


@app.worker
class Counter(Worker[AddPoints]):
    """It adds without a record of what was added."""

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add."""
        for id, changes in batch.items():
            for change in changes:
                points[id] = points.get(id, 0) + change.points


@app.worker
class CounterMended(Worker[AddPoints]):
    """The record is in the same transaction."""

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add what was not added."""
        with db() as transaction:
            for id, changes in batch.items():
                for change in changes:
                    record = transaction.execute("INSERT OR IGNORE INTO applied VALUES (?, ?)", [id, change.change])
                    if record.rowcount:
                        transaction.execute(ADD, [id, change.points])


def send_mail(id: str, status: str, key: str | None = None) -> None:
    """The double of a provider of mail, which remembers keys."""
    if key is None or key not in provider:
        provider[str(key)] = status
        mails.append(f"{id} {status}")


@app.worker
class Mail(Worker[Status]):
    """The mail goes out before the commit."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Send."""
        for id in batch:
            for change, version in zip(batch[id], batch.job(id).scores, strict=True):
                key = [id, version]
                is_new = db().execute("SELECT 1 FROM sent WHERE id = ? AND version = ?", key).fetchone() is None
                if is_new:
                    send_mail(id, change.status)
                    with db() as transaction:
                        transaction.execute("INSERT INTO sent VALUES (?, ?)", key)


@app.worker
class MailAfterCommit(Worker[Status]):
    """The usual mend: now a mail may be missing."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Commit, and send."""
        for id in batch:
            for change, version in zip(batch[id], batch.job(id).scores, strict=True):
                with db() as transaction:
                    is_new = transaction.execute("INSERT OR IGNORE INTO sent VALUES (?, ?)", [id, version]).rowcount
                if is_new:
                    send_mail(id, change.status)


@app.worker
class MailMended(Worker[Status]):
    """The provider has a key."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Send, and commit."""
        for id in batch:
            for change, version in zip(batch[id], batch.job(id).scores, strict=True):
                send_mail(id, change.status, key=f"{id}-{version:.0f}")
                with db() as transaction:
                    transaction.execute("INSERT OR IGNORE INTO sent VALUES (?, ?)", [id, version])


@app.worker
class LastWins(Worker[Status]):
    """No version is compared."""

    merge = "max"

    def perform(self, batch: Batch[Status]) -> None:
        """Write."""
        with db() as transaction:
            for id, changes in batch.items():
                transaction.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, 0, 0)", [id, changes[-1].status])


@app.worker
class ReadThenWrite(Worker[Status]):
    """The version is compared, but not by the write."""

    merge = "max"

    def perform(self, batch: Batch[Status]) -> None:
        """Look, and write."""
        for id in batch:
            newest, version = batch[id][-1], batch.job(id).scores[-1]
            row = db().execute("SELECT version FROM orders WHERE id = ?", [id]).fetchone()
            if row is None or row[0] <= version:
                with db() as transaction:
                    record = [id, newest.status, version]
                    transaction.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?, 0)", record)


@app.worker
class AddsAndReads(Worker[Status]):
    """It counts without a record, and compares the version before the write: two faults."""

    merge = "latest"

    def perform(self, batch: Batch[Status]) -> None:
        """Count, look, and write."""
        for id in batch:
            newest, version = batch[id][-1], batch.job(id).scores[-1]
            runs[version] = runs.get(version, 0) + 1
            if orders.get(id, ("", 0.0))[1] <= version:
                orders[id] = newest.status, version


WRITE = """
    INSERT INTO orders VALUES (:id, :status, :version, :token)
    ON CONFLICT (id) DO UPDATE SET status = :status, version = :version, token = :token
    WHERE version <= :version AND token <= :token
"""


def write_newest(batch: Batch[Status]) -> None:
    """Let the write compare version and token."""
    with db() as transaction:
        for id in batch:
            newest, version = batch[id][-1], batch.job(id).scores[-1]
            row = {"id": id, "status": newest.status, "version": version, "token": batch.token}
            transaction.execute(WRITE, row)


@app.worker
class ThereAndBack(Worker[Status]):
    """The write is right, and the default merge folds a status that comes again into the first one."""

    def perform(self, batch: Batch[Status]) -> None:
        """Write."""
        write_newest(batch)


@app.worker
class LastWinsMended(Worker[Status]):
    """Both are right."""

    merge = "latest"

    def perform(self, batch: Batch[Status]) -> None:
        """Write."""
        write_newest(batch)


def add_one_by_one(batch: Batch[AddPoints], transaction: sqlite3.Connection) -> int:
    """Record each change; the sum of those that are new."""
    total = 0
    for id, changes in batch.items():
        for change in changes:
            record = transaction.execute("INSERT OR IGNORE INTO applied VALUES (?, ?)", [id, change.change])
            total += change.points if record.rowcount else 0
    return total


@app.worker
class Partial(Worker[AddPoints]):
    """It commits by item, and the total at the end."""

    batch_size = 10

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add."""
        with db() as transaction:
            total = add_one_by_one(batch, transaction)
        with db() as transaction:
            transaction.execute(ADD, ["all", total])


@app.worker
class PartialMended(Worker[AddPoints]):
    """One transaction."""

    batch_size = 10

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add."""
        with db() as transaction:
            transaction.execute(ADD, ["all", add_one_by_one(batch, transaction)])


@app.worker
class FirstOfMany(Worker[Status]):
    """Of several payloads it performs one."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Note."""
        for id, changes in batch.items():
            journal[f"{id} {changes[0].status}"] = 1


@app.worker
class CatchesAll(Worker[Status]):
    """It catches what no process can catch."""

    def perform(self, batch: Batch[Status]) -> None:
        """Note."""
        try:
            for id in batch:
                journal[id] = 1
        except BaseException:  # noqa: BLE001, S110 - the planted fault
            pass


@contextmanager
def failures_noted(id: str) -> Iterator[None]:
    """Note that the block came to no end."""
    is_done = False
    try:
        yield
        is_done = True
    finally:
        if not is_done:
            journal[f"{id} has failed"] = 1


@app.worker
class NotesFailures(Worker[Status]):
    """A note stays that something failed; a process that dies leaves none."""

    merge = "latest"

    def perform(self, batch: Batch[Status]) -> None:
        """Note."""
        for id in batch:
            with failures_noted(id):
                journal[id] = 1


@app.worker
class NotesFailuresAwaited(Worker[Status]):
    """The same, as a coroutine."""

    merge = "latest"

    async def perform(self, batch: Batch[Status]) -> None:
        """Note."""
        for id in batch:
            with failures_noted(id):
                await asyncio.sleep(0)
                journal[id] = 1


@app.worker
class NotesFailuresByPage(Worker[Status]):
    """The same, with a cursor."""

    merge = "latest"

    def perform_job(self, job: BatchJob[Status]) -> Iterator[int]:
        """One page."""
        with failures_noted(job.id):
            journal[job.id] = 1
        yield 1


@app.worker
class PushesItself(Worker[Status]):
    """Each of its jobs makes another one."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Push."""
        for id in batch:
            PushesItself.push(id, Status("new"), score=1)


@app.worker
class RefusesRepeats(Worker[Status]):
    """A repeat fails for ever."""

    max_retry_count = 1
    merge = "latest"

    def perform(self, batch: Batch[Status]) -> None:
        """Note."""
        for id in batch:
            version = batch.job(id).scores[-1]
            if f"{id} {version}" in journal:
                raise ValueError("performed already")
            journal[f"{id} {version}"] = 1


@app.worker
class Pages(Worker[Status]):
    """A job with a cursor that counts an item again when it goes on."""

    merge = "latest"

    def perform_job(self, job: BatchJob[Status]) -> Iterator[int]:
        """Three pages."""
        for page in range(job.cursor or 0, 3):
            journal[f"{job.id} {page}"] = journal.get(f"{job.id} {page}", 0) + 1
            yield page


@app.worker
class PagesMended(Worker[Status]):
    """A page is set and not counted."""

    merge = "latest"

    def perform_job(self, job: BatchJob[Status]) -> Iterator[int]:
        """Three pages."""
        for page in range(job.cursor or 0, 3):
            journal[f"{job.id} {page}"] = 1
            yield page + 1


@app.worker
class CountsPayloads(Worker[Status]):
    """It counts the payloads of its calls."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Count."""
        for id in batch:
            journal[id] = journal.get(id, 0) + len(batch[id])


@app.worker
class Awaited(Worker[Status]):
    """A coroutine, side by side with others, that counts runs."""

    concurrency = 4

    async def perform(self, batch: Batch[Status]) -> None:
        """Count."""
        for id in batch:
            await asyncio.sleep(0)
            journal[id] = journal.get(id, 0) + 1


@app.worker
class AwaitedMended(Worker[Status]):
    """A coroutine that notes."""

    concurrency = 4

    async def perform(self, batch: Batch[Status]) -> None:
        """Note."""
        for id in batch:
            await asyncio.sleep(0)
            journal[id] = 1


def add_once(transaction: sqlite3.Connection, id: str, change: AddPoints) -> None:
    """Add a change that is not recorded."""
    if transaction.execute("INSERT OR IGNORE INTO applied VALUES (?, ?)", [id, change.change]).rowcount:
        transaction.execute(ADD, [id, change.points])


@app.worker
class MarksFirst(Worker[AddPoints]):
    """It marks a change as done before it adds it."""

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Mark, and add."""
        for id, changes in batch.items():
            for position, change in enumerate(changes):
                batch.done(id, payload=position)
                with db() as transaction:
                    add_once(transaction, id, change)


@app.worker
class MarksMended(Worker[AddPoints]):
    """The mark comes after."""

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add, and mark."""
        for id, changes in batch.items():
            for position, change in enumerate(changes):
                with db() as transaction:
                    add_once(transaction, id, change)
                batch.done(id, payload=position)


@app.worker
class CallsTwice(Worker[Status]):
    """Two calls share a line: the process may die between them."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Note both."""
        for id in batch:
            for version in batch.job(id).scores:
                _ = note(f"{id} {version} first") or note(f"{id} {version} second")


def note(key: str) -> bool:
    """A double: whether it was there before; a first note that is there keeps the second from being made."""
    is_there = key in journal
    journal[key] = 1
    return is_there


def reset() -> None:
    """All is as it was."""
    for one in (points, mails, provider, journal, runs, orders):
        one.clear()
    if not _anchors:
        _anchors.append(sqlite3.connect(_PLACE, uri=True, check_same_thread=False))
        _anchors[0].executescript("""
            CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT, version REAL, token INTEGER);
            CREATE TABLE points (id TEXT PRIMARY KEY, n INTEGER);
            CREATE TABLE applied (id TEXT, change TEXT, PRIMARY KEY (id, change));
            CREATE TABLE sent (id TEXT, version REAL, PRIMARY KEY (id, version));
        """)
    with db() as transaction:
        for table in ("orders", "points", "applied", "sent"):
            transaction.execute(f"DELETE FROM {table}")  # noqa: S608 - one of these names


def rows(select: str) -> dict[Any, Any]:
    """A table of two columns."""
    return dict(db().execute(select).fetchall())
