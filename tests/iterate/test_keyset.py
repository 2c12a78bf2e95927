"""Rows of a query, on SQLite."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
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


@pytest.mark.parametrize("value", ["x'00'", "9e999"])
def test_values_that_a_cursor_cannot_hold_are_refused(db: sqlite3.Connection, value: str) -> None:
    """J-6, J-31: bytes and datetimes are no JSON: the row's column is named, and the way out is text."""
    with pytest.raises(ValueError, match=r"at is .*, which a cursor cannot hold"):
        next(keyset(db.execute, f"SELECT {value} AS at", "at", placeholder="?"))


def test_a_datetime_is_refused_with_the_way_out() -> None:
    """J-31: drivers give datetimes; microseconds and time zones are safe as text."""
    from datetime import UTC, datetime  # noqa: PLC0415 - the type that drivers give, for this test alone

    with pytest.raises(ValueError, match="at is a datetime, which a cursor cannot hold: select it as text"):
        next(keyset(lambda *_: [(datetime.now(UTC), datetime.now(UTC), 0)], "SELECT at FROM t", "at"))


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
