"""What can be counted: sequences, and shares of them for jobs that work side by side."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from lowkiq_lambda.iterate.cursors import is_count, strange
from lowkiq_lambda.iterate.pairs import Pairs

T = TypeVar("T")


def sequence(items: Sequence[T], after: int | None = None, *, shrinks: bool = False) -> Pairs[T, int]:
    """The items of a list or a range; the cursor is an item's index.

    `range(n)` counts, `[x]` is done once. Items must not move: between two runs of a job others may only be added at
    the end, or, with `shrinks`, removed there. Raises CursorError if the cursor is not the index of an item; with
    `shrinks` the loop ends if there are fewer.

    Examples:
        >>> list(sequence(["a", "b", "c"], after=0))
        [('b', 1), ('c', 2)]
    """
    if after is not None and not is_count(after):
        raise strange("sequence", after, "an index is a whole number from 0")
    if after is not None and after >= len(items) and not shrinks:
        raise strange("sequence", after, f"there are only {len(items)} items")
    start = 0 if after is None else min(after + 1, len(items))
    pairs = ((items[index], index) for index in range(start, len(items)))
    return Pairs(pairs, lambda: len(items), position=start)


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


def parts(
    job_id: str,
    request: Mapping[str, Any],
    count: int | None = None,
    *,
    ranges: Sequence[Sequence[Any]] | None = None,
) -> list[dict[str, Any]]:
    """Jobs for `push_many` that share one request: ids `job_id/0`, `job_id/1` and so on.

    Each payload is the request with `"part": [i, n]`, and, if `ranges` of `key_ranges` are given in place of `count`,
    with its `"range": [after, until]`. As they are in the payload, a later deploy with another number changes no job
    that is under way. Raises ValueError where `count` is not a whole number from 1, or the request has a "part" or a
    "range" already.

    Examples:
        >>> parts("import", {"file": "a.csv"}, 2)[1]
        {'id': 'import/1', 'payload': {'file': 'a.csv', 'part': [1, 2]}}
    """
    if (count is None) == (ranges is None):
        raise ValueError("parts takes either a count or ranges")
    count = len(ranges) if ranges is not None else count
    if count is None or not is_count(count) or count < 1:
        raise ValueError(f"the number of parts is a whole number from 1, not {count!r}")
    added: list[dict[str, Any]] = [{"part": [position, count]} for position in range(count)]
    for own, (after, until) in zip(added, ranges or (), strict=False):
        own["range"] = [after, until]
    for name in added[0]:
        if name in request:
            raise ValueError(f'the request has a "{name}" already: a part is not divided again')
    return [{"id": f"{job_id}/{position}", "payload": {**request, **own}} for position, own in enumerate(added)]
