"""What is tried: shards, batches, calls at once, and the compute that drains them."""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

Compute: TypeAlias = Literal["daemon", "minute", "shards", "wake", "linger", "start"]
"""`daemon`: processes that always run. The others are functions: `minute`: one schedule a minute, whose invocation
drains all shards; `shards`: a schedule for each shard; `wake`: as `minute`, and a push into an idle shard starts an
invocation; `linger`: as `minute`, and an invocation listens for pushes until its time is over; `start`: as `minute`,
with an invocation for each shard that waits, and a successor for one that ran out of time."""

FULL_PROCESSOR: Final = 1_769.0
"""Megabytes of a function that has one whole processor; a smaller one has its share of it."""
LOOK: Final = 0.020
"""Seconds of an invocation until its first claim; of one that finds nothing, all of them.

Measured: 1.0 to 1.6 ms of a whole processor, of which 256 MB get a seventh; the rest is for the runtime and the way to
Redis.
"""
MOST_SHARDS: Final = 10_000
MOST_IN_FLIGHT: Final = 1_000
"""Ids of a batch, and of a claim."""

Whole: TypeAlias = Annotated[int, Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a queue. Times are seconds.

    `threads`: shards that are drained at once, by all processes of a daemon together, or by one invocation. `cores`:
    processors of a daemon; its `processes` use at most one each. `memory`: megabytes of a function, which set its share
    of a processor; `timeout`: how long its invocations may drain; `period`: from one invocation of
    a schedule to the next; `cold_start`: of an invocation without a warm environment.
    `max_running`: visits at once of the whole queue, each with `concurrency` calls; `rate`: ids a second that may
    begin, all of them in any `rate_per` seconds at once; 0: no limit.
    `failures`: share of the ids of a call that fail, and run again after `retry_in`, and later after the fourth power
    of their retries more. `outages`: (from, until), on the clock of the trace, in which nothing is claimed, such as
    the pause of a reshard. `breakdowns`: the same, in which each call fails as a whole.
    `tenants`: as of a worker, for a trace whose ids have names: those of a shard take turns, by their ids or at home.
    `max_retry_count`: how often a payload runs again; when it fails once more, it is dead.
    `payloads_at_once`: of an id in one call; 0: all that wait.
    `settle_interval`, `round_trip`, `engine` (its part of a call), `visit` (its part of a claim, of the end of a visit,
    or of waking a slot) and `start` (from a push to the visit of an idle shard) are as measured of a daemon; `wake` is
    the same for a warm function that a push starts.
    """

    shards: Annotated[int, Meta(ge=1, le=MOST_SHARDS)] = 5
    batch: Annotated[int, Meta(ge=1, le=MOST_IN_FLIGHT)] = 1
    concurrency: Annotated[int, Meta(ge=1, le=MOST_IN_FLIGHT)] = 1
    compute: Compute = "daemon"
    threads: Whole = 5
    processes: Whole = 1
    cores: Annotated[float, Meta(gt=0)] = 1.0
    memory: Annotated[int, Meta(ge=128, le=10_240)] = 256
    timeout: Annotated[float, Meta(gt=0)] = 297.0
    period: Annotated[float, Meta(gt=0)] = 60.0
    cold_start: Seconds = 1.0
    max_running: Annotated[int, Meta(ge=0)] = 0
    rate: Annotated[float, Meta(ge=0)] = 0.0
    rate_per: Annotated[float, Meta(gt=0)] = 1.0
    failures: Share = 0.0
    retry_in: Seconds = 15.0
    max_retry_count: Annotated[int, Meta(ge=0)] = 25
    outages: tuple[tuple[float, float], ...] = ()
    breakdowns: tuple[tuple[float, float], ...] = ()
    tenants: Literal["none", "spread", "home"] = "none"
    payloads_at_once: Annotated[int, Meta(ge=0)] = 0
    settle_interval: Seconds = 0.05
    round_trip: Seconds = 0.0008
    engine: Seconds = 0.00005
    visit: Seconds = 0.0002
    start: Seconds = 0.0015
    wake: Seconds = 0.030

    def __post_init__(self) -> None:
        # A value that no decoder has made is checked, too.
        if self.batch * self.concurrency > MOST_IN_FLIGHT:
            raise ValueError(f"batch times concurrency is at most {MOST_IN_FLIGHT:,}")
        if self.tenants == "home" and self.concurrency > 1:
            raise ValueError("tenants at home have concurrency 1")
        if self.failures >= 1.0:
            raise ValueError("where all ids fail, no simulation ends: give failures below 100 %")

    @property
    def is_function(self) -> bool:
        """Whether invocations drain the queue."""
        return self.compute != "daemon"

    @property
    def slots(self) -> int:
        """Calls that the compute makes at once, at most, whatever the shards."""
        visits = self.shards if self.compute in {"shards", "start", "wake"} else min(self.threads, self.shards)
        return visits * self.concurrency

    @property
    def usable_cores(self) -> float:
        """Processors of a daemon, or of one invocation, as far as Python uses them: one for each process."""
        return self.memory / FULL_PROCESSOR if self.is_function else min(self.cores, float(self.processes))
