"""What people look at, beside jobs themselves: pages of them, and numbers."""

from collections.abc import Iterable, Sequence
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

    `length`: ids that wait, the `fresh` ones and the `retries` (those that have failed). `in_flight`: ids in flight.
    `lag`: how long the oldest id that is due has waited, those in flight too; 0 where none is due. `oldest_due_age`:
    the same of those that nobody holds: that wait, or that a dead holder left; it grows where nobody drains. Neither
    counts what is in a paused shard. Counted since the queue was made: `done`, `failed` (failures that
    counted, of which `buried` were an id's last), and `payloads` (handed to the handler and done). `paused`: how many
    shards are; `paused_lag`: the lag of those. `damaged`: records that were set aside, as nobody could
    read them.
    """

    length: int
    fresh: int
    retries: int
    in_flight: int
    morgue_length: int
    lag: float
    oldest_due_age: float
    done: int
    failed: int
    buried: int
    payloads: int
    paused: int
    paused_lag: float
    damaged: int


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

    Memory is in bytes, `uptime` in seconds; `memory_limit` 0 means none. `address`: host and port of a cluster's node,
    empty where it is the only one.
    """

    address: str = ""
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
    """How many ids were done, and how many failed, in each `step` seconds from `began_at` (Unix seconds) on."""

    began_at: float
    step: int
    done: tuple[int, ...]
    failed: tuple[int, ...]


class Quantiles(msgspec.Struct, frozen=True):
    """The median and the 95th percentile, in seconds, to about a tenth of the value."""

    p50: float
    p95: float


class QueueHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue did of late. Rates are ids in a second, the mean of the last half minute.

    `took`: how long batches took, `waited`: how long the first id of each had been due when it began; both of the
    last hour or half of it, None where nothing was performed.
    """

    series: Series
    done_rate: float
    failed_rate: float
    took: Quantiles | None
    waited: Quantiles | None


class QueueOverview(msgspec.Struct, frozen=True, kw_only=True):
    """A queue at a glance: what it holds and what it did of late.

    `mismatched`: it was made with another declaration than the app has.
    """

    name: str
    shards_count: int
    now: Metrics
    history: QueueHistory
    mismatched: bool


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The servers, and the queues that they hold, at one moment (Unix seconds by a server's clock).

    The queues may come one by one, and only once.
    """

    at: float
    servers: Sequence[ServerView]
    queues: Iterable[QueueOverview]


class DamagedRecord(msgspec.Struct, frozen=True, kw_only=True):
    r"""A record that was set aside, as nobody could read it: at `at` (Unix seconds), from the key of that name.

    `number`: of all that were set aside in the shard. `id`: of the job, or the field; what is no UTF-8 in it is
    written as `\x..`, and it is empty where the record has none. `data`: its bytes, the first of `size`.
    """

    shard: int
    number: int
    at: float
    key: str
    id: str
    why: str
    data: bytes
    size: int


class ShardDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A shard and who holds it. Times are Unix seconds by the server's clock, `at` is when this was so.

    `length`, `retries`, `in_flight`, `morgue_length`, `lag`: as in `Metrics`, but `lag` is told of
    a paused shard, too.
    `suspects`: ids that run alone, and first.
    `due_at`: when the first of what waits is due. `owner`, `acquired_at` and `token` are those of the holder, or of
    the last one there was. `held_until`: when the lease ends; 0 where it was given back. `gave_up`: nothing that
    the holder writes is accepted any more, as its process is about to exit or somebody evicted it; the shard is free at
    `held_until`. `woken_until`: somebody was told to start a drain, and has until then to come.
    """

    index: int
    at: float
    length: int = 0
    retries: int = 0
    in_flight: int = 0
    morgue_length: int = 0
    suspects: int = 0
    lag: float = 0.0
    due_at: float | None = None
    token: int = 0
    owner: str = ""
    acquired_at: float | None = None
    held_until: float = 0.0
    gave_up: bool = False
    paused_until: float | None = None
    woken_until: float | None = None

    @property
    def is_held(self) -> bool:
        """Whether somebody has the lease."""
        return self.held_until > self.at

    @property
    def is_paused(self) -> bool:
        """Whether nobody is to take the lease."""
        return self.paused_until is not None and self.paused_until > self.at

    @property
    def lease_left(self) -> float:
        """Seconds until the lease ends, unless it is renewed."""
        return max(0.0, self.held_until - self.at)

    @property
    def lost_its_holder(self) -> bool:
        """Whether ids are in flight that nobody performs any more."""
        return self.in_flight > 0 and not self.is_held


class JobExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What decides when an id runs, read at one moment.

    `perform_in`: when it is due; None where nothing waits under it. `ahead`: ids that come before it.
    `suspects_ahead`: of ids that run alone, how many come before this one; None where it is no such id itself.
    `strikes`: how often nothing more was heard of its process while it ran alone. `buried_at`: of its last
    burial; None where nothing of it is in the morgue. `closed`: its shard belongs to an older declaration.
    `least_version`: the shard wants a library of this contract version at least.
    """

    shard: ShardDetails
    perform_in: float | None = None
    retry_count: float = -1.0
    ahead: int = 0
    suspects_ahead: int | None = None
    strikes: int = 0
    in_flight: bool = False
    buried_at: float | None = None
    closed: bool = False
    least_version: int | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether nothing waits, runs or lies in the morgue under the id."""
        return self.perform_in is None and not self.in_flight and self.buried_at is None
