"""Loops over records: cases of job-iteration 1.15.0, Shopify's library for Ruby, translated to SQLAlchemy on SQLite."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.iterate import Pairs, chunks, key_ranges, keyset
from lowkiq_lambda.iterate import sqlalchemy as rows_of
from lowkiq_lambda.testing import ManualClock
from tests.peers.counting import CountingItems, drain, start

IDS = [*range(1, 11)]
AT = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class Peers(DeclarativeBase):
    """The tables of this file."""


class Product(Peers):
    """One of ten; `changed_at` has their order reversed, by twos."""

    __tablename__ = "products"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    changed_at: Mapped[datetime]
    sold_on: Mapped[date]


class TravelRoute(Peers):
    """A key of two columns."""

    __tablename__ = "travel_routes"
    origin: Mapped[str] = mapped_column(primary_key=True)
    destination: Mapped[str] = mapped_column(primary_key=True)


@pytest.fixture
def engine() -> Iterator[Engine]:
    """The database."""
    made = create_engine("sqlite://")
    Peers.metadata.create_all(made)
    yield made
    made.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    """The products are in it."""
    with Session(engine, expire_on_commit=False) as opened:
        for id in IDS:
            changed_at = AT - timedelta(microseconds=id // 2)
            opened.add(Product(id=id, name=f"p{id}", changed_at=changed_at, sold_on=AT.date() + timedelta(id)))
        opened.commit()
        yield opened


@pytest.fixture
def statements(session: Session) -> list[str]:
    """What is asked of the database."""
    asked: list[str] = []
    event.listen(session.get_bind(), "before_cursor_execute", lambda *details: asked.append(details[2]))
    return asked


def products(session: Session, after: Any = None, **options: Any) -> Pairs[Product, list[Any]]:
    """The products by their ids."""
    return rows_of(session, select(Product), Product.id, after, **options)


def ids_of(batches: Any) -> list[list[int]]:
    """Those of the products of each batch."""
    return [[product.id for product in batch] for batch, _ in batches]


def test_every_record_comes_with_its_cursor(session: Session) -> None:
    """Peer: test/unit/active_record_enumerator_test.rb, "#records yields every record with their cursor position"."""
    assert [(id, [id]) for id in IDS] == [(product.id, cursor) for product, cursor in products(session, size=3)]


def test_an_empty_table_has_none(session: Session) -> None:
    """Peer: test/unit/active_record_enumerator_test.rb, "#records doesn't yield anything if the relation is empty"."""
    assert [] == list(rows_of(session, select(TravelRoute), [TravelRoute.origin, TravelRoute.destination]))


def test_batches_come_with_the_cursor_of_their_last_record(session: Session) -> None:
    """Batches come with the cursor of their last record.

    Peer: test/unit/active_record_enumerator_test.rb, "#batches yeilds batches of records with the last record's
    cursor position".
    """
    batch, cursor = next(chunks(products(session), 3))

    assert ([1, 2, 3], [3]) == ([product.id for product in batch], cursor)


def test_the_size_of_batches_may_be_chosen(session: Session) -> None:
    """Peer: test/unit/active_record_enumerator_test.rb, "batch size is configurable"."""
    assert [IDS[:4], IDS[4:8], IDS[8:]] == ids_of(chunks(products(session), 4))


def test_columns_may_be_chosen(session: Session) -> None:
    """Differs: the column has to tell rows apart.

    Peer: test/unit/active_record_enumerator_test.rb, "columns are configurable".
    """
    by = [Product.changed_at, Product.id]

    assert [10, 8, 9, 6, 7] == [product.id for product, _ in rows_of(session, select(Product), by)][:5]
    with pytest.raises(ValueError, match="in changed_at: add a column that tells them apart"):
        list(rows_of(session, select(Product), Product.changed_at))


def test_a_cursor_resumes(session: Session) -> None:
    """Peer: test/unit/active_record_enumerator_test.rb, "cursor can be used to resume"."""
    assert [[2, 3]] == ids_of(chunks(products(session, [1]), 2))[:1]


def test_a_cursor_of_several_columns_resumes(session: Session) -> None:
    """Peer: test/unit/active_record_enumerator_test.rb, "cursor can be used to resume on multiple columns"."""
    by = [Product.changed_at, Product.id]
    _, cursor = next(chunks(rows_of(session, select(Product), by), 2))

    assert [AT - timedelta(microseconds=4), 8] == cursor
    assert [9, 6, 7, 4, 5, 2, 3, 1] == [product.id for product, _ in rows_of(session, select(Product), by, cursor)]


def test_times_of_another_zone_are_the_same_place() -> None:
    """Differs: no option, as instants are kept in UTC.

    Peer: test/unit/active_record_enumerator_test.rb, "using custom timezone results in a cursor with the correct
    offset".
    """
    at = datetime(2026, 1, 1, 7, tzinfo=UTC)

    _, cursor = next(keyset(lambda *_: [(at.astimezone(), at.astimezone(), 0)], "SELECT at FROM t", "at"))

    assert [at] == cursor


def test_days_are_cursors(session: Session) -> None:
    """Differs: they come back as days, not texts.

    Peer: test/unit/active_record_enumerator_test.rb, "cursor can be used to resume on date column".
    """
    by = [Product.sold_on, Product.id]
    after = [AT.date() + timedelta(8), 8]

    assert [9, 10] == [product.id for product, _ in rows_of(session, select(Product), by, after)]


def test_a_loop_knows_how_many_rows_there_are(session: Session) -> None:
    """Peer: test/unit/active_record_enumerator_test.rb, "#size returns the number of items in the relation"."""
    assert 10 == products(session).total


def test_batches_know_how_many_they_are(session: Session) -> None:
    """Peer: test/unit/active_record_batch_enumerator_test.rb, "#size returns size of the Enumerator"."""
    assert (5, 4) == (chunks(products(session), 2).total, chunks(products(session), 3).total)


def test_conditions_stay(session: Session) -> None:
    """Conditions stay.

    Peer: test/unit/active_record_batch_enumerator_test.rb, "#each yields relations that preserve the existing
    conditions (like ActiveRecord::Batches)".
    """
    statement = select(Product).where(Product.name.in_(["p1", "p2"]) | (Product.id == 9))

    assert [[1, 2], [9]] == ids_of(chunks(rows_of(session, statement, Product.id), 2))


def test_a_batch_may_become_a_statement(session: Session) -> None:
    """Differs: a batch is a list, and a statement for it is one line.

    Peer: test/unit/active_record_batch_enumerator_test.rb, "#each yields unloaded relations".
    """
    ids = rows_of(session, select(Product.id), Product.id, size=3)
    batch = [row for row, _ in ids][:3]

    assert ["p1", "p2", "p3"] == [*session.scalars(select(Product.name).where(Product.id.in_(batch)))]


def test_a_page_is_one_statement(session: Session, statements: list[str]) -> None:
    """And one more finds the end.

    Peer: test/unit/active_record_batch_enumerator_test.rb, "one query performed per batch, plus an additional one
    for the empty cursor".
    """
    assert 10 == len(list(products(session, size=5)))
    # Two pages, one behind the last row.
    assert 3 == len(statements)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(select(Product).limit(5), id="test_relation_with_limit"),
        pytest.param(select(Product).order_by(Product.name), id="test_relation_with_order"),
    ],
)
def test_an_order_or_a_limit_of_its_own_is_refused(session: Session, statement: Any) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, the cases of the ids."""
    with pytest.raises(ValueError, match="takes a select without"):
        rows_of(session, statement, Product.id)


