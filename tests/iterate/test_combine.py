"""Chunks, loops in loops, loops one after the other."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda import CursorError
from lowkiq_lambda.iterate import chunks, csv_rows, keyset, nested, pages, phases, sequence
from tests.iterate.resuming import in_one_go, interrupted

INNER: Final[dict[str, Callable[[int, Any], Any]]] = {
    "sequence": lambda n, after: sequence(range(n), after),
    "csv_rows": lambda n, after: csv_rows(BytesIO(b"a,b\n" + b'"x\n",y\n' * n), after),
    "pages": lambda n, after: pages(lambda c: [(m, (m, "t")) for m in range(c[0] + 1 if c else 0, n)][:2], after),
    "chunks": lambda n, after: chunks(sequence(range(n), after), 2),
    "phases": lambda n, after: phases(after, a=lambda c: sequence(range(n), c), b=lambda c: sequence("b", c)),
    "nested": lambda n, after: nested(lambda c: sequence(range(n), c), sequence_of_two, after=after),
}
"""Loops for one item n of an outer loop."""


def sequence_of_two(n: int, after: Any) -> Any:
    """Two items that know their outer one."""
    return sequence([(n, 0), (n, 1)], after)


@given(st.lists(st.integers()), st.integers(1, 4), st.integers(1, 3))
def test_interrupted_chunks_have_each_item_once(items: list[int], size: int, every: int) -> None:
    """B-6, J-32, J-43: chunks of n, the last one shorter, whole chunks after each interruption."""

    def loop(after: Any) -> Any:
        return chunks(sequence(items, after), size)

    assert [items[start : start + size] for start in range(0, len(items), size)] == in_one_go(loop)
    assert in_one_go(loop) == interrupted(loop, every)


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_a_chunk_of_nothing_is_refused(size: int) -> None:
    """It would go on for ever."""
    with pytest.raises(ValueError, match=f"the size of a chunk is a whole number from 1, not {size}"):
        next(chunks(sequence("a"), size))


@pytest.mark.parametrize("name", INNER)
@given(outer=st.lists(st.integers(0, 4), max_size=4), every=st.integers(1, 5))
def test_interrupted_loops_in_a_loop_have_each_item_once(name: str, outer: list[int], every: int) -> None:
    """J-35: the inner cursor begins anew with each outer item; loops without items are passed over."""

    def loop(after: Any) -> Any:
        return nested(lambda c: sequence(outer, c), INNER[name], after=after)

    assert [(n, item) for n in outer for item, _ in INNER[name](n, None)] == in_one_go(loop)
    assert in_one_go(loop) == interrupted(loop, every)


@pytest.mark.parametrize("name", INNER)
@given(count=st.integers(0, 4), every=st.integers(1, 5))
def test_any_loop_can_be_the_outer_one(name: str, count: int, every: int) -> None:
    """J-35: whatever the cursor of the outer loop is made of, tuples too."""

    def loop(after: Any) -> Any:
        return nested(lambda c: INNER[name](count, c), lambda item, c: sequence([str(item), "!"], c), after=after)

    expected = [(item, text) for item, _ in INNER[name](count, None) for text in (str(item), "!")]
    assert expected == in_one_go(loop) == interrupted(loop, every)


@given(st.lists(st.integers(0, 3), max_size=3), st.lists(st.integers(0, 3), max_size=3), st.integers(1, 5))
def test_three_levels(first: list[int], second: list[int], every: int) -> None:
    """J-35: one cursor per level, and an inner level knows all items around it."""

    def loop(after: Any) -> Any:
        return nested(
            lambda c: sequence(first, c),
            lambda _, c: sequence(second, c),
            lambda a, b, c: sequence(range(a * b), c),
            after=after,
        )

    assert [(a, b, n) for a in first for b in second for n in range(a * b)] == in_one_go(loop)
    assert in_one_go(loop) == interrupted(loop, every)


def test_the_inner_loop_begins_anew_where_the_outer_item_is_gone() -> None:
    """J-35: an inner cursor is never applied to another outer item."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE shops (id INTEGER)")
        db.executemany("INSERT INTO shops VALUES (?)", [(1,), (2,), (3,)])

        def shops(after: Any) -> Any:
            return keyset(db.execute, "SELECT id FROM shops", "id", after, placeholder="?")

        def loop(after: Any) -> Any:
            return nested(shops, lambda shop, c: sequence([f"{shop[0]}{letter}" for letter in "abc"], c), after=after)

        done = [next(loop(None))]
        for _ in range(4):
            done.append(next(loop(done[-1][1])))
        db.execute("DELETE FROM shops WHERE id = 2")

        assert ["1a", "1b", "1c", "2a", "2b"] == [item for (_, item), _ in done]
        assert [[1], [2], 1] == done[-1][1]
        assert ["3a", "3b", "3c"] == [item for (_, item), _ in loop(done[-1][1])]


@pytest.mark.parametrize("cursor", [1, [], [None, 0], [None, 0, 1, 2], {"before": 1}])
def test_a_cursor_of_another_form_is_refused(cursor: Any) -> None:
    """J-35: the number of levels must match."""
    with pytest.raises(CursorError, match=r"is not one of nested: it must be \[before, at, inner\]"):
        next(nested(sequence_of_letters, sequence, after=cursor))


def test_a_cursor_of_fewer_levels_is_refused() -> None:
    """J-35: a job that was begun with two levels does not go on with three."""
    [(_, cursor), *_] = nested(sequence_of_letters, sequence)

    with pytest.raises(CursorError, match="is not one of nested"):
        list(nested(sequence_of_letters, sequence, lambda _, letter, c: sequence(letter, c), after=cursor))


def sequence_of_letters(after: Any) -> Any:
    """Two items."""
    return sequence(["ab", "cd"], after)


def test_one_level_is_refused() -> None:
    """It is no loop in a loop."""
    with pytest.raises(ValueError, match="two levels or more"):
        nested(sequence_of_letters)


@pytest.mark.parametrize("name", INNER)
@given(first=st.integers(0, 4), second=st.integers(0, 4), every=st.integers(1, 5))
def test_interrupted_phases_have_each_item_once(name: str, first: int, second: int, every: int) -> None:
    """Loops one after the other, each with the cursor of its kind; phases without items are passed over."""

    def loop(after: Any) -> Any:
        return phases(after, one=lambda c: INNER[name](first, c), two=lambda c: INNER[name](second, c))

    expected = [item for n in (first, second) for item, _ in INNER[name](n, None)]
    assert expected == in_one_go(loop) == interrupted(loop, every)


def test_a_phase_may_be_added() -> None:
    """A deploy adds one before the others and one behind: a job that is under way does the latter."""
    [_, (_, cursor)] = phases(None, b=sequence_of_letters)

    assert ["ab", "cd"] == [
        item for item, _ in phases(cursor, a=sequence_of_letters, b=sequence_of_letters, c=sequence_of_letters)
    ]


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        ("a", "it must be [name, cursor in it]"),
        (["a"], "it must be [name, cursor in it]"),
        (["c", 1], "there is no phase 'c' among a, b"),
        ([["a"], 1], "there is no phase ['a'] among a, b"),
    ],
)
def test_a_phase_that_is_gone_is_refused(cursor: Any, why: str) -> None:
    """Neither skipped nor begun anew by guessing."""
    with pytest.raises(CursorError) as caught:
        next(phases(cursor, a=sequence_of_letters, b=sequence_of_letters))

    assert f"The cursor {cursor!r} is not one of phases: {why}." == str(caught.value)
