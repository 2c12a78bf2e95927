"""Queues in numbers: now, lately, and beside the servers that hold them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NotRequired, TypeAlias, TypedDict

import msgspec


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, or one shard of it, in numbers. The numbers count ids, except `payloads`. `lag` is in seconds.

    `length`: ids that wait, the `fresh` ones and the `retries` (those that have failed). Among them: `started`, those
    that go on from a cursor, `blocked`, those that wait for an operator to unblock them (`Worker.dead_head`), `due`,
    those whose time has come, and `paused_due`, those whose time has come while their shard or tenant is paused.
    `in_flight`: ids in flight; `in_flight_lag`: since when the first of them was due.
    `lag`: how long the oldest due id has waited, ids in flight included; 0 if no id is due. `oldest_due_age`: the same
    of the ids without a holder, which wait or were left by a dead holder; it grows while no process drains. Neither
    counts ids that are kept back: `paused_lag` is the lag of paused shards and tenants, `limited_lag` the lag of ids
    that wait for a limit of their queue or for the rate of their tenant. `paused`: the number of paused shards;
    `limited`: the number of shards whose limits an operator has set.
    Counted since the queue was made: `done`, `failed` (failures that counted, of which `dead` were an id's last),
    `rejected` (ended with `Rejected`, which is not a failure, or lost a payload that a rule `discarded`),
    `checkpointed` (runs that ended before their job, with progress; the job goes on later), `payloads` (handed to the
    handler and done), `superseded` (payloads that a newer one of their id replaced), `expired` (payloads whose time was
    over), `cancelled` (ids that an operator has stopped for good), and `trimmed` (payloads that a bound of the morgue
    removed: they are gone). `damaged`: records that were set aside. `calls` (of the handler that ended), `busy` (the
    seconds that these took), `computing` (those of them in which a processor worked, as far as plain handlers show
    it), and `held` (the seconds that shards were held). `arrivals` grows by one with each payload that is pushed, and
    jumps when the queue moves: the difference of two looks counts. `holders`: the shards that are held now;
    `wanted_holders`: with those that are free and have due work which may begin, as no pause and no limit keeps it.
    """

    length: int
    fresh: int
    retries: int
    started: int
    in_flight: int
    morgue_length: int
    lag: float
    oldest_due_age: float
    done: int
    failed: int
    dead: int
    rejected: int
    checkpointed: int
    payloads: int
    paused: int
    paused_lag: float
    damaged: int
    blocked: int = 0
    superseded: int = 0
    trimmed: int = 0
    limited: int = 0
    limited_lag: float = 0.0
    in_flight_lag: float = 0.0
    discarded: int = 0
    expired: int = 0
    cancelled: int = 0
    due: int = 0
    paused_due: int = 0
    calls: int = 0
    busy: float = 0.0
    computing: float = 0.0
    held: float = 0.0
    arrivals: int = 0
    holders: int = 0
    wanted_holders: int = 0


class QueueMetrics(Metrics, frozen=True, kw_only=True):
    """A queue in numbers, and its shards, in their order. The lag is that of its most lagging shard."""

    shards: tuple[Metrics, ...]


class QueueScale(msgspec.Struct, frozen=True, kw_only=True):
    """How many holders a queue could use now; see `Scale`."""

    wanted: int
    oldest_due_age: float
    most: int


class Scale(QueueScale, frozen=True, kw_only=True):
    """How many holders the queues of an app could use now, in sum: a number to scale threads by.

    `wanted`: shards that are held, or are free and have due work that may begin. `most`: shards that there are, which
    is the largest number that `wanted` can have. `oldest_due_age`: how long the oldest due id without a holder has
    waited, in seconds. `queues`: the same of each queue, by name. `skipped`: queues that were made with another
    declaration than the app has, by name, each with a sentence; they count for nothing.
    """

    queues: dict[str, QueueScale]
    skipped: dict[str, str]


class Numbers(TypedDict):
    """Lengths are in ids, the lag in seconds."""

    length: int
    morgue_length: int
    lag: float


class Stats(TypedDict):
    """All queues: sums, and the largest lag; and each by its name.

    `skipped`: queues that were made with another declaration than the app has, by name, each with a sentence; absent
    where there are none.
    """

    total: Numbers
    by_worker: dict[str, Numbers]
    skipped: NotRequired[dict[str, str]]