@pytest.mark.parametrize("sql", ["SELECT id FROM products ORDER BY id", "SELECT id FROM products LIMIT 5"])
def test_an_order_or_a_limit_in_sql_is_refused(sql: str) -> None:
    """An order or a limit in sql is refused.

    Peer: test/unit/active_record_batch_enumerator_test.rb, "enumerator will raise ConditionNotSupportedError if the
    relation is ordered".
    """
    with pytest.raises(ValueError, match="but keyset adds the order itself"):
        keyset(lambda *_: [], sql, "id")


def test_a_key_of_two_columns(session: Session) -> None:
    """Peer: test/unit/active_record_enumerator_test.rb, "enumerator for a relation with a composite primary key"."""
    session.add_all([TravelRoute(origin=one, destination=other) for one, other in ("BA", "AC", "AB")])
    routes = rows_of(session, select(TravelRoute), [TravelRoute.origin, TravelRoute.destination], size=2)

    assert [["A", "B"], ["A", "C"], ["B", "A"]] == [cursor for _, cursor in routes]


def ranges_of(session: Session, sql: str, by: Any) -> list[list[Any]]:
    """Three ranges."""

    def execute(query: str, _params: list[Any]) -> list[Any]:
        return [*session.connection().exec_driver_sql(query)]

    return key_ranges(execute, sql, by, 3)


def test_records_are_divided_evenly(session: Session) -> None:
    """Records are divided evenly.

    Peer: test/unit/active_record_enumerator_test.rb, "parallel partition covers the relation with near-equal
    partitions".
    """
    ranges = ranges_of(session, "SELECT id FROM products", "id")

    assert [[1, 2, 3], [4, 5, 6], [7, 8, 9, 10]] == [
        [product.id for product, _ in products(session, after, until=until)] for after, until in ranges
    ]


@pytest.mark.parametrize(
    "by",
    [
        pytest.param("name", id="parallel partition raises ArgumentError for non-integer primary key"),
        pytest.param(("changed_at", "id"), id="parallel partition raises ArgumentError for composite primary key"),
    ],
)
def test_other_keys_are_divided_too(session: Session, by: Any) -> None:
    """Differs: nothing is refused. Peer: test/unit/active_record_enumerator_test.rb, the cases of the ids."""
    assert 3 == len(ranges_of(session, "SELECT id, name, changed_at FROM products", by))


def test_a_job_of_records_goes_on_after_its_stops(
    app: Lowkiq, clock: ManualClock, queue_name: str, session: Session
) -> None:
    """Two at a time. Peer: test/unit/active_job_iteration_test.rb, "test_active_record_job"."""
    counting = CountingItems(lambda after: products(session, after))
    worker = start(app, queue_name, counting, max_run_items=2)
    states = []
    for _ in range(2):
        drain(app, clock)
        [waiting] = app.operate(worker).waiting.fetch(["a"])
        assert waiting.progress is not None
        states.append(
            (len(counting.items), waiting.progress.cursor, waiting.progress.interruptions, waiting.retry_count)
        )

    assert [(2, [2], 1, -1.0), (4, [4], 2, -1.0)] == states
    assert ["start", "shutdown", "shutdown"] == counting.notes


def test_a_job_of_batches_goes_on_after_its_stops(
    app: Lowkiq, clock: ManualClock, queue_name: str, session: Session
) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_activerecord_batches"."""
    counting = CountingItems(lambda after: chunks(products(session, after), 3))
    worker = start(app, queue_name, counting, max_run_items=1)
    drain(app, clock)
    [waiting] = app.operate(worker).waiting.fetch(["a"])
    drain(app, clock, 4)

    assert waiting.progress is not None
    assert ([3], 1, 4) == (waiting.progress.cursor, waiting.progress.items, waiting.progress.total)
    assert [3, 3, 3, 1] == [len(batch) for batch in counting.items]
    assert (1, 1) == (counting.notes.count("start"), counting.notes.count("complete"))
