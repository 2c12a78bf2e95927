"""A shop whose orders change in a database, each change with a job in the same transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, MetaData, create_engine, event, func, select, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.contrib.outbox import Outbox
from tests.kit.handlers import Notes
from tests.kit.stored import State, stored
from tests.kit.workers import declare


class Base(DeclarativeBase):
    """What has a table."""


class Order(Base):
    """An order, and how often it has changed."""

    __tablename__ = "orders"

    id: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(default=0)


def engine_for(url: str) -> Engine:
    """Connections to the database; those to SQLite wait for one another."""
    if not url.startswith("sqlite"):
        return create_engine(url)
    engine = create_engine(url, connect_args={"timeout": 60})
    # A journal that readers do not wait for.
    event.listen(engine, "connect", lambda connection, _record: connection.execute("PRAGMA journal_mode=WAL"))
    return engine


class OrderShop:
    """An app with one worker, which notes what it performs, and an outbox in a database of its own."""

    def __init__(self, app: Lowkiq, engine: Engine, queue_name: str, clock: Clock | None = None) -> None:
        self.app = app
        self.engine = engine
        self.notes = Notes()
        # Equal payloads do not merge: what is pushed twice shows.
        self.worker = declare(app, queue_name, self.notes, merge="never", batch_size=10)
        self.sessions = sessionmaker(engine)
        self.metadata = MetaData()
        self.outbox = Outbox(app, self.sessions, metadata=self.metadata, name=f"outbox-{queue_name}", clock=clock)

    def make_tables(self, *orders: str) -> None:
        """Make the tables, with orders of these ids."""
        Base.metadata.create_all(self.engine)
        self.metadata.create_all(self.engine)
        with self.sessions.begin() as session:
            session.add_all([Order(id=order, version=0) for order in orders])

    def drop_tables(self) -> None:
        """Leave the database as it was."""
        self.metadata.drop_all(self.engine)
        Base.metadata.drop_all(self.engine)
        self.engine.dispose()

    def push(self, *jobs: dict[str, Any]) -> None:
        """Commit a transaction that writes the jobs and nothing else."""
        with self.sessions.begin() as session:
            self.outbox.push_many(session, self.worker, jobs)

    def change(self, order: str) -> None:
        """Commit a change of the order: its new version is the payload of the job."""
        with self.sessions.begin() as session:
            changed = update(Order).where(Order.id == order).values(version=Order.version + 1)
            version = session.scalar(changed.returning(Order.version))
            self.outbox.push_many(session, self.worker, [{"id": order, "payload": version}])

    @property
    def rows(self) -> int:
        """How many jobs wait in the table."""
        with self.sessions() as session:
            return session.scalar(select(func.count()).select_from(self.outbox.table)) or 0

    @property
    def payloads(self) -> dict[str, list[Any]]:
        """What was performed, by id, in order."""
        performed: dict[str, list[Any]] = {}
        for batch in self.notes.batches:
            for job_id, payloads in batch.items():
                performed.setdefault(job_id, []).extend(payloads)
        return performed

    def state(self, worker: type[Worker] | None = None) -> State:
        """The first shard of the worker in Redis."""
        client: Any = self.app.core.backend.client
        return stored(client, self.app.core.queues.agreed(worker or self.worker).shards[0])

    @property
    def woken(self) -> bool:
        """Whether a job waits for the relay."""
        return bool(self.state(self.outbox.worker)["waiting"])


@contextmanager
def opened(shop: OrderShop, *orders: str) -> Iterator[OrderShop]:
    """The shop with its tables, until the end of the block."""
    shop.make_tables(*orders)
    try:
        yield shop
    finally:
        shop.drop_tables()


def session_with(shop: OrderShop, *jobs: dict[str, Any]) -> Session:
    """A session that has written the jobs, and not yet committed."""
    session = shop.sessions()
    shop.outbox.push_many(session, shop.worker, jobs)
    return session
