"""Rows as objects of SQLAlchemy, and keys of all types, on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, ForeignKey, create_engine, event, func, select
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload

from lowkiq_lambda import CursorError, Worker
from lowkiq_lambda.iterate import chunks, key_ranges, keyset
from lowkiq_lambda.iterate import sqlalchemy as rows_of
from lowkiq_lambda.jobs.cursor_values import in_utc
from lowkiq_lambda.testing import run_through

AT = datetime(2026, 10, 25, 0, 30, 0, 1, tzinfo=UTC)


class IteratedBase(DeclarativeBase):
    """The tables of this file."""


class BookShelf(IteratedBase):
    """A shelf of books."""

    __tablename__ = "iterated_shelf"
    id: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[str | None]
    books: Mapped[list["Book"]] = relationship(back_populates="shelf")


class Book(IteratedBase):
    """A book with a key of each type."""

    __tablename__ = "iterated_book"
    shelf_id: Mapped[int] = mapped_column(ForeignKey("iterated_shelf.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    uid: Mapped[UUID]
    day: Mapped[date]
    content: Mapped[bytes]
    shelf: Mapped[BookShelf] = relationship(back_populates="books")


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A database with two shelves of three books each."""
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    made = create_engine(url)
    IteratedBase.metadata.create_all(made)
    with Session(made) as session:
        session.add_all([BookShelf(id=1, place="left"), BookShelf(id=2, place=None)])
        session.flush()
        session.add_all([book(shelf, number) for shelf in (1, 2) for number in range(3)])
        session.commit()
    try:
        yield made
    finally:
        IteratedBase.metadata.drop_all(made)
        made.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    """One that keeps its objects after a commit."""
    with Session(engine, expire_on_commit=False) as opened:
        yield opened


def book(shelf: int, number: int) -> Book:
    """One that is unique in each of its columns but the first two."""
    count = 10 * shelf + number
    content = bytes([255 - count])
    return Book(shelf_id=shelf, number=number, uid=UUID(int=count), day=date(2026, 1, count), content=content)


def interrupted(loop_of: Any, every: int = 1) -> list[Any]:
    """The items of a job that is stopped after each `every` items; its cursors are kept as a drain keeps them."""
    done: list[Any] = []

    class Iterating(Worker):
        def perform_job(self, job: Any) -> Iterator[Any]:
            for item, cursor in job.follow(loop_of(after=job.cursor)):
                done.append(item)
                yield cursor

    run_through(Iterating, [], every=every)
    return done


@pytest.mark.parametrize("by", [Book.uid, Book.day, Book.content, [Book.shelf_id, Book.number], [Book.day, Book.uid]])
def test_an_interrupted_select_has_each_object_once(session: Session, by: Any) -> None:
    """J-31: objects by UUIDs, days, bytes, and keys of several columns, with pages and stops anywhere."""
    names = [column.key for column in (by if isinstance(by, list) else [by])]

    done = [interrupted(partial(rows_of, session, select(Book), by, size=size)) for size in (1, 2, 500)]

    expected = sorted([(shelf, n) for shelf in (1, 2) for n in range(3)], key=lambda at: key_of(at[0], at[1], names))
    assert [expected] * 3 == [[(each.shelf_id, each.number) for each in books] for books in done]


def key_of(shelf: int, number: int, names: list[str]) -> list[Any]:
    """The values of a book."""
    return [getattr(book(shelf, number), name) for name in names]


def test_a_key_of_several_tables_and_a_join_that_repeats_none(session: Session) -> None:
    """J-31 and job-iteration #457: names of columns have their tables, so `id` is that of its own one."""
    statement = select(Book, BookShelf.place).join(Book.shelf).where(BookShelf.id > 0)

    done = interrupted(lambda after: rows_of(session, statement, [BookShelf.id, Book.number], after, size=2))

    assert [(1, 0, "left"), (1, 1, "left"), (1, 2, "left"), (2, 0, None)] == [
        (each.Book.shelf_id, each.Book.number, each.place) for each in done[:4]
    ]


def test_a_join_that_repeats_a_key_is_refused(session: Session) -> None:
    """A shelf comes once for each of its books."""
    with pytest.raises(ValueError, match=r"two rows have \[1\] in id: add a column that tells them apart"):
        next(rows_of(session, select(BookShelf).join(BookShelf.books), BookShelf.id, size=1))


@pytest.mark.parametrize(
    ("statement", "by", "why"),
    [
        (select(Book).order_by(Book.day), Book.uid, "a select without order_by"),
        (select(Book).limit(5), Book.uid, "a select without a limit"),
        (select(Book).offset(5), Book.uid, "a select without a limit"),
        (select(BookShelf), BookShelf.place, "iterated_shelf.place may be NULL"),
        (select(BookShelf), Book.uid, "the select does not have the table of iterated_book.uid"),
        (select(BookShelf), func.lower(BookShelf.place), "is not a column of a table"),
        (select(BookShelf), "id", "id is not a column of a table"),
        (select(BookShelf), [], "by has at least one column"),
    ],
)
def test_a_select_that_cannot_be_divided_into_pages_is_refused(
    session: Session, statement: Any, by: Any, why: str
) -> None:
    """Before the database is asked."""
    with pytest.raises(ValueError, match=why):
        rows_of(session, statement, by)


