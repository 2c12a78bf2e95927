"""Keys of rows: which values a cursor of a query may have, and pages of rows in the order of their keys."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from lowkiq_lambda.base.errors import CursorError
from lowkiq_lambda.iterate.cursors import pages, strange
from lowkiq_lambda.iterate.pairs import Pairs
from lowkiq_lambda.jobs.cursor_values import in_utc, typed

T = TypeVar("T")

Key: TypeAlias = list[Any]
ReadRows: TypeAlias = Callable[[Key | None, int], list[tuple[T, Key, bool]]]
"""Given a key, or None, and a limit: rows from that key on in order, each with its key, and whether it has that key."""

_KINDS: Final = (str, int | float | Decimal, datetime, date, UUID, bytes)
"""The types of values; those of one line are compared with each other."""
_AWARE: Final = (_KINDS.index(datetime), True)
"""The kind of a time with a zone."""


def pages_of_rows(  # noqa: PLR0913 - all but two are given by name
    helper: str,
    read: ReadRows[T],
    *,
    columns: Sequence[str],
    after: Key | None,
    size: int,
    count: Callable[[], int | None],
) -> Pairs[T, Key]:
    """The rows after a key, `size` of them in each page, as `read` gives them.

    Each page asks for the row of its cursor once more: so it is seen where the database takes keys for equal that
    Python does not, or tells apart some that Python does not. Raises ValueError for a size below 1, CursorError where
    times with zones are not in order.
    """
    if size < 1:
        raise ValueError(f"size is at least 1, not {size}")

    def fetch(cursor: Key | None) -> list[tuple[T, Key]]:
        # One row more than the page: two rows with equal keys may lie on both sides of its end.
        rows = [
            (item, checked_key(key, columns), is_cursor)
            for item, key, is_cursor in read(cursor, size + 1 + (cursor is not None))
        ]
        pairs = [(item, key) for item, key, is_cursor in rows if not is_cursor]
        keys = [key for _, key in pairs]
        if cursor is not None:
            _compare(helper, cursor, [key for _, key, _ in rows or read(None, 1)], columns)
            if len(rows) - len(pairs) > 1:
                raise _alike("for the database two rows have", cursor, columns)
            keys = [cursor, *keys]
        for key, following in pairwise(keys):
            if key == following:
                raise _alike("two rows have", key, columns)
            _check_times(key, following, columns)
        return pairs[:size]

    return Pairs(pages(fetch, after), count)


def key_of(helper: str, key: object, columns: Sequence[str]) -> Key | None:
    """A cursor, or an end of a range from a payload, as values. Raises CursorError if it has another form."""
    if key is None:
        return None
    if not isinstance(key, list | tuple) or len(key) != len(columns):
        raise strange(helper, key, f"it must be a list with a value for each of {', '.join(columns)}")
    values: Key = typed(list(key))
    for column, value in zip(columns, values, strict=True):
        if wrong := unfit(value):
            raise strange(helper, key, f"{column} is {wrong}")
    return values


def unfit(value: object) -> str | None:
    """Why a cursor cannot hold the value, as the end of a sentence; None if it can."""
    if value is None:
        return "NULL in a row, which has no place in the order: leave such rows out, or use COALESCE in the query"
    if not isinstance(value, _KINDS):
        return (
            f"a {type(value).__name__}, which a cursor cannot hold: select it as text that has the same order, "
            f"for example with CAST, and name that column in `by`"
        )
    if isinstance(value, float | Decimal) and not isfinite(value):
        return f"{value}, which a cursor cannot hold"
    return None


def checked_key(key: Key, columns: Sequence[str]) -> Key:
    """The key as a cursor will have it. A time that a clock shows twice is equal to itself in one zone alone."""
    for column, value in zip(columns, key, strict=True):
        if wrong := unfit(value):
            raise ValueError(f"{column} is {wrong}")
    return [in_utc(value) for value in key]


def _compare(helper: str, cursor: Key, keys: Sequence[Key], columns: Sequence[str]) -> None:
    """Raises CursorError for a cursor whose values are of other types than those of the rows."""
    for column, value, sample in zip(columns, cursor, keys[0] if keys else cursor, strict=True):
        if _kind(value) != _kind(sample):
            zone = "" if not isinstance(sample, datetime) else " with a zone" if sample.tzinfo else " without a zone"
            raise strange(helper, cursor, f"{column} is a {type(sample).__name__}{zone} in the rows")


def _check_times(key: Key, following: Key, columns: Sequence[str]) -> None:
    """Raises CursorError if the later row has the earlier time: such a loop skips rows, or repeats them for ever.

    Other values may have an order in the database that Python does not know.
    """
    column, value, later = next(one for one in zip(columns, key, following, strict=True) if one[1] != one[2])
    if _kind(value) == _kind(later) == _AWARE and later < value:
        raise CursorError(
            f"{column}: the database sorts {later} behind {value}, so it compares times with zones as text: keep them "
            "in UTC, or in a column type for times."
        )


def _kind(value: object) -> tuple[int, bool]:
    kind = next((position for position, types in enumerate(_KINDS) if isinstance(value, types)), -1)
    return kind, isinstance(value, datetime) and value.utcoffset() is not None


def _alike(who: str, key: Key, columns: Sequence[str]) -> ValueError:
    return ValueError(f"{who} {key!r} in {', '.join(columns)}: add a column that tells them apart")
