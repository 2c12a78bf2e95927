"""The table of an outbox: one row for each job that has been committed, and not yet pushed."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import uuid4

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    and_,
    delete,
    func,
    insert,
    not_,
    select,
)
from sqlalchemy.orm import Session, sessionmaker

from lowkiq_lambda.push.checking import NO_PAYLOAD
from lowkiq_lambda.store.shard.chunks import NewJob
from lowkiq_lambda.store.shard.codec import dump_json

CHUNK_ROWS: Final = 500
CHUNK_BYTES: Final = 8 * 1024 * 1024
"""What is read at once: so many rows, or rows with so many bytes of payload."""
_FETCHED: Final = 50
"""Rows that a server hands out at once, so that large payloads are not all in memory."""
_ELSEWHERE: Final = ("id", "payload", "due_at", "delay", "expires_in", "expires_at")
"""Fields of a job that have a column of their own, or are told by the checked job."""


def _seconds(ttl: float | timedelta) -> float:
    return ttl.total_seconds() if isinstance(ttl, timedelta) else ttl


def _number(score: float | datetime) -> float:
    return score.timestamp() if isinstance(score, datetime) else float(score)


_AS_JSON: Final[Mapping[str, Callable[[Any], object]]] = {"score": _number, "key": str.__str__, "key_ttl": _seconds}
"""A check lets more types pass than JSON has."""


class Row(NamedTuple):
    """A job that waits in the table. `fields`: what else the job says, as JSON."""

    serial: int
    queue: str
    job_id: str
    payload: bytes
    fields: str


class Waiting(NamedTuple):
    """How many jobs have not been pushed yet, and for how many seconds the oldest has waited; 0.0 where none does."""

    rows: int
    age: float


class OutboxTable:
    """Writes and reads the rows. Each method with a session works in the transaction that this has begun."""

    def __init__(self, name: str, metadata: MetaData) -> None:
        self.table = Table(
            name,
            metadata,
            # SQLite numbers only what is an INTEGER, and without AUTOINCREMENT gives a number again that was deleted.
            Column("serial", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True),
            Column("queue", Text, nullable=False),
            Column("job_id", Text, nullable=False),
            Column("payload", LargeBinary, nullable=False),
            Column("fields", Text, nullable=False),
            Column("written_at", Double, nullable=False),
            sqlite_autoincrement=True,
        )

    def write(self, session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, made by `row_of`, which get their serials in this order."""
        session.execute(insert(self.table), rows)

    def chunk(
        self, sessions: sessionmaker[Session], queues: Collection[str], besides: Mapping[str, Collection[str]]
    ) -> list[Row]:
        """The first rows of these queues, by serial, but for those of some ids. The transaction is over at the end.

        `besides`: ids by their queue.
        """
        columns = self.table.c
        blocked = [and_(columns.queue == queue, columns.job_id.in_(ids)) for queue, ids in besides.items()]
        query = (
            select(columns.serial, columns.queue, columns.job_id, columns.payload, columns.fields)
            .where(columns.queue.in_(queues), *(not_(of_queue) for of_queue in blocked))
            .order_by(columns.serial)
            .limit(CHUNK_ROWS)
            .execution_options(yield_per=_FETCHED)
        )
        rows, size = list[Row](), 0
        with sessions() as session:
            for entry in session.execute(query):
                row = Row(*entry)
                rows.append(row)
                size += len(row.payload)
                if size >= CHUNK_BYTES:
                    break
        return rows

    def delete(self, sessions: sessionmaker[Session], serials: Collection[int]) -> None:
        """Delete rows. A row that is gone already is not an error."""
        with sessions() as session, session.begin():
            session.execute(delete(self.table).where(self.table.c.serial.in_(serials)))

    def counts_beside(self, sessions: sessionmaker[Session], queues: Collection[str]) -> dict[str, int]:
        """How many rows there are of queues other than these, by name."""
        queue = self.table.c.queue
        query = select(queue, func.count().label("rows")).where(queue.not_in(queues)).group_by(queue)
        with sessions() as session:
            return {count.queue: count.rows for count in session.execute(query)}

    def waiting(self, session: Session, now: float) -> Waiting:
        """How much waits at this time (Unix seconds)."""
        rows, oldest = session.execute(select(func.count(), func.min(self.table.c.written_at))).one()
        return Waiting(rows, max(0.0, now - oldest) if rows else 0.0)


def row_of(
    queue: str, job: Mapping[str, Any], new: NewJob, dump: Callable[[object], bytes], now: float
) -> dict[str, Any]:
    """What is kept of a job that has been checked: all that it says, seconds from now as the times that they meant."""
    fields = {name: _AS_JSON[name](value) if name in _AS_JSON else value for name, value in job.items()}
    for name in _ELSEWHERE:
        fields.pop(name, None)
    if new.due_at is not None:
        fields["due_at"] = new.due_at
    if new.expires_at is not None:
        fields["expires_at"] = new.expires_at
    # Not made of the serial: a database that is restored gives serials again.
    fields.setdefault("key", f"outbox:{uuid4().hex}")
    return {
        "queue": queue,
        "job_id": new.id,
        "payload": dump(job.get("payload", NO_PAYLOAD)),
        "fields": dump_json(fields).decode(),
        "written_at": now,
    }


def job_of(row: Row, load: Callable[[bytes], object]) -> dict[str, Any]:
    """The job as it is pushed. One without a score comes by its serial. Raises what `load` raises."""
    fields: dict[str, Any] = msgspec.json.decode(row.fields)
    return {"score": row.serial, **fields, "id": row.job_id, "payload": load(row.payload)}
