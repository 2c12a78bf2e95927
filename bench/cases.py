"""What is measured: one line of the table each."""

from dataclasses import dataclass

import redis

from bench.blank import Load
from bench.drain import drain
from bench.enqueue import enqueue
from bench.floor import floor
from bench.latency import handovers, latencies

BASE = "batch 100"
"""The case that the others are compared with."""
MANY_SHARDS = "1,000 shards"
MORE_JOBS = "ten times the jobs"


@dataclass(frozen=True, slots=True)
class Case:
    """A load under a name; `idle`: whether a single job's latency is measured too."""

    name: str
    load: Load
    idle: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """What one measurement of a case found. Rates are jobs a second, latencies seconds.

    Clients and servers: microseconds of the processor for a job.
    """

    case: str
    jobs: int
    enqueue: float
    push_client: float
    push_server: float
    bytes_per_job: float
    drain: float
    drain_client: float
    drain_server: float
    floor: float
    claim_size: int
    reads: float
    commands: float
    latencies: list[float]
    handovers: list[float]
    """Of a bare list, beside the latencies."""


def cases(jobs: int) -> list[Case]:
    """All cases, for this many jobs in most of them."""
    return [
        Case("batch 1", Load(jobs, batch_size=1)),
        Case("batch 10", Load(jobs, batch_size=10)),
        Case(BASE, Load(jobs), idle=True),
        Case("1 shard", Load(jobs, shards=1), idle=True),
        Case("100 shards", Load(jobs, shards=100), idle=True),
        Case(MANY_SHARDS, Load(jobs, shards=1_000), idle=True),
        Case(MORE_JOBS, Load(10 * jobs)),
    ]


def measure(case: Case, url: str, admin: redis.Redis, trials: int) -> Sample:
    """Measure a case once, on a server whose data is thrown away."""
    load = case.load
    admin.flushall()
    pushed = enqueue(url, load, admin)
    drained = drain(url, load, admin)
    admin.flushall()
    enqueue(url, load, admin)
    lowest = floor(load, drained.claim_size, admin)
    admin.flushall()
    return Sample(
        case=case.name,
        jobs=load.jobs,
        enqueue=pushed.rate,
        push_client=pushed.client,
        push_server=pushed.server,
        bytes_per_job=pushed.bytes_per_job,
        drain=drained.rate,
        drain_client=drained.client,
        drain_server=drained.server,
        floor=lowest,
        claim_size=drained.claim_size,
        reads=drained.reads,
        commands=drained.commands,
        latencies=latencies(url, load, trials) if case.idle else [],
        handovers=handovers(url, trials) if case.idle else [],
    )
