"""Helpers that are made of others."""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any, TypeVar, overload

import msgspec

from lowkiq_lambda.iterate.cursors import Cursor, Level, is_count, strange
from lowkiq_lambda.iterate.pairs import Pairs
from lowkiq_lambda.jobs.cursor_values import plain
from lowkiq_lambda.jobs.retry import Later

T = TypeVar("T")
C = TypeVar("C")
A = TypeVar("A")
B = TypeVar("B")

_encoder = msgspec.json.Encoder(order="sorted")


def chunks(pairs: Iterable[tuple[T, C]], size: int) -> Pairs[list[T], C]:
    """Lists of `size` items, the last one shorter; the cursor of a chunk is that of its last item.

    A crash repeats a whole chunk, so take chunks where many items cost as much as one: a bulk insert, a call of an API.
    The size may change between runs. `total` counts chunks. Raises ValueError if the size is not a whole number
    from 1.

    Examples:
        >>> from lowkiq_lambda import iterate
        >>> list(iterate.chunks(iterate.sequence("abcde"), 2))
        [(['a', 'b'], 1), (['c', 'd'], 3), (['e'], 4)]
    """
    if not is_count(size) or size < 1:
        raise ValueError(f"the size of a chunk is a whole number from 1, not {size!r}")
    start = getattr(pairs, "position", 0)

    def total() -> int | None:
        items = getattr(pairs, "total", None)
        return None if items is None else -(-(items - start) // size)

    return Pairs(_chunks(iter(pairs), size), total, measure=lambda: getattr(pairs, "fraction", None))


def _chunks(rest: Iterator[tuple[T, C]], size: int) -> Iterator[tuple[list[T], C]]:
    while chunk := list(islice(rest, size)):
        yield [item for item, _ in chunk], chunk[-1][1]


@overload
def nested(
    outer: Callable[[Any], Iterable[tuple[A, Any]]],
    inner: Callable[[A, Any], Iterable[tuple[T, Any]]],
    /,
    *,
    after: Cursor = None,
) -> Pairs[tuple[A, T], list[Any]]: ...
@overload
def nested(
    outer: Callable[[Any], Iterable[tuple[A, Any]]],
    middle: Callable[[A, Any], Iterable[tuple[B, Any]]],
    inner: Callable[[A, B, Any], Iterable[tuple[T, Any]]],
    /,
    *,
    after: Cursor = None,
) -> Pairs[tuple[A, B, T], list[Any]]: ...
@overload
def nested(*levels: Level[Any], after: Cursor = None) -> Pairs[tuple[Any, ...], list[Any]]: ...
def nested(*levels: Level[Any], after: Cursor = None) -> Pairs[tuple[Any, ...], list[Any]]:
    """A loop in a loop: tuples with the item of each level; the cursor is [before, at, inner].

    `outer(after)` gives pairs, `inner(item, after)` those of one item, a third level gets both items. `before` is the
    cursor of the outer item before this one, `at` that of this one. Where another outer item comes first after a pause,
    because the old one was removed, its inner items begin at the first. Raises ValueError for fewer than two levels,
    CursorError if the cursor has another form, and what the levels raise.

    Examples:
        >>> from lowkiq_lambda import iterate
        >>> words = ["ab", "cd"]
        >>> letters = iterate.nested(lambda c: iterate.sequence(words, c), iterate.sequence, after=[None, 0, 0])
        >>> list(letters)
        [(('ab', 'b'), [None, 0, 1]), (('cd', 'c'), [0, 1, 0]), (('cd', 'd'), [0, 1, 1])]
    """
    if len(levels) < len(("outer", "inner")):
        raise ValueError("nested takes two levels or more")
    return Pairs(_nested((), levels, after))


def _nested(
    items: tuple[Any, ...],
    levels: tuple[Level[Any], ...],
    after: Cursor,
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    level, *rest = levels
    if not rest:
        for item, cursor in level(*items, after):
            yield (*items, item), cursor
        return
    before, at, inner = _parts(after)
    for item, cursor in level(*items, before):
        start = inner if inner is not None and _equal(cursor, at) else None
        inner = None
        for position, inside in _nested((*items, item), tuple(rest), start):
            yield position, [before, cursor, inside]
        before = cursor


def _parts(cursor: Cursor) -> list[Any]:
    if cursor is None:
        return [None, None, None]
    if not isinstance(cursor, list | tuple) or len(cursor) != len(("before", "at", "inner")):
        raise strange("nested", cursor, "it must be [before, at, inner] for each level but the last")
    return list(cursor)


def _equal(cursor: object, stored: object) -> bool:
    """Whether a cursor is the stored one: tuples have become lists on the way."""
    return _encoder.encode(plain(cursor)) == _encoder.encode(plain(stored))


def phases(after: Cursor = None, **iterators: Callable[[Any], Iterable[tuple[T, Any]]]) -> Pairs[T, list[Any]]:
    """Loops one after the other, by name; the cursor is [name, cursor in it].

    Each takes `after` and gives pairs. A phase may be added while jobs are under way, but not renamed or
    removed while a job is in it: raises CursorError for a name that is not there.

    Examples:
        >>> from lowkiq_lambda import iterate
        >>> def load(after): return iterate.sequence(["l0", "l1"], after)
        >>> def check(after): return iterate.sequence(["c0"], after)
        >>> list(iterate.phases(["load", 0], load=load, check=check))
        [('l1', ['load', 1]), ('c0', ['check', 0])]
    """
    names = list(iterators)
    first, inner = 0, None
    if after is not None:
        if not isinstance(after, list | tuple) or len(after) != len(("name", "inner")):
            raise strange("phases", after, "it must be [name, cursor in it]")
        name, inner = after
        if name not in names:
            raise strange("phases", after, f"there is no phase {name!r} among {', '.join(names)}")
        first = names.index(name)
    return Pairs(_phases({name: iterators[name] for name in names[first:]}, inner))


def _phases(
    iterators: dict[str, Callable[[Any], Iterable[tuple[T, Any]]]], inner: Cursor
) -> Iterator[tuple[T, list[Any]]]:
    for name, iterator in iterators.items():
        for item, cursor in iterator(inner):
            yield item, [name, cursor]
        inner = None


def throttled(pairs: Iterable[tuple[T, C]], when: Callable[[], object], seconds: float | timedelta) -> Pairs[T, C]:
    """The same pairs, with a question before each item: where `when()` is true, the job goes on in `seconds`.

    A text that `when` returns is the reason that people see. Raises Later.

    Examples:
        >>> from lowkiq_lambda import iterate
        >>> list(iterate.throttled(iterate.sequence("ab"), lambda: False, 30))
        [('a', 0), ('b', 1)]
    """

    def asked() -> Iterator[tuple[T, C]]:
        for pair in pairs:
            if reason := when():
                raise Later(seconds, reason if isinstance(reason, str) else "throttled")
            yield pair

    return Pairs(
        asked(),
        lambda: getattr(pairs, "total", None),
        position=getattr(pairs, "position", 0),
        measure=lambda: getattr(pairs, "fraction", None),
    )
