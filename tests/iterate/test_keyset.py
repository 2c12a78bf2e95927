"""Rows of a query, on SQLite."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowkiq_lambda import CursorError
from lowkiq_lambda.iterate import keyset
from tests.iterate.resuming import in_one_go, interrupted

QUERY = "SELECT id, score, name FROM users"


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """A database with a table of users, and nobody in it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE users (id INTEGER, score REAL, name TEXT)")
        yield connection


def add(db: sqlite3.Connection, *rows: tuple[Any, ...]) -> None:
    """Have these users, and no others."""
    db.execute("DELETE FROM users")
    db.executemany("INSERT INTO users VALUES (?, ?, ?)", rows)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.floats(-2, 2), st.sampled_from("abc")),
        unique_by=lambda row: (row[0], row[2]),
        max_size=12,
    ),
    st.sampled_from([("id", "name"), ("name", "id"), ("score", "id", "name")]),
    st.integers(1, 4),
    st.integers(1, 5),
)
def test_an_interrupted_query_has_each_row_once(
    db: sqlite3.Connection, rows: list[tuple[Any, ...]], by: tuple[str, ...], size: int, every: int
) -> None:
    """J-31: several columns in lexicographic order, ties in all but the last, pages and interruptions anywhere."""
    add(db, *rows)
    positions = [["id", "score", "name"].index(column) for column in by]

    def loop(after: Any) -> Any:
        return keyset(db.execute, QUERY, by, after, size=size, placeholder="?")

    expected = sorted(rows, key=lambda row: [row[position] for position in positions])
    assert expected == in_one_go(loop)
    assert expected == interrupted(loop, every)


def test_the_query_keeps_its_parameters_joins_and_comments(db: sqlite3.Connection) -> None:
    """It is a subselect, whatever it is made of: its conditions stay apart from ours."""
    add(db, (1, 1.0, "a"), (2, 2.0, "b"), (3, 3.0, "c"), (4, 4.0, "d"))
    sql = "SELECT u.id AS user_id, v.name FROM users u JOIN users v ON v.id = u.id WHERE u.id > ? OR u.id = ? -- all"

    def loop(after: Any) -> Any:
        return keyset(db.execute, sql, "user_id", after, size=1, params=[2, 1], placeholder="?")

    assert [(1, "a"), (3, "c"), (4, "d")] == in_one_go(loop) == interrupted(loop, 1)


def test_rows_may_be_mappings_or_rows_of_the_driver(db: sqlite3.Connection) -> None:
    """Drivers have many kinds of rows."""
    add(db, (1, 1.0, "a"), (2, 2.0, "b"))

    def mappings(sql: str, params: list[Any]) -> list[dict[str, Any]]:
        cursor = db.execute(sql, params)
        return [dict(zip([column[0] for column in cursor.description], row, strict=True)) for row in cursor]

    assert [({"id": 2, "score": 2.0, "name": "b"}, [2])] == list(keyset(mappings, QUERY, "id", [1], placeholder="?"))
    db.row_factory = sqlite3.Row
    [(row, cursor)] = keyset(db.execute, QUERY, "id", [1], placeholder="?")
    assert ("b", [2]) == (row["name"], cursor)


def test_a_driver_with_another_placeholder() -> None:
    """Most drivers have %s; the statement for two columns can use an index on the first."""
    asked = []

    def execute(sql: str, params: list[Any]) -> list[Any]:
        asked.append((" ".join(sql.split()), params))
        return []

    assert [] == list(keyset(execute, "SELECT a, b FROM t WHERE c = %s", ("a", "b"), [7, "x"], params=["C"]))
    expected = (
        "SELECT page.*, page.a AS keyset_0, page.b AS keyset_1, "
        "CASE WHEN page.a = %s AND page.b = %s THEN 1 ELSE 0 END AS keyset_same "
        "FROM (SELECT a, b FROM t WHERE c = %s ) AS page "
        "WHERE page.a >= %s AND (page.a > %s OR (page.b >= %s)) ORDER BY page.a, page.b LIMIT 102"
    )
    assert (expected, [7, "x", "C", 7, 7, "x"]) == asked[0]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_rows_that_are_not_told_apart_are_refused(db: sqlite3.Connection, size: int) -> None:
    """Two rows with equal values may be parted by an interruption: the second would be left out."""
    add(db, (1, 1.0, "a"), (2, 1.0, "b"))

    with pytest.raises(ValueError, match=r"two rows have \[1.0\] in score: add a column that tells them apart"):
        next(keyset(db.execute, QUERY, "score", size=size, placeholder="?"))


