"""Rows of a query, by the values that they are ordered by."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from lowkiq_lambda.iterate.cursors import is_count
from lowkiq_lambda.iterate.keys import Key, checked_key, key_of, pages_of_rows
from lowkiq_lambda.iterate.pairs import Pairs
from lowkiq_lambda.jobs.cursor_values import plain

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED: Final = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*"""
_QUOTED_BY_MYSQL: Final = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|(?:--|\#)[^\n]*"""
_READINGS: Final = [
    re.compile(rf"(?P<hidden>{quoted}|/\*.*?\*/|`[^`]*`|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)|[()]|\w+|.", re.DOTALL)
    for quoted in (_QUOTED, _QUOTED_BY_MYSQL)
]
"""The parts of a statement, as the standard has them, and as MySQL does, where a string may have a backslash."""
_OWN: Final = re.compile(
    r"(?<![.\w])(ORDER\s+BY|LIMIT|OFFSET(?=\s+[\d%?:$])|FETCH\s+(?:FIRST|NEXT)"
    r"|FOR\s+(?:NO\s+KEY\s+|KEY\s+)?(?:UPDATE|SHARE))\b",
    re.IGNORECASE,
)
"""Clauses that are keyset's, or that a subselect cannot have."""


def keyset(  # noqa: PLR0913 - all but four have a default and are given by name
    execute: Callable[..., Iterable[Any]],
    sql: str,
    by: str | Sequence[str],
    after: Sequence[Any] | None = None,
    *,
    until: Sequence[Any] | None = None,
    size: int = 100,
    params: Sequence[Any] = (),
    placeholder: str = "%s",
    count: bool = True,
) -> Pairs[Any, Key]:
    """The rows of a query, ordered by its columns `by`; the cursor is a list of their values.

    `execute(sql, params)` gives rows: tuples, mappings, or objects that have values by position. It is called for each
    page of `size` rows with the query as a subselect, so `sql` has no ORDER BY or LIMIT of its own and no semicolon,
    and nothing stays open in the database between pages. `by` names columns of the result, which together are different
    in each row and never NULL (PostgreSQL would leave such rows out); an index on them makes pages cheap. A row is
    skipped or repeated if these values of it change while the job runs. Tuples and mappings come as the query has them;
    other rows have the values of `by` and a number more at their end. `until`: the values of the last row that may
    come; `key_ranges` gives such. `count=False`: the loop has no `total`, so `job.follow` runs no COUNT.

    Raises ValueError for a query or an argument that cannot work, for rows with equal values, for None, and for
    a value that a cursor cannot hold. Raises CursorError where the cursor has other values than `by` has columns, or
    values of other types, and where times with zones are not in order. Each page asks for the cursor's row once more:
    so it is seen where the database takes rows for equal that Python does not (a collation), and the other way round.

    Examples:
        >>> import sqlite3
        >>> db = sqlite3.connect(":memory:")
        >>> _ = db.execute("CREATE TABLE users (id, name)")
        >>> _ = db.executemany("INSERT INTO users VALUES (?, ?)", [(1, "Ada"), (2, "Bo"), (3, "Cy")])
        >>> list(keyset(db.execute, "SELECT id, name FROM users", "id", after=[1], until=[2], placeholder="?"))
        [((2, 'Bo'), [2])]
        >>> db.close()
    """
    columns = _columns(by)
    _check(sql, placeholder)
    before, last = key_of("keyset", after, columns), key_of("keyset", until, columns)

    def read(cursor: Key | None, limit: int) -> list[tuple[Any, Key, bool]]:
        query, values = _page(sql, columns, cursor, last, placeholder, params)
        return [_read(row, len(columns)) for row in execute(f"{query} LIMIT {limit}", values)]

    def total() -> int | None:
        condition, values = _where(columns, before, last, placeholder, inclusive=False)
        query = f"SELECT COUNT(*) AS keyset_count FROM ({sql}\n) AS page{condition}"  # noqa: S608 - as in _page
        for row in execute(query, [*params, *values]):
            number: int = row["keyset_count"] if isinstance(row, Mapping) else row[0]
            return number
        return None

    return pages_of_rows(
        "keyset", read, columns=columns, after=before, size=size, count=total if count else lambda: None
    )


def key_ranges(
    execute: Callable[..., Iterable[Any]],
    sql: str,
    by: str | Sequence[str],
    parts: int,
    *,
    params: Sequence[Any] = (),
) -> list[list[Any]]:
    """Ranges `[after, until]` of a query's keys for `keyset`, as JSON: each of its rows is in one of them.

    The first has no lower end, and the last no upper one, so rows that come later are in one, too. Of a column of
    integers or UUIDs, two rows are read, and values between them are divided evenly; of other keys, all are read once
    (`NTILE`), and rows are. A query with few rows has fewer ranges; one without rows has one. `iterate.parts` makes
    the jobs for them. Raises ValueError as `keyset` does.

    Examples:
        >>> import sqlite3
        >>> db = sqlite3.connect(":memory:")
        >>> key_ranges(db.execute, "SELECT 1 AS id UNION SELECT 10", "id", 2)
        [[None, [5]], [[5], None]]
        >>> db.close()
    """
    columns = _columns(by)
    _check(sql, "?")
    if not is_count(parts) or parts < 1:
        raise ValueError(f"the number of parts is a whole number from 1, not {parts!r}")
    read = partial(_keys, execute, columns, params)
    ends = _ends_by_value(read, sql, columns, parts) if len(columns) == 1 else None
    if ends is None:
        names = ", ".join(f"page.{column}" for column in columns)
        tiles = f"SELECT {names}, NTILE({parts}) OVER (ORDER BY {names}) AS keyset_tile FROM ({sql}\n) AS page"  # noqa: S608 - as in _page
        marked = f"SELECT page.*, LEAD(keyset_tile) OVER (ORDER BY {names}) AS keyset_next FROM ({tiles}) AS page"  # noqa: S608 - as in _page
        ends = read(f"FROM ({marked}) AS page WHERE keyset_tile <> keyset_next ORDER BY {names}")
    bounds = [None, *(plain(key) for key in ends), None]
    return [[low, high] for low, high in pairwise(bounds) if low != high or low is None]


def _ends_by_value(read: Callable[[str], list[Key]], sql: str, columns: list[str], parts: int) -> list[Key] | None:
    """The ends of all ranges but the last; None if values of this type cannot be divided."""
    ends: list[Any] = []
    for direction in ("", " DESC"):
        rows = read(f"FROM ({sql}\n) AS page ORDER BY page.{columns[0]}{direction} LIMIT 1")
        if not rows:
            return []
        ends += rows[0]
    if all(type(end) is int for end in ends):
        return [[end] for end in _evenly(ends[0], ends[1], parts)]
    if all(isinstance(end, UUID) for end in ends):
        return [[UUID(int=end)] for end in _evenly(ends[0].int, ends[1].int, parts)]
    return None


def _evenly(low: int, high: int, parts: int) -> list[int]:
    parts = min(parts, high - low + 1)
    return [low - 1 + (high - low + 1) * part // parts for part in range(1, parts)]


def _keys(execute: Callable[..., Iterable[Any]], columns: list[str], params: Sequence[Any], source: str) -> list[Key]:
    names = [f"keyset_{position}" for position in range(len(columns))]
    selected = ", ".join(f"page.{column} AS {name}" for column, name in zip(columns, names, strict=True))
    rows = execute(f"SELECT {selected} {source}", [*params])
    keys = [[row[name] for name in names] if isinstance(row, Mapping) else list(row[: len(names)]) for row in rows]
    return [checked_key(key, columns) for key in keys]


def _page(  # noqa: PLR0913, PLR0917 - the parts of a statement
    sql: str, columns: list[str], cursor: Key | None, until: Key | None, placeholder: str, params: Sequence[Any]
) -> tuple[str, list[Any]]:
    """The query for the cursor's row and what comes after it, in order, with its values."""
    extra = ", ".join(f"page.{column} AS keyset_{position}" for position, column in enumerate(columns))
    same = "0"
    if cursor is not None:
        same = f"CASE WHEN {' AND '.join(f'page.{column} = {placeholder}' for column in columns)} THEN 1 ELSE 0 END"
    condition, values = _where(columns, cursor, until, placeholder, inclusive=True)
    order = ", ".join(f"page.{column}" for column in columns)
    # A line of its own for the end of the subselect: the query may end in a comment.
    return (
        f"SELECT page.*, {extra}, {same} AS keyset_same FROM ({sql}\n) AS page{condition} ORDER BY {order}",  # noqa: S608 - names are checked, values are parameters
        [*(cursor or ()), *params, *values],
    )


def _where(
    columns: list[str], after: Key | None, until: Key | None, placeholder: str, *, inclusive: bool
) -> tuple[str, list[Any]]:
    """The condition of rows after the one key, or from it on, and up to the other one."""
    ends = [] if after is None else [_beyond(columns, after, placeholder, ">", inclusive=inclusive)]
    ends += [] if until is None else [_beyond(columns, until, placeholder, "<", inclusive=True)]
    conditions = " AND ".join(f"({condition})" if len(ends) > 1 else condition for condition, _ in ends)
    return (f" WHERE {conditions}" if ends else ""), [value for _, values in ends for value in values]


def _beyond(columns: list[str], values: Key, placeholder: str, sign: str, *, inclusive: bool) -> tuple[str, list[Any]]:
    """What is true of rows on that side of the values, in lexicographic order; an index on the first column helps."""
    column, *rest = columns
    if not rest:
        return f"page.{column} {sign}{'=' * inclusive} {placeholder}", values
    condition, inner = _beyond(rest, values[1:], placeholder, sign, inclusive=inclusive)
    return (
        f"page.{column} {sign}= {placeholder} AND (page.{column} {sign} {placeholder} OR ({condition}))",
        [values[0], values[0], *inner],
    )


def _read(row: Any, width: int) -> tuple[Any, Key, bool]:  # noqa: ANN401 - as the driver has it
    """The row without the values that were added, its key, and whether it is the row that the page began at."""
    names = [*(f"keyset_{position}" for position in range(width)), "keyset_same"]
    item: object = row
    if isinstance(row, Mapping):
        *values, same = [row[name] for name in names]
        item = {name: value for name, value in row.items() if name not in names}
    else:
        *values, same = [row[position - len(names)] for position in range(len(names))]
        if type(row) in {tuple, list}:
            item = row[: -len(names)]
    return item, values, bool(same)


def _columns(by: str | Sequence[str]) -> list[str]:
    columns = [by] if isinstance(by, str) else list(by)
    if not columns:
        raise ValueError("by names at least one column")
    for column in columns:
        if not _NAME.fullmatch(column):
            raise ValueError(
                f"by: {column!r} is not the name of a column of the result: give it one by AS in the query"
            )
    return columns


def _check(sql: str, placeholder: str) -> None:
    if sql.rstrip().endswith(";"):
        raise ValueError("the query ends in a semicolon, but it becomes a subselect: leave it out")
    clauses = [_OWN.search(_outside(reading, sql)) for reading in _READINGS]
    if all(clauses) and (clause := clauses[0]):
        raise ValueError(f"the query has {' '.join(clause[0].upper().split())}, but keyset adds the order itself")
    if placeholder not in {"%s", "?"}:
        raise ValueError(f"placeholder is '%s' or '?', as the driver has it, not {placeholder!r}")


def _outside(reading: re.Pattern[str], sql: str) -> str:
    """The statement without what is in parentheses, strings, quoted names and comments."""
    return "".join(_parts_outside(reading, sql))


def _parts_outside(reading: re.Pattern[str], sql: str) -> Iterator[str]:
    depth = 0
    for part in reading.finditer(sql):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if depth <= 0:
            yield " " if part["hidden"] or part[0] in "()" else part[0]
