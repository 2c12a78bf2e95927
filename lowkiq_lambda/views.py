"""What people look at, beside jobs themselves: pages of them, and numbers."""

from collections.abc import Iterable
from typing import TypedDict, TypeVar

import msgspec

Shown = TypeVar("Shown")


class Page(list[Shown]):
    """A part of a long list.

    `next` is given as `after` to see what follows; None at the end of the list. `cut`: the search ended before it
    had seen everything, so something may be missing.
    """

    def __init__(self, shown: Iterable[Shown], next: str | None = None, *, cut: bool = False) -> None:  # noqa: A002 - what it is for a reader
        super().__init__(shown)
        self.next = next
        self.cut = cut


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, or one shard of it, in numbers: ids, but for `payloads`. `lag` is seconds.

    `length`: ids that wait, the `fresh` ones and the `retries` (those that have failed). `busy`: ids in flight.
    `lag`: how long the oldest id that is due has waited, those in flight too; 0 where none is due. Counted since the
    queue was made: `processed` (done), `failed` (failures that counted, of which `dead` were an id's last), and
    `payloads` (handed to the handler and done).
    """

    length: int
    fresh: int
    retries: int
    busy: int
    morgue_length: int
    lag: float
    processed: int
    failed: int
    dead: int
    payloads: int


class QueueMetrics(Metrics, frozen=True, kw_only=True):
    """A queue in numbers, and its shards, in their order. The lag is that of its most lagging shard."""

    shards: tuple[Metrics, ...]


class Numbers(TypedDict):
    """Lengths are in ids, the lag in seconds."""

    length: int
    morgue_length: int
    lag: float


class Stats(TypedDict):
    """All queues: sums, and the largest lag; and each by its name."""

    total: Numbers
    by_worker: dict[str, Numbers]
