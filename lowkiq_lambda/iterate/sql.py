"""Rows of a query, by the values that they are ordered by."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Final

from lowkiq_lambda.iterate.cursors import pages, strange

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def keyset(  # noqa: PLR0913 - all but four have a default and are given by name
    execute: Callable[..., Iterable[Any]],
    sql: str,
    by: str | Sequence[str],
    after: Sequence[Any] | None = None,
    *,
    size: int = 100,
    params: Sequence[Any] = (),
    placeholder: str = "%s",
) -> Iterator[tuple[Any, list[Any]]]:
    """The rows of a query, ordered by its columns `by`; the cursor is a list of their values.

    `execute(sql, params)` gives rows: tuples, mappings, or objects that have values by position. It is called for each
    page of `size` rows with the query as a subselect, so `sql` has no ORDER BY of its own and no semicolon, and nothing
    stays open in the database between pages. `by` names columns of the result, which together are different in each
    row and never NULL (PostgreSQL would leave such rows out); an index on them makes pages cheap. A row is skipped or
    repeated if these values of it change while the job runs. Tuples and mappings come as the query has them; other rows
    have the values of `by` and a number more at their end.

    Raises ValueError for a query or an argument that cannot work, for rows with equal values, for None, and for
    a value that a cursor cannot hold, such as a datetime: select it as text that has the same order. Raises CursorError
    where the cursor has other values than `by` has columns, or text where a column has numbers. Each page asks for the
    cursor's row once more: so it is seen where the database takes rows for equal that Python does not (a collation).

    Examples:
        >>> import sqlite3
        >>> db = sqlite3.connect(":memory:")
        >>> _ = db.execute("CREATE TABLE users (id, name)")
        >>> _ = db.executemany("INSERT INTO users VALUES (?, ?)", [(1, "Ada"), (2, "Bo")])
        >>> list(keyset(db.execute, "SELECT id, name FROM users", "id", after=[1], placeholder="?"))
        [((2, 'Bo'), [2])]
        >>> db.close()
    """
    columns = [by] if isinstance(by, str) else list(by)
    _check(sql, columns, size, placeholder)
    if after is not None:
        _check_cursor(after, columns)

    def fetch(cursor: list[Any] | None) -> list[tuple[Any, list[Any]]]:
        query, before, after_values = _page(sql, columns, cursor, placeholder)
        # One row more than the page: two rows with equal values may lie on both sides of its end.
        limit = size + 1 + (cursor is not None)
        rows = [_read(row, columns) for row in execute(f"{query} LIMIT {limit}", [*before, *params, *after_values])]
        if cursor is not None:
            looked_at = rows
            if not rows:
                query, *_ = _page(sql, columns, None, placeholder)
                looked_at = [_read(row, columns) for row in execute(f"{query} LIMIT 1", [*params])]
            _compare(cursor, looked_at, columns)
        pairs = [(item, values) for item, values, is_cursor in rows if not is_cursor]
        for (_, values), (_, following) in pairwise(pairs):
            if values == following:
                raise _alike("two rows have", values, columns)
        return pairs[:size]

    return pages(fetch, None if after is None else list(after))


def _compare(cursor: list[Any], rows: list[tuple[Any, list[Any], bool]], columns: list[str]) -> None:
    """Raises ValueError for rows that the database does not tell apart, CursorError for a cursor of another kind."""
    if sum(is_cursor for *_, is_cursor in rows) > 1:
        raise _alike("for the database two rows have", cursor, columns)
    for column, value, sample in zip(columns, cursor, rows[0][1] if rows else cursor, strict=True):
        if isinstance(value, str) != isinstance(sample, str):
            raise strange("keyset", cursor, f"{column} is a {type(sample).__name__} in the rows")


def _alike(who: str, values: list[Any], columns: list[str]) -> ValueError:
    return ValueError(f"{who} {values!r} in {', '.join(columns)}: add a column that tells them apart")


def _page(sql: str, columns: list[str], cursor: list[Any] | None, placeholder: str) -> tuple[str, list[Any], list[Any]]:
    """The query for the cursor's row and what comes after it, in order; its values before and after those of `sql`."""
    extra = ", ".join(f"page.{column} AS keyset_{position}" for position, column in enumerate(columns))
    before: list[Any] = []
    after_values: list[Any] = []
    condition, same = "", "0"
    if cursor is not None:
        condition, after_values = _after(columns, cursor, placeholder)
        equal = " AND ".join(f"page.{column} = {placeholder}" for column in columns)
        condition, before, same = f" WHERE {condition}", cursor, f"CASE WHEN {equal} THEN 1 ELSE 0 END"
    order = ", ".join(f"page.{column}" for column in columns)
    # A line of its own for the end of the subselect: the query may end in a comment.
    return (
        f"SELECT page.*, {extra}, {same} AS keyset_same FROM ({sql}\n) AS page{condition} ORDER BY {order}",  # noqa: S608 - names are checked, values are parameters
        before,
        after_values,
    )


