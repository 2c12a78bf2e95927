"""Handlers with a planted fault on SQLAlchemy, and their mended twins; `use` sets their engine."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Engine, MetaData, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.testing.fuzz.options import FuzzOptions
from lowkiq_lambda.testing.fuzz.oracle import Effect
from tests.fuzz.payloads import ADDED, STATUSES, AddPoints, Status

app = Lowkiq()
place = SimpleNamespace()
mails: list[str] = []
provider: set[str] = set()


class StoredBase(DeclarativeBase):
    """The tables."""

    metadata = MetaData()


class StoredOrder(StoredBase):
    """The state of an order."""

    __tablename__ = "fuzz_orders"
    id: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]
    version: Mapped[float]
    token: Mapped[int] = mapped_column(BigInteger, default=0)


class StoredAccount(StoredBase):
    """The points of an account."""

    __tablename__ = "fuzz_points"
    id: Mapped[str] = mapped_column(primary_key=True)
    total: Mapped[int]


class StoredChange(StoredBase):
    """A change that is in the points."""

    __tablename__ = "fuzz_applied"
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    change: Mapped[str] = mapped_column(unique=True)


class StoredMail(StoredBase):
    """A mail that was sent."""

    __tablename__ = "fuzz_sent"
    key: Mapped[str] = mapped_column(primary_key=True)


def use(engine: Engine) -> None:
    """Let the handlers use this engine, with new tables."""
    place.engine = engine
    drop()
    StoredBase.metadata.create_all(engine)


def drop() -> None:
    """Remove the tables."""
    StoredBase.metadata.drop_all(place.engine)


@contextmanager
def transaction() -> Iterator[Connection]:
    """One transaction."""
    with place.engine.begin() as connection:
        yield connection


def rows(select: str) -> dict[Any, Any]:
    """A table of two columns."""
    with transaction() as connection:
        return {row[0]: row[1] for row in connection.execute(text(select))}


ADD = text("""
    INSERT INTO fuzz_points (id, total) VALUES (:id, :points)
    ON CONFLICT (id) DO UPDATE SET total = fuzz_points.total + :points
""")
APPLY = text("INSERT INTO fuzz_applied (change) VALUES (:change) ON CONFLICT DO NOTHING")
NOTE_SENT = text("INSERT INTO fuzz_sent (key) VALUES (:key) ON CONFLICT DO NOTHING")
WRITE = text("""
    INSERT INTO fuzz_orders (id, status, version, token) VALUES (:id, :status, :version, :token)
    ON CONFLICT (id) DO UPDATE SET status = :status, version = :version, token = :token
    WHERE fuzz_orders.version <= :version AND fuzz_orders.token <= :token
""")


@app.worker
class CounterOnEngine(Worker[AddPoints]):
    """It adds without a record."""

    merge = "never"

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add, by the ORM."""
        for id, changes in batch.items():
            with Session(place.engine) as session:
                account = session.get(StoredAccount, id, with_for_update=True) or StoredAccount(id=id, total=0)
                account.total += sum(change.points for change in changes)
                session.add(account)
                session.commit()


@app.worker
class CounterOnEngineMended(Worker[AddPoints]):
    """The record is in the same transaction."""

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add what was not added."""
        with transaction() as connection:
            for id, changes in batch.items():
                for change in changes:
                    if connection.execute(APPLY, {"change": f"{id} {change.change}"}).rowcount:
                        connection.execute(ADD, {"id": id, "points": change.points})


def send_mail(text: str, key: str | None = None) -> None:
    """The double of a provider, which remembers keys."""
    if key is None or key not in provider:
        mails.append(text)
    provider.add(str(key))


def _mails(batch: Batch[Status]) -> Iterator[tuple[str, str]]:
    for id in batch:
        for change, version in zip(batch[id], batch.job(id).scores, strict=True):
            yield f"{id} {change.status}", f"{id} {version:.0f}"


@app.worker
class MailOnEngine(Worker[Status]):
    """The mail goes out before the commit."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Send."""
        for mail, key in _mails(batch):
            with transaction() as connection:
                if connection.execute(NOTE_SENT, {"key": key}).rowcount:
                    send_mail(mail)