def test_null_is_refused(db: sqlite3.Connection) -> None:
    """J-31: nil in a cursor is an error, with the way out."""
    add(db, (1, 1.0, None))

    with pytest.raises(ValueError, match=r"name is NULL in a row, which has no place in the order: .* COALESCE"):
        next(keyset(db.execute, QUERY, "name", placeholder="?"))


@pytest.mark.parametrize("value", ["9e999", "-9e999"])
def test_values_that_a_cursor_cannot_hold_are_refused(db: sqlite3.Connection, value: str) -> None:
    """J-6, J-31: infinity is no JSON."""
    with pytest.raises(ValueError, match=r"at is -?inf, which a cursor cannot hold"):
        next(keyset(db.execute, f"SELECT {value} AS at", "at", placeholder="?"))


def test_a_value_of_another_type_is_refused_with_the_way_out() -> None:
    """J-31: the row's column is named, and the way out is text."""
    with pytest.raises(ValueError, match="at is a time, which a cursor cannot hold: select it as text"):
        next(keyset(lambda *_: [(time(1), time(1), 0)], "SELECT at FROM t", "at"))


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        (1, "it must be a list with a value for each of id"),
        ([1, 2], "it must be a list with a value for each of id"),
        ([None], "id is NULL in a row"),
        ([{}], "id is a dict, which a cursor cannot hold"),
    ],
)
def test_a_cursor_of_another_query_is_refused(cursor: Any, why: str) -> None:
    """The columns were others when it was made."""
    with pytest.raises(CursorError) as caught:
        next(keyset(lambda *_: [], QUERY, "id", cursor))

    assert str(caught.value).startswith(f"The cursor {cursor!r} is not one of keyset: {why}")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"by": []}, "by names at least one column"),
        ({"by": "u.id"}, "by: 'u.id' is not the name of a column of the result"),
        ({"by": "id; DROP TABLE users"}, "is not the name of a column of the result"),
        ({"sql": f"{QUERY};\n"}, "the query ends in a semicolon"),
        ({"size": 0}, "size is at least 1"),
        ({"sql": f"{QUERY} order  by id"}, "the query has ORDER BY, but keyset adds the order itself"),
        ({"sql": f"{QUERY}\nLIMIT 5"}, "the query has LIMIT,"),
        ({"sql": f"{QUERY} offset %s"}, "the query has OFFSET,"),
        ({"sql": f"{QUERY} FETCH FIRST 5 ROWS ONLY"}, "the query has FETCH FIRST,"),
        ({"sql": f"{QUERY} for no key update"}, "the query has FOR NO KEY UPDATE,"),
        ({"sql": f"{QUERY} WHERE name = 'x' -- (\nORDER BY id"}, "the query has ORDER BY,"),
        ({"placeholder": ":1"}, "placeholder is '%s' or '\\?'"),
    ],
)
def test_arguments_that_cannot_work_are_refused(changed: dict[str, Any], why: str) -> None:
    """Nothing of them reaches the database."""
    with pytest.raises(ValueError, match=why):
        keyset(lambda *_: [], **{"sql": QUERY, "by": "id", **changed})


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_rows_that_the_database_does_not_tell_apart_are_refused(db: sqlite3.Connection, size: int) -> None:
    """With a collation "a" and "A" are equal: between two pages, or runs, one of them would be left out."""
    db.execute("CREATE TABLE tags (name TEXT COLLATE NOCASE)")
    db.executemany("INSERT INTO tags VALUES (?)", [("a",), ("A",), ("b",), ("B",), ("c",), ("C",)])

    with pytest.raises(
        ValueError, match=r"for the database two rows have .* in name: add a column that tells them apart"
    ):
        interrupted(
            lambda after: keyset(db.execute, "SELECT name FROM tags", "name", after, size=size, placeholder="?"), 1
        )


