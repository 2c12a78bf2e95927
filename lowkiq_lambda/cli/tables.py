"""Tables of markdown, and the numbers in them."""

from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A markdown table, its first column to the left."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def whole(value: float) -> str:
    """Without decimals, in groups of three digits."""
    return f"{value:,.0f}"
