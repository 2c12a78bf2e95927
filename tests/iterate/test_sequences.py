"""Lists, ranges, and their shares."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda import CursorError
from lowkiq_lambda.iterate import parts, sequence, share
from tests.iterate.resuming import in_one_go, interrupted


@given(st.lists(st.integers()) | st.integers(0, 30).map(range), st.integers(1, 5))
def test_an_interrupted_sequence_has_each_item_once(items: Sequence[int], every: int) -> None:
    """J-30: once, times and array, by index."""
    assert list(items) == in_one_go(lambda after: sequence(items, after))
    assert list(items) == interrupted(lambda after: sequence(items, after), every)


def test_a_sequence_that_grew_goes_on_with_what_is_new() -> None:
    """Items that were added at the end are met."""
    assert [("c", 2)] == list(sequence(["a", "b", "c"], after=1))


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        ("1", "an index is a whole number from 0"),
        (1.0, "an index is a whole number from 0"),
        (True, "an index is a whole number from 0"),
        (-1, "an index is a whole number from 0"),
        ([0, 1], "an index is a whole number from 0"),
        (2, "there are only 2 items"),
    ],
)
def test_a_cursor_that_is_not_an_index_is_refused(cursor: Any, why: str) -> None:
    """J-30: the type is checked; nothing is skipped or repeated by guessing."""
    with pytest.raises(CursorError) as caught:
        next(sequence("ab", cursor))

    assert f"The cursor {cursor!r} is not one of sequence: {why}." == str(caught.value)


def test_a_long_cursor_is_cut_in_the_error() -> None:
    """An error stays readable, whatever the cursor."""
    with pytest.raises(CursorError) as caught:
        next(sequence("ab", "x" * 60_000))  # type: ignore[arg-type]  # as JSON has it

    assert len(str(caught.value)) < 300


@given(st.integers(0, 200), st.integers(1, 20))
def test_shares_are_the_whole(length: int, count: int) -> None:
    """J-36: each item is in one share, in order, and shares differ in length by one at most."""
    shares = [share(range(length), [position, count]) for position in range(count)]

    assert list(range(length)) == [item for one in shares for item in one]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("part", [[], [0], [1, 1], [2, 1], [-1, 2], [0, 0], ["0", 2], [0, 1, 2], [0.0, 2]])
def test_a_part_that_cannot_be_is_refused(part: Any) -> None:
    """A typing error must not leave out items."""
    with pytest.raises(ValueError, match=r"a part is \[i, n\]"):
        share("abc", part)


def test_parts_are_jobs_that_know_their_number() -> None:
    """J-36: the number of parts is frozen in the payload, so a deploy cannot change it."""
    jobs = parts("import-7", {"file": "a.csv"}, 3)

    assert ["import-7/0", "import-7/1", "import-7/2"] == [job["id"] for job in jobs]
    assert [{"file": "a.csv", "part": [position, 3]} for position in range(3)] == [job["payload"] for job in jobs]
    assert list("abcdefg") == [item for job in jobs for item in share("abcdefg", job["payload"]["part"])]


def test_parts_that_cannot_be_are_refused() -> None:
    """None at all, and parts of a part, are mistakes."""
    with pytest.raises(ValueError, match="a whole number from 1, not 0"):
        parts("a", {}, 0)
    with pytest.raises(ValueError, match="a part is not divided again"):
        parts("a", {"part": [0, 2]}, 2)