@pytest.mark.parametrize(("by", "cursor", "kind"), [("id", ["abc"], "int"), ("name", [7], "str")])
def test_a_cursor_of_another_type_is_refused(db: sqlite3.Connection, by: str, cursor: Any, kind: str) -> None:
    """SQLite sorts texts behind all numbers, so the job would end as done."""
    add(db, (1, 1.0, "a"), (2, 2.0, "b"))

    with pytest.raises(CursorError, match=f"{by} is a {kind} in the rows"):
        list(keyset(db.execute, QUERY, by, cursor, placeholder="?"))


def test_a_resume_does_without_the_row_of_its_cursor(db: sqlite3.Connection) -> None:
    """It may be deleted meanwhile, even if it was the last one."""
    add(db, (1, 1.0, "a"), (3, 3.0, "c"))

    assert [[3]] == [cursor for _, cursor in keyset(db.execute, QUERY, "id", [2], placeholder="?")]
    assert [] == list(keyset(db.execute, QUERY, "id", [4], placeholder="?"))


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (SELECT id FROM users ORDER BY id LIMIT 2)",
        "name <> 'a ORDER BY b' AND name <> 'it''s LIMIT 1'",
        '"name" <> "ORDER BY"',
        "`name` <> 'x' -- ORDER BY id",
        "name <> 'x' /* LIMIT 1 */",
        "users.id + 0 = (SELECT MAX(v.id) OVER (ORDER BY v.id) FROM users v WHERE v.id = users.id)",
    ],
)
def test_words_of_a_clause_elsewhere_are_no_clause(db: sqlite3.Connection, condition: str) -> None:
    """In parentheses, strings, quoted names and comments they are the query's own."""
    add(db, (1, 1.0, "a"), (2, 2.0, "b"))

    assert [1, 2] == [row[0] for row, _ in keyset(db.execute, f"{QUERY} WHERE {condition}", "id", placeholder="?")]


@pytest.mark.parametrize(
    "sql",
    [
        r"SELECT id FROM t WHERE name <> 'it\'s' AND note = 'LIMIT 5'",
        r"SELECT id FROM t WHERE path = 'C:\' AND note = 'LIMIT 5'",
        "SELECT id, page.limit, t.offset FROM t",
        "SELECT offset, id FROM log",
        "SELECT id FROM t WHERE body = $tag$ ORDER BY $tag$",
        "SELECT id FROM t # LIMIT 5",
    ],
)
def test_no_query_is_refused_that_one_database_reads_otherwise(sql: str) -> None:
    """MySQL escapes quotes by a backslash, PostgreSQL does not; a column may be called offset."""
    assert [] == list(keyset(lambda *_: [], sql, "id"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.just("")), unique=True, max_size=12),
    st.none() | st.lists(st.integers(0, 5), min_size=2, max_size=2),
    st.none() | st.lists(st.integers(0, 5), min_size=2, max_size=2),
    st.integers(1, 4),
)
def test_until_is_the_last_row_that_comes(
    db: sqlite3.Connection, rows: list[tuple[Any, ...]], after: list[int] | None, until: list[int] | None, size: int
) -> None:
    """In the order of several columns, whether or not there are such rows; `total` counts the same rows."""
    add(db, *rows)
    expected = [
        row
        for row in sorted(rows)
        if (after is None or [row[0], row[1]] > after) and (until is None or [row[0], row[1]] <= until)
    ]

    loop = keyset(db.execute, QUERY, ("id", "score"), after, until=until, size=size, placeholder="?")

    assert len(expected) == loop.total
    assert expected == [row for row, _ in loop]


