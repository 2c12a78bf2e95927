"""A month of jobs: what is to be done, and how."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from lowkiq_lambda.simulate.choice import FULL_PROCESSOR

Redis: TypeAlias = Literal["serverless", "node", "none"]
MetricsKind: TypeAlias = Literal["none", "summary", "queues"]
WayOut: TypeAlias = Literal["none", "ipv6", "endpoints", "nat"]

HOURS: Final = 730.0
"""Of a month, as AWS counts it."""
MINUTES: Final = HOURS * 60
SECONDS: Final = HOURS * 3_600
LONGEST_VISIT: Final = 900.0
"""Seconds after which Lambda ends an invocation."""
ENGINE: Final = 0.0002
"""Seconds of a processor for a job of a queue whose handlers run side by side. Measured."""
BUSY_SLOTS: Final = 0.94
"""Share of the time that handlers have which run side by side under one lease. Measured."""


@dataclass(frozen=True, slots=True)
class Month:
    """What is to be done, and how."""

    jobs: int = 1_000_000
    job_seconds: float = 0.010
    """How long the handler takes for a job; most of it waiting, so that a small processor does."""
    job_cpu: float = 0.0003
    """Seconds of a processor that the handler takes for a job: the time of a query. Counts if handlers run side by
    side, as waiting is not the limit then."""
    failures: int = 0
    """How often handlers fail in the month."""
    concurrency: int = 1
    """Handlers that run side by side under one lease."""
    batch: int = 10
    shards: int = 5
    queues: int = 1
    queue_functions: int = 0
    """Functions of infra/queue-function.yaml, each with a schedule a minute, beside the stack's own."""
    schedule_minutes: int = 1
    """From one visit of a shard to the next, where shards have schedules of their own."""
    memory: int = 256
    """Megabytes of a function."""
    metrics: MetricsKind = "summary"
    """As the template's parameter says."""
    dashboard_hours: float = 4.0
    """For so long a page of the dashboard is open."""
    secrets: int = 0
    """In Secrets Manager: the URL of Redis, the dashboard's password."""
    kms_keys: int = 0
    """Customer-managed keys, of secrets, queues and logs."""
    way_out: WayOut = "none"
    """By which functions in a VPC reach AWS's APIs: for secrets, waking and continuation."""
    endpoints: int = 1
    """Interface endpoints, each in one zone, where they are the way out."""
    redis: Redis = "serverless"
    instance_hour: float = 0.0
    """Dollars for an hour of the instance that Lambda Managed Instances begin; 0: they are not compared."""
    instances: int = 3
    """How many of these run all month: AWS begins three, in as many zones."""

    @property
    def work(self) -> float:
        """Seconds in the handler."""
        return self.jobs * self.job_seconds

    @property
    def running(self) -> float:
        """Seconds in which a visit has handlers running: the work, or less where they run side by side."""
        if self.concurrency == 1:
            return self.work
        side_by_side = self.work / (self.concurrency * BUSY_SLOTS)
        return max(side_by_side, self.computing * FULL_PROCESSOR / self.memory)

    @property
    def computing(self) -> float:
        """Seconds of a whole processor, for handlers that run side by side."""
        return self.jobs * (self.job_cpu + ENGINE)

    @property
    def room(self) -> float:
        """Seconds that the visits have for it, each of one shard."""
        return self.shards * MINUTES / self.schedule_minutes * min(self.schedule_minutes * 60, LONGEST_VISIT)
