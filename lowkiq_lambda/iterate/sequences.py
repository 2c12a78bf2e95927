"""What can be counted: sequences, and shares of them for jobs that work side by side."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from lowkiq_lambda.iterate.cursors import is_count, strange

T = TypeVar("T")


def sequence(items: Sequence[T], after: int | None = None) -> Iterator[tuple[T, int]]:
    """The items of a list or a range; the cursor is an item's index.

    `range(n)` counts, `[x]` is done once. Items must not move: between two runs of a job others may only be added at
    the end. Raises CursorError if the cursor is not the index of an item.

    Examples:
        >>> list(sequence(["a", "b", "c"], after=0))
        [('b', 1), ('c', 2)]
    """
    if after is not None and not is_count(after):
        raise strange("sequence", after, "an index is a whole number from 0")
    if after is not None and after >= len(items):
        raise strange("sequence", after, f"there are only {len(items)} items")
    for index in range(0 if after is None else after + 1, len(items)):
        yield items[index], index


def share(items: Sequence[T], part: Sequence[int]) -> Sequence[T]:
    """The items of part `[i, n]`: n contiguous shares, of lengths that differ by one at most; i counts from 0.

    `parts` makes such jobs. Raises ValueError where `part` is not a pair with 0 <= i < n.

    Examples:
        >>> [list(share(range(10), [i, 3])) for i in range(3)]
        [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]
    """
    if len(part) != len(("i", "n")) or not all(map(is_count, part)) or part[0] >= part[1]:
        raise ValueError(f"a part is [i, n] with whole numbers and 0 <= i < n, not {part!r}")
    position, count = part
    return items[len(items) * position // count : len(items) * (position + 1) // count]


def parts(job_id: str, request: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Jobs for `push_many` that share one request: ids `job_id/0`, `job_id/1` and so on.

    Each payload is the request with `"part": [i, n]`. As the number is in the payload, a later deploy with another
    number changes no job that is under way. Raises ValueError where `count` is not a whole number from 1, or the
    request has a "part" already.

    Examples:
        >>> parts("import", {"file": "a.csv"}, 2)[1]
        {'id': 'import/1', 'payload': {'file': 'a.csv', 'part': [1, 2]}}
    """
    if not is_count(count) or count < 1:
        raise ValueError(f"the number of parts is a whole number from 1, not {count!r}")
    if "part" in request:
        raise ValueError('the request has a "part" already: a part is not divided again')
    return [
        {"id": f"{job_id}/{position}", "payload": {**request, "part": [position, count]}} for position in range(count)
    ]