def test_a_query_is_counted_once_and_only_if_asked(db: sqlite3.Connection) -> None:
    """One COUNT, of mappings too; none with `count=False`."""
    add(db, (1, 1.0, "a"), (2, 2.0, "b"), (3, 3.0, "c"))
    asked: list[str] = []

    def mappings(sql: str, params: list[Any]) -> list[dict[str, Any]]:
        asked.append(sql)
        cursor = db.execute(sql, params)
        return [dict(zip([column[0] for column in cursor.description], row, strict=True)) for row in cursor]

    loop = keyset(mappings, f"{QUERY} WHERE id > ?", "id", [1], params=[0], placeholder="?")

    assert [2, 2] == [loop.total, loop.total]
    assert None is keyset(mappings, QUERY, "id", placeholder="?", count=False).total
    assert 1 == len(asked)
    assert (2, 2) == (len(list(loop)), loop.position)


@pytest.mark.parametrize(
    ("cursor", "value", "kind"),
    [
        (["2026-07-01"], date(2026, 7, 1), "date"),
        ([date(2026, 7, 1)], datetime(2026, 7, 1, tzinfo=UTC), "datetime with a zone"),
        ([datetime(2026, 7, 1, tzinfo=UTC)], datetime(2026, 7, 1), "datetime without a zone"),  # noqa: DTZ001 - as a database has it
        ([b"x"], "x", "str"),
    ],
)
def test_a_cursor_of_another_type_than_the_rows_is_refused(cursor: Any, value: Any, kind: str) -> None:
    """As a cursor that was text before the query selected times: the database might take it for another place."""
    with pytest.raises(CursorError, match=f"at is a {kind} in the rows"):
        next(keyset(lambda *_: [(value, value, 0)], "SELECT at FROM t", "at", cursor))


def test_numbers_are_of_one_type() -> None:
    """Drivers give whole numbers of a NUMERIC as they like."""
    assert [] == list(keyset(lambda *_: [(1, 1, 1)], "SELECT at FROM t", "at", [Decimal(1)]))


def test_a_database_that_keeps_more_digits_than_python_is_an_error_and_no_skip() -> None:
    """DATETIME with nanoseconds: the row of the cursor is asked for, and comes as one that is not it."""
    at = datetime(2026, 7, 1, tzinfo=UTC)

    with pytest.raises(ValueError, match=r"two rows have .* in at: add a column that tells them apart"):
        next(keyset(lambda *_: [(at, at, 0)], "SELECT at FROM t", "at", [at]))


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("name", ["ä", "z"])
def test_times_that_the_database_compares_as_text_are_an_error_and_no_repeat(size: int, name: str) -> None:
    """The cursor is in UTC, so as text the rows of a zone to the east stay behind it; texts may sort as they like."""
    berlin = timezone(timedelta(hours=2))
    noon = datetime(2026, 7, 1, 12, tzinfo=berlin)
    rows = [(noon + timedelta(minutes=minute), name) for minute in range(9)]

    def execute(_sql: str, values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        after = values[0].isoformat() if values else ""
        behind = [row for row in rows if row[0].isoformat() >= after][: size + 1 + bool(values)]
        return [(*row, *row, int(row[0].isoformat() == after)) for row in behind]

    loop = keyset(execute, "SELECT at, name FROM users", ["at", "name"], size=size)
    with pytest.raises(CursorError, match=r"at: the database sorts .* so it compares times with zones as text"):
        list(islice(loop, len(rows) + 1))


def test_texts_in_an_order_that_python_does_not_have_are_read(db: sqlite3.Connection) -> None:
    """The cursor of a text goes back as it came, so the order of a collation is the database's own affair."""
    add(db, (1, 0, "B"), (2, 0, "a"), (3, 0, "c"))
    query = "SELECT id, name FROM (SELECT id, name COLLATE NOCASE AS name FROM users)"

    assert [2, 1, 3] == [row[0] for row, _ in keyset(db.execute, query, "name", size=1, placeholder="?")]
