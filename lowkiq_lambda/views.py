"""What people look at, beside jobs themselves: pages of them, and numbers."""

from collections.abc import Iterable
from typing import Literal, TypeAlias, TypedDict, TypeVar

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
    `lag`: how long the oldest id that is due has waited, those in flight too; 0 where none is due. `oldest_due_age`:
    the same of those that nobody has claimed; it grows where nobody drains. Counted since the queue was made:
    `processed` (done), `failed` (failures that counted, of which `dead` were an id's last), and `payloads` (handed to
    the handler and done).
    """

    length: int
    fresh: int
    retries: int
    busy: int
    morgue_length: int
    lag: float
    oldest_due_age: float
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


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """A Redis node, as far as it tells: what it does not tell is empty, or None.

    Memory is in bytes, `uptime` in seconds; `memory_limit` 0 means none.
    """

    name: str = ""
    version: str = ""
    role: str = ""
    uptime: float | None = None
    clients: int | None = None
    memory: int | None = None
    memory_peak: int | None = None
    memory_limit: int | None = None
    eviction_policy: str = ""
    replicas: int | None = None

    @property
    def evicts(self) -> bool:
        """Whether it may throw jobs away when its memory is full."""
        return self.eviction_policy not in {"", "noeviction"}


Span: TypeAlias = Literal["10m", "1h", "6h", "72h"]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """How many ids were processed, and how many failed, in each `step` seconds from `began_at` (Unix seconds) on."""

    began_at: float
    step: int
    processed: tuple[int, ...]
    failed: tuple[int, ...]


class Quantiles(msgspec.Struct, frozen=True):
    """Half of what was measured took at most `half`, nineteen in twenty at most `most`; seconds, to a tenth or so."""

    half: float
    most: float


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue did of late. Rates are ids in a second, the mean of the last half minute.

    `took`: how long batches took, `waited`: how long the first id of each had been due when it began; both of the
    last hour or half of it, None where nothing was performed.
    """

    series: Series
    processed_rate: float
    failed_rate: float
    took: Quantiles | None
    waited: Quantiles | None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """All queues by name, and the servers that hold them, at one moment (Unix seconds by a server's clock)."""

    at: float
    queues: dict[str, QueueMetrics]
    pasts: dict[str, Past]
    servers: tuple[ServerView, ...]
    mismatched: frozenset[str] = frozenset()
    """Queues that were made with another declaration than the app has."""