def test_until_and_counts(session: Session) -> None:
    """The range is counted in one statement, and no statement is for a count that nobody wants."""
    statements: list[str] = []
    event.listen(session.get_bind(), "before_cursor_execute", lambda *details: statements.append(details[2]))
    by = [Book.shelf_id, Book.number]
    loop = rows_of(session, select(Book), by, [1, 0], until=[2, 1], size=2)

    assert 4 == loop.total
    assert [(1, 1), (1, 2), (2, 0), (2, 1)] == [(each.shelf_id, each.number) for each, _ in loop]
    counted = [statement for statement in statements if "count(*)" in statement]
    assert None is rows_of(session, select(Book), by, count=False).total
    assert 1 == len(counted)
    assert (2, [[1, 1], [2, 0], [2, 2]]) == (
        chunks(rows_of(session, select(Book), by), 3).total,
        [cursor for _, cursor in chunks(rows_of(session, select(Book), by), 2)],
    )


def test_a_cursor_of_another_select_is_refused(session: Session) -> None:
    """As that of `keyset`."""
    with pytest.raises(CursorError, match="it must be a list with a value for each of uid"):
        rows_of(session, select(Book), Book.uid, [1, 2])
    with pytest.raises((CursorError, StatementError), match=r"in the rows|uuid"):
        next(rows_of(session, select(Book), Book.uid, [date(2026, 1, 1)]))


def test_collections_are_loaded_by_selects_of_their_own(session: Session) -> None:
    """A join would repeat the rows of a page."""
    with pytest.raises(ValueError, match="load collections by selectinload"):
        next(rows_of(session, select(BookShelf).options(joinedload(BookShelf.books)), BookShelf.id))

    loop = rows_of(session, select(BookShelf).options(selectinload(BookShelf.books)), BookShelf.id, size=1)
    assert [3, 3] == [len(shelf.books) for shelf, _ in loop]


def test_rows_that_a_commit_expires_are_read_all_the_same(engine: Engine) -> None:
    """Keys are columns of the page, so a commit after each item costs no more than the session's own looks."""
    with Session(engine) as session:
        done = 0
        for _, cursor in rows_of(session, select(Book), [Book.shelf_id, Book.number], size=2):
            session.commit()
            done += len(cursor)

    assert 12 == done


TYPES: dict[str, list[Any]] = {
    "uuid": [UUID(int=number << 64) for number in range(4)],
    "timestamptz": [AT + timedelta(microseconds=number) for number in range(4)],
    "timestamp": [AT.replace(tzinfo=None) + timedelta(microseconds=number) for number in range(4)],
    "timestamp(0)": [AT.replace(tzinfo=None, microsecond=0) + timedelta(seconds=number) for number in range(4)],
    "date": [date(2026, 1, number) for number in range(1, 5)],
    "numeric": [Decimal("0.1"), Decimal("0.10000000000000000001"), Decimal(1), Decimal("1e20")],
    "bytea": [b"", b"\x00", b"\x00\xff", b"\xff"],
    'text COLLATE "C"': ["A", "B", "a", "ä"],
}


@pytest.mark.parametrize("kind", TYPES)
def test_keyset_takes_each_type_of_postgresql(postgres_url: str, kind: str) -> None:
    """What the driver gives is the cursor, through its stored form, and brings each row once; ranges, too."""
    engine = create_engine(postgres_url)
    values = TYPES[kind]
    with engine.connect() as connection, closing(connection.connection.cursor()) as driver:
        driver.execute("SET LOCAL timezone TO 'Europe/Berlin'")
        driver.execute(f"CREATE TEMPORARY TABLE typed_rows (at {kind})")
        driver.executemany("INSERT INTO typed_rows VALUES (%s)", [(value,) for value in values])

        def execute(sql: str, params: list[Any]) -> list[Any]:
            return list(driver.execute(sql, params))

        sql = "SELECT at FROM typed_rows"
        done = [interrupted(lambda after: keyset(execute, sql, "at", after), every) for every in (1, 3)]
        ranges = key_ranges(execute, sql, "at", 2)
        shares = [[at for (at,), _ in keyset(execute, sql, "at", low, until=high)] for low, high in ranges]

    engine.dispose()
    assert [values, values] == [[in_utc(at) for (at,) in rows] for rows in done]
    assert (2, values) == (len(ranges), [in_utc(at) for share in shares for at in share])