class MetricsByQueue(dict[str, QueueMetrics]):
    """Queues in numbers, by name.

    `skipped`: queues that were made with another declaration than the app has, by name, each with a sentence.
    """

    def __init__(self, metrics: Mapping[str, QueueMetrics], skipped: Mapping[str, str]) -> None:
        super().__init__(metrics)
        self.skipped = dict(skipped)


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """A Redis node; a field that it does not report is empty, or None.

    Memory is in bytes, `uptime` in seconds; `memory_limit` 0 means none. `address`: host and port of a cluster's node,
    empty if it is the only one.
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
        """Whether it may evict jobs when its memory is full."""
        return self.eviction_policy not in {"", "noeviction"}


Span: TypeAlias = Literal["10m", "1h", "6h", "72h", "30d"]


class Between(msgspec.Struct, frozen=True):
    """A part of the past that a history is read of, in Unix seconds."""

    since: float
    until: float


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """How many ids ended, and how many failed, in each `step` seconds from `began_at` (Unix seconds) on.

    `ended`: done or rejected; the totals of a queue count these two apart. `arrived`: how many payloads were pushed, of
    a queue that is looked at alone, with spans of up to six hours; None where nobody has taken samples.
    """

    began_at: float
    step: int
    ended: tuple[int, ...]
    failed: tuple[int, ...]
    arrived: tuple[int | None, ...] = ()


class Quantiles(msgspec.Struct, frozen=True):
    """The median and the 95th percentile, in seconds, to about a tenth of the value."""

    p50: float
    p95: float


class DayTimes(msgspec.Struct, frozen=True, kw_only=True):
    """A day or some days of a queue, from a midnight in UTC on (`at`, Unix seconds): how many ids ended and failed.

    `took`: how long batches took, `waited`: how long the first id of each had been due; None if nothing was performed.
    """

    at: float
    ended: int
    failed: int
    took: Quantiles | None
    waited: Quantiles | None


class WaitsOfSpan(msgspec.Struct, frozen=True, kw_only=True):
    """How long first ids of batches had waited, in so many `seconds` from `at` on (Unix seconds).

    `counts`: how many batches, by time: up to each of `WAITS`, which are seconds, and above the last one.
    """

    at: float
    seconds: int
    counts: tuple[int, ...]


WAITS: Final = (1, 10, 60, 600, 3_600)


class QueueHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The recent work of a queue. Rates are ids in a second, the mean of the last half minute.

    `took`: how long batches took, `waited`: how long the first id of each had been due when it began; both of the
    last hour or half of it, None if nothing was performed. `days`: with the spans "72h" and "30d" their days, each
    with its own percentiles, the oldest first, if the app keeps them (`Config.history_days`). `of_days`: they together.
    """

    series: Series
    ended_rate: float
    failed_rate: float
    took: Quantiles | None
    waited: Quantiles | None
    days: list[DayTimes] = []
    of_days: DayTimes | None = None


class QueueOverview(msgspec.Struct, frozen=True, kw_only=True):
    """A queue at a glance: its jobs, and its recent work.

    `mismatch`: why its numbers mean nothing, in a sentence: it was made with another declaration than the app has.
    `moves_to`: the number of shards that it is on its way to, if it is. Then `shards_count` is that of the old and the
    new ones, and of what is on its way at most `twice` records count in both. `times`: what Redis has of the times of
    the last hour or half of it, by the number of each half hour.
    """

    name: str
    shards_count: int
    now: Metrics
    history: QueueHistory
    mismatch: str = ""
    moves_to: int | None = None
    twice: int = 0
    times: Mapping[int, bytes] = {}

    @property
    def mismatched(self) -> bool:
        """Whether it was made with another declaration than the app has."""
        return bool(self.mismatch)

    @property
    def empty_in(self) -> float | None:
        """Seconds until no id is due, at the rate of the last half minute and without pushes; None: not at all."""
        rate = self.history.ended_rate + self.history.failed_rate
        return self.now.due / rate if rate else None if self.now.due else 0.0


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The servers, and the queues that they hold, at one moment (Unix seconds by a server's clock).

    The queues may come one by one, and only once.
    """

    at: float
    servers: Sequence[ServerView]
    queues: Iterable[QueueOverview]
