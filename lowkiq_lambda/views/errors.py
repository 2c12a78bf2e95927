"""Errors that are alike, as people see them."""

from typing import Literal, TypeAlias

import msgspec

ErrorGrouping: TypeAlias = Literal["fingerprint", "line", "type"]
"""Errors are alike by their fingerprint, by their first line, or by their type alone."""

SLOTS = 24
"""Hours of the last day."""


class ErrorCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Last errors of ids that are alike: `waiting` of ids that are retried, `dead` of ids in the morgue.

    `example`: the first line of one of them. `first_at`, `last_at`: of their failures that are kept, five of each id,
    the oldest and the newest (Unix seconds); None if none is. `hours`: how many of the ids failed last in each of the
    last 24 hours, the oldest hour first.
    """

    example: str
    waiting: int
    dead: int
    first_at: float | None
    last_at: float | None
    hours: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many ids that are retried, and in the morgue, have such an error: one that is in both counts in each."""
        return self.waiting + self.dead


class QueueErrors(ErrorCounts, frozen=True, kw_only=True):
    """Those of one queue."""

    queue: str


class ErrorGroup(ErrorCounts, frozen=True, kw_only=True):
    """Last errors of ids of all `queues` that are alike, and of each queue, the one with most first.

    `line`: their common text: the first line without the values that differ each time, the first line, or the type.
    `fingerprint`: 16 hex digits, by which a filter finds these alone; None if they are not grouped by it.
    """

    type: str
    line: str
    fingerprint: str | None = None
    queues: tuple[QueueErrors, ...]


class ErrorGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Errors in groups, the largest group first.

    `counted`: how many errors were read, of about `total`. `next`: with it the next call reads further errors, and
    counts only these; None if none are left. `others`: how many groups the limit left out. `skipped`: queues whose
    declarations in Redis differ from the app's, by name, each with a sentence.
    """

    groups: list[ErrorGroup]
    counted: int
    total: int
    next: str | None = None
    others: int = 0
    skipped: dict[str, str] = {}
