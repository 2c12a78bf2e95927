"""What is read page by page: APIs, queries, listings."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
C = TypeVar("C")


def pages(fetch: Callable[[C | None], Iterable[tuple[T, C]]], after: C | None = None) -> Iterator[tuple[T, C]]:
    """The items of all pages: `fetch(cursor)` gives the (item, cursor) pairs behind the cursor, and none at the end.

    `fetch` is asked with None first, then with the cursor of the last item of the page before. Raises ValueError where
    an item has the cursor None, which would mean the beginning, or where a page ends at the cursor that it began at, as
    the same page would come for ever.

    Examples:
        >>> list(pages(lambda n: [("item", n + 1)] if n < 3 else [], after=1))
        [('item', 2), ('item', 3)]
    """
    while True:
        cursor = None
        for item, cursor in fetch(after):
            if cursor is None:
                raise ValueError("fetch gave an item the cursor None, which means the beginning: give it another one")
            yield item, cursor
        if cursor is None:
            return
        if cursor == after:
            raise ValueError(f"fetch gave a page that ends at the cursor {cursor!r} that it began at")
        after = cursor