def _after(columns: list[str], values: list[Any], placeholder: str) -> tuple[str, list[Any]]:
    """What is true of the row with the values and of those after it; an index on the first column serves it."""
    column, *rest = columns
    if not rest:
        return f"page.{column} >= {placeholder}", values
    condition, inner = _after(rest, values[1:], placeholder)
    return (
        f"page.{column} >= {placeholder} AND (page.{column} > {placeholder} OR ({condition}))",
        [values[0], values[0], *inner],
    )


def _read(row: Any, columns: list[str]) -> tuple[Any, list[Any], bool]:  # noqa: ANN401 - as the driver has it
    """The row without the values that were added, its cursor, and whether it is the row that the page began at."""
    names = [*(f"keyset_{position}" for position in range(len(columns))), "keyset_same"]
    item: object = row
    if isinstance(row, Mapping):
        *values, same = [row[name] for name in names]
        item = {name: value for name, value in row.items() if name not in names}
    else:
        *values, same = [row[position - len(names)] for position in range(len(names))]
        if type(row) in {tuple, list}:
            item = row[: -len(names)]
    for column, value in zip(columns, values, strict=True):
        if wrong := _unfit(value):
            raise ValueError(f"{column} is {wrong}")
    return item, values, bool(same)


def _unfit(value: object) -> str | None:
    """Why a cursor cannot hold the value, as the end of a sentence; None if it can."""
    if value is None:
        return "NULL in a row, which has no place in the order: leave such rows out, or use COALESCE in the query"
    if type(value) not in {str, int, float, bool}:
        return (
            f"a {type(value).__name__}, which a cursor cannot hold: select it as text that has the same order, "
            f"for example with CAST, and name that column in `by`"
        )
    return None if not isinstance(value, float) or isfinite(value) else f"{value}, which a cursor cannot hold"


def _check(sql: str, columns: list[str], size: int, placeholder: str) -> None:
    if not columns:
        raise ValueError("by names at least one column")
    for column in columns:
        if not _NAME.fullmatch(column):
            raise ValueError(
                f"by: {column!r} is not the name of a column of the result: give it one by AS in the query"
            )
    if sql.rstrip().endswith(";"):
        raise ValueError("the query ends in a semicolon, but it becomes a subselect: leave it out")
    if size < 1:
        raise ValueError(f"size is at least 1, not {size}")
    if placeholder not in {"%s", "?"}:
        raise ValueError(f"placeholder is '%s' or '?', as the driver has it, not {placeholder!r}")


def _check_cursor(cursor: object, columns: list[str]) -> None:
    if not isinstance(cursor, list | tuple) or len(cursor) != len(columns):
        raise strange("keyset", cursor, f"it must be a list with a value for each of {', '.join(columns)}")
    for column, value in zip(columns, cursor, strict=True):
        if wrong := _unfit(value):
            raise strange("keyset", cursor, f"{column} is {wrong}")