@app.worker
class MailAfterCommitOnEngine(Worker[Status]):
    """The mail goes out after the commit, in the same line: only a point around the commit shows it."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Note, and send."""
        for mail, key in _mails(batch):
            _ = note_sent(key) and send_mail(mail)  # type: ignore[func-returns-value]  # all in one line


def note_sent(key: str) -> bool:
    """Whether the key was new. No line comes between its commit and its caller."""
    with transaction() as connection:
        return bool(connection.execute(NOTE_SENT, {"key": key}).rowcount)


@app.worker
class MailOnEngineMended(Worker[Status]):
    """The provider has a key."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        """Send, and note."""
        for mail, key in _mails(batch):
            send_mail(mail, key)
            note_sent(key)


@app.worker
class LastWinsOnEngine(Worker[Status]):
    """No version is compared."""

    merge = "max"

    def perform(self, batch: Batch[Status]) -> None:
        """Write, by the ORM."""
        with Session(place.engine) as session, session.begin():
            for id, changes in batch.items():
                session.merge(StoredOrder(id=id, status=changes[-1].status, version=0.0, token=0))


@app.worker
class ReadThenWriteOnEngine(Worker[Status]):
    """The version is compared, but not by the write."""

    merge = "max"

    def perform(self, batch: Batch[Status]) -> None:
        """Look, and write."""
        for id in batch:
            newest, version = batch[id][-1], batch.job(id).scores[-1]
            with Session(place.engine) as session:
                order = session.get(StoredOrder, id)
            if order is None or order.version <= version:
                with Session(place.engine) as session, session.begin():
                    session.merge(StoredOrder(id=id, status=newest.status, version=version, token=0))


@app.worker
class LastWinsOnEngineMended(Worker[Status]):
    """The write compares version and token."""

    merge = "latest"

    def perform(self, batch: Batch[Status]) -> None:
        """Write."""
        with transaction() as connection:
            for id in batch:
                newest, version = batch[id][-1], batch.job(id).scores[-1]
                row = {"id": id, "status": newest.status, "version": version, "token": batch.token}
                connection.execute(WRITE, row)


@app.worker
class PartialOnEngine(Worker[AddPoints]):
    """It commits the records, and the total in another transaction."""

    batch_size = 10

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add."""
        with transaction() as connection:
            total = _add_one_by_one(batch, connection)
        with transaction() as connection:
            connection.execute(ADD, {"id": "all", "points": total})


@app.worker
class PartialOnEngineMended(Worker[AddPoints]):
    """One transaction."""

    batch_size = 10

    def perform(self, batch: Batch[AddPoints]) -> None:
        """Add."""
        with transaction() as connection:
            connection.execute(ADD, {"id": "all", "points": _add_one_by_one(batch, connection)})


def _add_one_by_one(batch: Batch[AddPoints], connection: Connection) -> int:
    total = 0
    for id, changes in batch.items():
        for change in changes:
            if connection.execute(APPLY, {"change": f"{id} {change.change}"}).rowcount:
                total += change.points
    return total


PLANTED: Final = {
    "CounterOnEngine": "repeat",
    "MailOnEngine": "effect mail",
    "MailAfterCommitOnEngine": "effect mail",
    "LastWinsOnEngine": "late",
    "ReadThenWriteOnEngine": "two holders",
    "PartialOnEngine": "repeat",
}
MENDED: Final = ["CounterOnEngineMended", "MailOnEngineMended", "LastWinsOnEngineMended", "PartialOnEngineMended"]


def options_of(name: str, **more: Any) -> FuzzOptions:
    """Those of a handler, with others beside."""
    if "Mail" in name:
        options: dict[str, Any] = {
            "effects": {"mail": Effect(lambda: mails)},
            "outside": [send_mail],
            "payloads": STATUSES,
        }
    elif "Counter" in name or "Partial" in name:
        options = {"state": lambda: rows("SELECT id, total FROM fuzz_points"), "payloads": ADDED}
    else:
        options = {"state": lambda: rows("SELECT id, status FROM fuzz_orders"), "payloads": STATUSES}
    common = {"isolate": (place.engine, mails, provider), "scenarios": 100}
    return FuzzOptions(**{**common, **options, **more})  # type: ignore[typeddict-item]  # a dict by its names
