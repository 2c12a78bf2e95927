"""Ranges of keys for jobs side by side, on SQLite (J-36)."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowkiq_lambda import BatchJob, Lowkiq, Worker
from lowkiq_lambda.iterate import key_ranges, keyset, parts
from tests.kit.handlers import Notes
from tests.kit.workers import declare

QUERY = "SELECT id, name FROM rows_of_it"
MIXED = st.tuples(st.integers(-9, 9), st.sampled_from(["a", "B", "c"]))


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """A database with a table, and nothing in it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE rows_of_it (id INTEGER, name TEXT)")
        yield connection


def add(db: sqlite3.Connection, *rows: tuple[Any, ...]) -> None:
    """Have these rows, and no others."""
    db.execute("DELETE FROM rows_of_it")
    db.executemany("INSERT INTO rows_of_it VALUES (?, ?)", rows)


def of_ranges(db: sqlite3.Connection, by: Any, ranges: list[list[Any]]) -> list[list[Any]]:
    """The rows of each range, after they have been in payloads."""
    return [
        [row for row, _ in keyset(db.execute, QUERY, by, after, until=until, size=2, placeholder="?")]
        for after, until in json.loads(json.dumps(ranges))
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(MIXED, unique=True, max_size=15),
    st.lists(MIXED, unique=True, max_size=5),
    st.sampled_from(["id", "name", ("id", "name"), ("name", "id")]),
    st.integers(1, 6),
)
def test_each_row_is_in_one_range(
    db: sqlite3.Connection, rows: list[tuple[int, str]], late: list[tuple[int, str]], by: Any, count: int
) -> None:
    """Of an empty table, one row, equal keys; and so are rows that come later, on whatever side."""
    names = [by] if isinstance(by, str) else by
    columns = [["id", "name"].index(name) for name in names]

    def once(some: list[tuple[int, str]]) -> dict[Any, tuple[int, str]]:
        return {tuple(row[column] for column in columns): row for row in some}

    add(db, *once(rows).values())
    ranges = key_ranges(db.execute, QUERY, by, count)
    everything = once([*rows, *late])
    add(db, *everything.values())
    shares = of_ranges(db, by, ranges)

    assert 1 <= len(ranges) <= count
    assert (ranges[0][0], ranges[-1][1]) == (None, None)
    assert [everything[key] for key in sorted(everything)] == [row for share in shares for row in share]


@pytest.mark.parametrize(("rows", "count", "lengths"), [(10, 3, [4, 3, 3]), (2, 5, [1, 1]), (1, 4, [1]), (0, 4, [0])])
def test_other_keys_are_divided_by_rows(db: sqlite3.Connection, rows: int, count: int, lengths: list[int]) -> None:
    """Lengths differ by one at most, and few rows have few ranges."""
    add(db, *[(1, f"{number:02}") for number in range(rows)])

    ranges = key_ranges(db.execute, f"{QUERY} WHERE id = ?", ("id", "name"), count, params=[1])

    assert lengths == [len(share) for share in of_ranges(db, ("id", "name"), ranges)]


def test_equal_keys_are_in_one_range(db: sqlite3.Connection) -> None:
    """Two tiles that end with one key are one range; keyset says that a column is missing."""
    add(db, *[(1, "x")] * 6, (2, "y"))

    ranges = key_ranges(db.execute, QUERY, "name", 3)

    assert [[None, ["x"]], [["x"], None]] == ranges
    with pytest.raises(ValueError, match=r"two rows have .* in name: add a column"):
        of_ranges(db, "name", ranges)


def test_numbers_are_divided_by_two_rows(db: sqlite3.Connection) -> None:
    """A table of any size costs two looks at the index; mappings will do."""
    add(db, (1, "a"), (2, "b"), (100, "c"))
    asked: list[str] = []

    def mappings(sql: str, params: list[Any]) -> list[dict[str, Any]]:
        asked.append(sql)
        cursor = db.execute(sql, params)
        return [dict(zip([column[0] for column in cursor.description], row, strict=True)) for row in cursor]

    assert [[None, [50]], [[50], None]] == key_ranges(mappings, QUERY, "id", 2)
    assert [True, True] == [sql.endswith("LIMIT 1") for sql in asked]


def test_uuids_are_divided_by_value_and_are_json() -> None:
    """As PostgreSQL orders them; a range goes through a payload, and comes back as UUIDs."""
    rows = iter([[(UUID(int=0),)], [(UUID(int=2**128 - 1),)]])

    ranges = key_ranges(lambda *_: next(rows), QUERY, "id", 2)

    middle = {"~": "uuid", "v": "7fffffff-ffff-ffff-ffff-ffffffffffff"}
    assert [[None, [middle]], [[middle], None]] == ranges
    asked: list[Any] = []

    def execute(_sql: str, params: list[Any]) -> list[Any]:
        asked.extend(params)
        return []

    list(keyset(execute, QUERY, "id", ranges[1][0]))
    assert [UUID(int=2**127 - 1)] * 2 == asked


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"parts": 0}, "the number of parts is a whole number from 1, not 0"),
        ({"parts": True}, "the number of parts is a whole number from 1"),
        ({"by": []}, "by names at least one column"),
        ({"sql": f"{QUERY} ORDER BY id"}, "the query has ORDER BY"),
        ({"sql": f"{QUERY};"}, "the query ends in a semicolon"),
    ],
)
def test_ranges_that_cannot_be_are_refused(db: sqlite3.Connection, arguments: Any, why: str) -> None:
    """Before the database is asked."""
    with pytest.raises(ValueError, match=why):
        key_ranges(db.execute, **{"sql": QUERY, "by": "id", "parts": 2, **arguments})


def test_null_has_no_range(db: sqlite3.Connection) -> None:
    """It has no place in the order, so its row would be in no range."""
    add(db, (1, "a"), (None, "b"))

    with pytest.raises(ValueError, match="id is NULL in a row"):
        key_ranges(db.execute, QUERY, "id", 2)


def test_parts_have_their_range_in_the_payload() -> None:
    """J-36: frozen there, so that a deploy with another number changes no job that is under way."""
    ranges = [[None, [5]], [[5], None]]

    assert [
        {"id": "x/0", "payload": {"a": 1, "part": [0, 2], "range": [None, [5]]}},
        {"id": "x/1", "payload": {"a": 1, "part": [1, 2], "range": [[5], None]}},
    ] == parts("x", {"a": 1}, ranges=ranges)
    with pytest.raises(ValueError, match="either a count or ranges"):
        parts("x", {}, 2, ranges=ranges)
    with pytest.raises(ValueError, match='the request has a "range" already'):
        parts("x", {"range": 1}, ranges=ranges)


def test_jobs_side_by_side_have_each_row_once(app: Lowkiq, queue_name: str, db: sqlite3.Connection) -> None:
    """J-36: the first run makes the jobs, and each goes on by itself after its stops."""
    add(db, *[(number, "") for number in range(20)])
    done: list[int] = []

    def perform_job(self: Worker, job: BatchJob) -> Iterator[Any]:
        [request] = job.payloads
        if "range" not in request:
            ranges = key_ranges(db.execute, QUERY, "id", 3)
            self.push_many(parts(job.id, request, ranges=ranges))
            return
        after, until = request["range"]
        rows = keyset(db.execute, QUERY, "id", job.cursor or after, until=until, placeholder="?")
        for (number, _), cursor in job.follow(rows):
            done.append(number)
            yield cursor

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, payloads_at_once=1, max_run_items=2)
    worker.push_many([{"id": "all", "payload": {}}])

    assert 4 == app.drain()["done"]
    assert [*range(20)] == sorted(done)
