"""Results of the read side, besides jobs themselves: pages, metrics, shards, explanations."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict, TypeVar

import msgspec

from lowkiq_lambda.jobs.job import Failure, ProgressView
from lowkiq_lambda.views.requests import JobRequest

Shown = TypeVar("Shown")


class Page(list[Shown]):
    """A part of a long list.

    `next` is the `after` of the next page; None at the end of the list. `cut`: the search ended before it had read the
    whole list, so jobs may be missing. `read`: how many ids a filter has looked at for this page; None without one.
    """

    def __init__(
        self,
        entries: Iterable[Shown],
        next: str | None = None,  # noqa: A002 - the public name
        *,
        cut: bool = False,
        read: int | None = None,
    ) -> None:
        super().__init__(entries)
        self.next = next
        self.cut = cut
        self.read = read


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, or one shard of it, in numbers. The numbers count ids, except `payloads`. `lag` is in seconds.

    `length`: ids that wait, the `fresh` ones and the `retries` (those that have failed). Among them: `started`, those
    that go on from a cursor, and `blocked`, those that wait for an operator to unblock them (`Worker.dead_head`).
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
    it), and `held` (the seconds that shards were held).
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
    calls: int = 0
    busy: float = 0.0
    computing: float = 0.0
    held: float = 0.0


class QueueMetrics(Metrics, frozen=True, kw_only=True):
    """A queue in numbers, and its shards, in their order. The lag is that of its most lagging shard."""

    shards: tuple[Metrics, ...]


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


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """How many ids ended, and how many failed, in each `step` seconds from `began_at` (Unix seconds) on.

    `ended`: done or rejected; the totals of a queue count these two apart.
    """

    began_at: float
    step: int
    ended: tuple[int, ...]
    failed: tuple[int, ...]


class Quantiles(msgspec.Struct, frozen=True):
    """The median and the 95th percentile, in seconds, to about a tenth of the value."""

    p50: float
    p95: float


class DayTimes(msgspec.Struct, frozen=True, kw_only=True):
    """A day of a queue, from its midnight in UTC (`at`, Unix seconds): how many ids ended and failed, and the times.

    `took`: how long batches took, `waited`: how long the first id of each had been due; None if nothing was performed.
    """

    at: float
    ended: int
    failed: int
    took: Quantiles | None
    waited: Quantiles | None


class QueueHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The recent work of a queue. Rates are ids in a second, the mean of the last half minute.

    `took`: how long batches took, `waited`: how long the first id of each had been due when it began; both of the
    last hour or half of it, None if nothing was performed. `days`: with the span "30d" its days, each with its own
    percentiles, the oldest first, if the app keeps them (`Config.history_days`).
    """

    series: Series
    ended_rate: float
    failed_rate: float
    took: Quantiles | None
    waited: Quantiles | None
    days: list[DayTimes] = []


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


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The servers, and the queues that they hold, at one moment (Unix seconds by a server's clock).

    The queues may come one by one, and only once.
    """

    at: float
    servers: Sequence[ServerView]
    queues: Iterable[QueueOverview]


Place: TypeAlias = Literal["waiting", "flight", "morgue"]
"""Where payloads of an id are."""


class FoundId(msgspec.Struct, frozen=True):
    """An id that has payloads in these places of a queue."""

    queue_name: str
    id: str
    places: tuple[Place, ...]


class FoundIds(msgspec.Struct, frozen=True):
    """The id that was looked for, in each queue that has it, and ids that begin with it.

    `cut`: not all ids were read, or more begin with it. `skipped`: queues that were made with
    another declaration than the app has, by name, each with a sentence.
    """

    exact: list[FoundId] = []
    similar: list[FoundId] = []
    cut: bool = False
    skipped: dict[str, str] = {}


class DamagedRecord(msgspec.Struct, frozen=True, kw_only=True):
    r"""An unreadable record that was set aside at `at` (Unix seconds) from the key `key`.

    `number`: counts the records that were set aside in the shard. `id`: of the job, or the field; bytes that are not
    UTF-8 are written as `\x..`, and it is empty if the record has none. `data`: the first of its `size` bytes.
    """

    shard: int
    number: int
    at: float
    key: str
    id: str
    why: str
    data: bytes
    size: int


ShardRole: TypeAlias = Literal["open", "closed", "receiving"]


class ShardDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A shard and its holder at `at`. Times are Unix seconds by the server's clock.

    `length`, `retries`, `in_flight`, `morgue_length`, `lag`: as in `Metrics`, but `lag` counts in a paused shard, too.
    `suspects`: ids that run first, alone or together with others. `started`: ids that wait and go on from a cursor.
    `due_at`: when the first waiting id is due. `owner`, `acquired_at` and `token` are those of the holder, or of the
    last one. `held_until`: when the lease ends; 0 after a release.
    `gave_up`: writes of the holder are rejected, because its process is about to exit or an operator evicted it; the
    shard is free at `held_until`. `woken_until`: a drain is being started, and must acquire the lease by then.
    `role`: while the queue gets another number of shards, it may be `closed` or `receiving`: no process acquires it.
    """

    index: int
    at: float
    length: int = 0
    retries: int = 0
    in_flight: int = 0
    morgue_length: int = 0
    suspects: int = 0
    started: int = 0
    lag: float = 0.0
    due_at: float | None = None
    token: int = 0
    owner: str = ""
    acquired_at: float | None = None
    held_until: float = 0.0
    gave_up: bool = False
    paused_until: float | None = None
    woken_until: float | None = None
    role: ShardRole = "open"

    @property
    def is_held(self) -> bool:
        """Whether a holder has the lease."""
        return self.held_until > self.at

    @property
    def is_paused(self) -> bool:
        """Whether the shard is paused, so that no process may acquire the lease."""
        return self.paused_until is not None and self.paused_until > self.at

    @property
    def lease_left(self) -> float:
        """Seconds until the lease ends, unless it is renewed."""
        return max(0.0, self.held_until - self.at)

    @property
    def lost_its_holder(self) -> bool:
        """Whether ids are in flight without a holder."""
        return self.in_flight > 0 and not self.is_held


class TenantWait(msgspec.Struct, frozen=True, kw_only=True):
    """When the tenant of an id is served: `served_from`, and how many tenants come first.

    `ahead`: ids of the tenant itself that come before the id. `paused_until`: the end of its pause; `rests_until`:
    when its rate lets the next begin. Unix seconds; None if there is none.
    """

    tenant: str
    served_from: float | None
    tenants_ahead: int
    ahead: int
    paused_until: float | None = None
    rests_until: float | None = None


class TenantView(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant with ids that wait, or of which a shard remembers something, at `at`. Times are Unix seconds.

    `waiting`: ids. `due_at`: when the first of them is due; None without ids. `served_from`: when it can be served, the
    earliest of its shards; past where it waits for others. `served_at`: when it was served last, `paused_until`: the
    end of its pause (infinite: until it is resumed), `rests_until`: when its rate lets the next begin; None where
    there is none.
    """

    tenant: str
    at: float
    waiting: int
    due_at: float | None
    served_from: float
    served_at: float | None = None
    paused_until: float | None = None
    rests_until: float | None = None

    @property
    def is_paused(self) -> bool:
        """Whether an operator has paused the tenant."""
        return self.paused_until is not None and self.paused_until > self.at

    @property
    def is_resting(self) -> bool:
        """Whether the rate keeps the tenant's ids from starting."""
        return self.rests_until is not None and self.rests_until > self.at


TenantOrder: TypeAlias = Literal["fair", "waiting"]
"""In their fair order, the next one first, or by waiting ids, the most first."""


class Tenants(msgspec.Struct, frozen=True):
    """Tenants of a queue, in the order that was asked for; `cut`: there are more."""

    tenants: list[TenantView]
    cut: bool


class JobExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why an id runs, or does not run yet, read at one moment.

    `due_at`: when it is due; None if no payload waits. `ahead`: ids that come before it. `suspects_ahead`: suspects
    that come before it; None if it is not a suspect. `crash_count`: how often its process died or fell silent while it
    ran alone. `runs_together`: it is in flight or a suspect, and nothing but a first crash tells against it: as a
    suspect of a worker with `concurrency` it runs once more, side by side with others like it. `dead_since`: the time
    of its last death; None if the morgue has no payload of it. `closed`: its shard belongs to an older declaration.
    `least_version`: the least contract version of a library that may use the shard. `progress`: how far the id has
    come, if it is a started job that waits or is in flight. `debounced_until`: while the id waits for more pushes, when
    it is due at the latest; else None. `blocked_since`: since when its head is blocked, until an operator unblocks it
    (`Worker.dead_head`). `limited`: limits of its queue were set at run time.
    `tenant`: when its tenant is served, if it waits and its queue has tenants. `failures`: the last five since the id
    was last done, newest first. `expires_at`: after that time the oldest of its payloads is not handed to a handler;
    None: at any time. `requests`: what operators want of it: a cancel, a pause, or both.
    """

    shard: ShardDetails
    due_at: float | None = None
    retry_count: float = -1.0
    ahead: int = 0
    suspects_ahead: int | None = None
    crash_count: int = 0
    runs_together: bool = False
    in_flight: bool = False
    dead_since: float | None = None
    closed: bool = False
    least_version: int | None = None
    progress: ProgressView | None = None
    debounced_until: float | None = None
    blocked_since: float | None = None
    limited: bool = False
    tenant: TenantWait | None = None
    failures: tuple[Failure, ...] = ()
    expires_at: float | None = None
    requests: tuple[JobRequest, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether the id has no payload: not waiting, in flight or in the morgue."""
        return self.due_at is None and not self.in_flight and self.dead_since is None
