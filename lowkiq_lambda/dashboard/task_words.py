"""Words of pages about tasks and their items."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.rendering import WIDTH
from lowkiq_lambda.operate.presentation.formatting import exact
from lowkiq_lambda.tasks.views import ChildState, State, Status

STATES: Final[Mapping[State, str]] = {
    "open": "It takes pushes. When it is closed and all its items have ended, it is complete.",
    "closed": "Only its own running items may push more. When all items have ended, it is complete.",
    "completing": "All items have ended, and the job of its on_complete is being pushed.",
    "completed": "",
    "cancelled": "It takes no pushes, and has no on_complete. What waits is deleted; what runs ends by itself.",
    "expired": "It is being deleted.",
}
MEANINGS: Final[Mapping[Status, str]] = {
    "enqueued": "waits, for the first time or again",
    "running": "in flight",
    "done": "succeeded",
    "failed": "its handler said that it cannot succeed",
    "dead": "in the morgue: its retries are used up, or it was killed",
    "cancelled": "somebody deleted it, or cancelled the task",
    "superseded": "a newer payload of its id took its place",
    "merged": "shares the payload of another item, and so its fate",
    "lost": "its job is gone: a key of Redis was evicted or deleted by hand",
}
KINDS: Final[Mapping[Status, str]] = {
    "failed": "bad",
    "dead": "dead",
    "lost": "warn",
    "running": "accent",
    "done": "good",
}
"""How a status is marked, where it is."""
CHILD_WORDS: Final[Mapping[ChildState, str]] = {
    "open": "",
    "completed": "",
    "succeeded": "good",
    "cancelled": "warn",
    "abandoned": "warn",
}
"""How the state of a task below another one is marked."""
TROUBLES: Final[tuple[Status, ...]] = ("failed", "dead", "lost")
"""Statuses in which nobody wants an item to end."""
_BAR: Final[tuple[Status, ...]] = (
    "failed",
    "dead",
    "lost",
    "done",
    "merged",
    "superseded",
    "cancelled",
    "running",
    "enqueued",
)
_LEAST: Final = 6
"""The width of the smallest part, so that one item of a million is seen."""


class BarPart(msgspec.Struct, frozen=True):
    """A status in the bar: `x` and `width` in a box of WIDTH."""

    status: Status
    count: int
    x: float
    width: float


def bar(counts: Mapping[Status, int]) -> list[BarPart]:
    """The parts of the bar by status, what failed first.

    >>> [(part.status, part.x, part.width) for part in bar({"done": 3, "failed": 1})]
    [('failed', 0.0, 250.0), ('done', 250.0, 750.0)]
    """
    return [*_parts({status: counts.get(status, 0) for status in _BAR})]


def bar_words(counts: Mapping[Status, int]) -> str:
    """The bar in words.

    >>> bar_words({"done": 1_200, "failed": 1, "dead": 0})
    '1 failed, 1,200 done'
    """
    return ", ".join(f"{exact(part.count)} {part.status}" for part in bar(counts)) or "no items"


def _parts(counts: Mapping[Status, int]) -> Iterator[BarPart]:
    nonzero = {status: count for status, count in counts.items() if count}
    total = sum(nonzero.values())
    widths = {status: max(_LEAST, WIDTH * count / total) for status, count in nonzero.items()}
    scale, x = WIDTH / sum(widths.values()) if widths else 1.0, 0.0
    for status, width in widths.items():
        yield BarPart(status, nonzero[status], round(x, 1), round(width * scale, 1))
        x += width * scale
