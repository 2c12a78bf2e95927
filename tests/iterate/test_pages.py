"""Pages of an API."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.iterate import pages
from tests.iterate.resuming import in_one_go, interrupted


@given(st.lists(st.integers(), unique=True), st.integers(1, 4), st.integers(1, 5))
def test_interrupted_pages_have_each_item_once(items: list[int], size: int, every: int) -> None:
    """J-37: whatever has an order can be read page by page."""
    ordered = sorted(items)

    def fetch(cursor: int | None) -> list[tuple[int, int]]:
        return [(item, item) for item in ordered if cursor is None or item > cursor][:size]

    assert ordered == in_one_go(lambda after: pages(fetch, after))
    assert ordered == interrupted(lambda after: pages(fetch, after), every)


def test_an_api_with_tokens_has_pages_as_items() -> None:
    """The token of the next page is the cursor, and the last page has one that means the end."""
    answers: dict[str | None, dict[str, Any]] = {
        None: {"items": [1, 2], "next": "t1"},
        "t1": {"items": [3], "next": None},
    }

    def fetch(token: str | None) -> list[tuple[list[int], str]]:
        if token == "end":  # noqa: S105 - a mark
            return []
        answer = answers[token]
        return [(answer["items"], answer["next"] or "end")]

    assert [[1, 2], [3]] == in_one_go(lambda after: pages(fetch, after))
    assert [[1, 2], [3]] == interrupted(lambda after: pages(fetch, after), 1)


def test_an_item_without_a_cursor_is_refused() -> None:
    """None would begin anew, for ever."""
    with pytest.raises(ValueError, match="the cursor None, which means the beginning"):
        list(pages(lambda _: [("a", None)]))


def test_a_page_that_leads_to_itself_is_refused() -> None:
    """An API that gives the same token again would never end."""
    with pytest.raises(ValueError, match="ends at the cursor 'a' that it began at"):
        list(pages(lambda _: [("item", "a")]))
