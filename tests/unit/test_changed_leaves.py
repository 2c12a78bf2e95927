"""The leaves in which payloads differ."""

from typing import Any

import pytest

from lowkiq_lambda.operate.presentation.changed_leaves import MOST_LINES, changed_leaves, changes_of_texts


def lines(old: object, new: object) -> list[tuple[str, ...]]:
    """Kind, path, old and new of each difference."""
    return [(leaf.kind, leaf.path, leaf.old, leaf.new) for leaf in changed_leaves(old, new).lines]


@pytest.mark.parametrize(
    ("old", "new", "differences"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 2}, [("changed", "a", "1", "2")]),
        ({"a": 1}, {"a": True}, [("changed", "a", "1", "true")]),
        ({"a": None}, {}, [("removed", "a", "null", "")]),
        ({}, {"a": ""}, [("added", "a", "", '""')]),
        ({}, {"a": {"b": [1, {}]}}, [("added", "a.b[0]", "", "1"), ("added", "a.b[1]", "", "{}")]),
        ({"a": [{"b": 1}, 2]}, {"a": [{"b": 3}]}, [("changed", "a[0].b", "1", "3"), ("removed", "a[1]", "2", "")]),
        ({"a": {"b": 1}}, {"a": [1]}, [("changed", "a", '{"b": 1}', "[1]")]),
        ({"a.b": 1, "ü-1": 1}, {"a.b": 2, "ü-1": 2}, [("changed", '["a.b"]', "1", "2"), ("changed", "ü-1", "1", "2")]),
        ("x", 1, [("changed", "", '"x"', "1")]),
        (float("nan"), float("nan"), []),
    ],
)
def test_differences_are_told_by_leaves(old: Any, new: Any, differences: list[tuple[str, ...]]) -> None:
    """Added, removed and changed, by their paths."""
    assert differences == lines(old, new)


def test_differences_are_bounded() -> None:
    """By their number, their depth and their length."""
    most = changed_leaves([*range(MOST_LINES)], [-1] * MOST_LINES)
    assert (MOST_LINES, True) == (len(most.lines), most.is_all)
    more = changed_leaves([*range(MOST_LINES + 1)], [-1] * (MOST_LINES + 1))
    assert (MOST_LINES, False) == (len(more.lines), more.is_all)

    deep: tuple[Any, Any] = (1, 2)
    for _ in range(100):
        deep = ([deep[0]], [deep[1]])
    assert [("changed", "[0]" * 40)] == [line[:2] for line in lines(*deep)]
    ((_, path, _, new),) = lines({}, {"k" * 500: "v" * 500})
    assert (200, 200) == (len(path), len(new))


@pytest.mark.parametrize("text", ["(the mask failed", "[" * 100_000, "1" * 5_000, ""])
def test_other_texts_are_not_compared(text: str) -> None:
    """A text that is cut, not JSON, or that Python cannot read makes no difference to tell."""
    assert changes_of_texts("1", text) is None
    assert changes_of_texts(text, "1") is None
