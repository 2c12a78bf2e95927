"""What a month uses of each priced thing, in three ways to run the same jobs.

A bill is rows of amounts by the name of their price (`prices.py`). Each price stands in one row of a bill, so that
its free tier is used once. The constants are what is assumed; those of this library were measured where it says so.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final, Literal, TypeAlias

from lowkiq_lambda.cli.costs.prices import Prices

Redis: TypeAlias = Literal["serverless", "node", "none"]
Bill: TypeAlias = dict[str, dict[str, float]]

REDIS: Final = "Redis"
"""The row that those who have a Redis already need not pay."""

HOURS: Final = 730.0
"""Of a month, as AWS counts it."""
MINUTES: Final = HOURS * 60
SECONDS: Final = HOURS * 3_600
MEGABYTES: Final = 1_024.0
"""Of a gigabyte."""
BYTES: Final = 1e9
"""Of a gigabyte of logs."""

VISIT: Final = 0.020
"""Seconds of a visit or tick that finds nothing. Measured: 0.7 to 1.0 ms of a whole processor, of which 512 MB get a
quarter; the rest is for the runtime and the way to Redis."""
COLD_START: Final = 1.0
"""Seconds that it takes, which are billed."""
ENVIRONMENT: Final = 2.0
"""Hours until Lambda replaces an environment that is in use."""
FROZEN_AT_MOST: Final = 5.0
"""Minutes without an invocation after which the next one is taken for a cold start."""
LONGEST_VISIT: Final = 900.0
"""Seconds after which Lambda ends an invocation."""
FULL_PROCESSOR: Final = 1_769.0
"""Megabytes of a function that has one whole processor; a smaller one has its share of it."""
ENGINE: Final = 0.0002
"""Seconds of a processor for a job of a queue whose handlers run side by side. Measured."""
BUSY_SLOTS: Final = 0.94
"""Share of the time that handlers have which run side by side under one lease. Measured."""
PAGE: Final = 0.1
"""Seconds of a request to the dashboard."""
VISIT_LOG: Final = 1_300.0
"""Bytes of a visit or tick, rounded up. Measured: 870 to 1,180; Lambda itself adds none where all goes well."""
SETTLE_LOG: Final = 450.0
"""Bytes of a settling. Measured."""
ACK_INTERVAL: Final = 0.05
"""Seconds of work, at least, for each settling: the setting's default."""
ALARMS: Final = 9.0
"""Of template.yaml."""

TASK_VCPU: Final = 0.25
TASK_GIGABYTES: Final = 0.5
"""The smallest task of Fargate."""
TASK_THREADS: Final = 5.0
"""The daemon's default."""
BUSY_AT_MOST: Final = 0.5
"""Share of the month in which a task's threads work, so that bursts find room; more work gets more tasks."""

SQS_BATCH: Final = 10
"""Messages in a request to SQS, and in an invocation from a FIFO queue, at most."""
SQS_POLLERS: Final = 5.0
SQS_WAIT: Final = 20.0
"""Lambda asks an idle queue with that many long polls at a time, of that many seconds each; they are billed."""
SQS_INVOCATION: Final = 0.005
"""Seconds of an invocation beside the handler's."""
SQS_LOG: Final = 450.0
"""Bytes of an invocation: Lambda's own lines."""
SQS_ALARMS: Final = 3.0
"""Of a queue: errors, age of the oldest message, dead letters. SQS's own metrics are free."""

CACHE_GIGABYTES: Final = 0.1
"""What ElastiCache Serverless bills at least; jobs that are drained each minute never fill it."""
ECPU_OF_A_VISIT: Final = 20.0
"""It signs in, looks for the cluster's nodes and asks for work."""
ECPU_OF_A_JOB: Final = 5.0
"""Of 1 KB: pushed, claimed, settled."""
ECPU_OF_A_POLL: Final = 2.0
"""Of a shard, by the daemon, once a second."""


@dataclass(frozen=True, slots=True)
class Month:
    """What is to be done, and how."""

    jobs: int = 1_000_000
    job_seconds: float = 0.010
    """How long the handler takes for a job; most of it waiting, so that a small processor does."""
    job_cpu: float = 0.0003
    """Seconds of a processor that the handler takes for a job: what a query takes. Counts where handlers run side by
    side, as waiting is no limit then."""
    concurrency: int = 1
    """Handlers that run side by side under one lease."""
    batch: int = 10
    shards: int = 5
    queues: int = 1
    schedule_minutes: int = 1
    memory: int = 512
    """Megabytes of a function."""
    dashboard_requests: int = 10_000
    redis: Redis = "serverless"

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


def dollars(bill: Bill, prices: Prices, *, free_tier: bool = False) -> dict[str, float]:
    """What each row of the bill costs."""
    return {
        row: sum(prices[name].of(amount, free_tier=free_tier) for name, amount in amounts.items())
        for row, amounts in bill.items()
    }


def lambda_bill(month: Month) -> Bill:
    """template.yaml: each shard visited on a schedule, one tick a minute for the app, the dashboard."""
    visits = month.shards * MINUTES / month.schedule_minutes
    invocations = visits + MINUTES
    seconds = invocations * VISIT + _cold_starts(month, visits) * COLD_START + month.running
    settles = min(month.jobs / month.batch, month.running / ACK_INTERVAL)
    return {
        **_functions(month, invocations + month.dashboard_requests, seconds + month.dashboard_requests * PAGE),
        "EventBridge Scheduler": {"scheduler_invocations": invocations},
        "API Gateway, for the dashboard": {"http_api_requests": month.dashboard_requests},
        **_logs(invocations * VISIT_LOG + settles * SETTLE_LOG),
        "Metrics and alarms": {"metrics": metrics(month), "alarms": ALARMS},
        **_redis(month, visits * ECPU_OF_A_VISIT + MINUTES * ECPU_OF_A_VISIT + month.jobs * ECPU_OF_A_JOB),
    }


def container_bill(month: Month) -> Bill:
    """The daemon in the smallest task of Fargate, all month; it serves the dashboard too, and publishes no metrics."""
    hours = HOURS * tasks(month)
    polls = SECONDS * month.shards * tasks(month)
    return {
        "Fargate": {"fargate_vcpu_hours": TASK_VCPU * hours, "fargate_gigabyte_hours": TASK_GIGABYTES * hours},
        "Public IPv4 address": {"ipv4_hours": hours},
        **_redis(month, polls * ECPU_OF_A_POLL + month.jobs * ECPU_OF_A_JOB),
    }


def sqs_bill(month: Month) -> Bill:
    """A FIFO queue for each of ours, the id as message group, a function behind it; no Redis, and nothing merges."""
    batches = month.jobs / min(month.batch, SQS_BATCH)
    polls = SQS_POLLERS * SECONDS / SQS_WAIT * month.queues
    cold = HOURS / ENVIRONMENT * month.queues
    return {
        **_functions(month, batches, month.work + batches * SQS_INVOCATION + cold * COLD_START),
        "SQS: send, receive, delete, poll": {"sqs_fifo_requests": 3 * batches + polls},
        **_logs(batches * SQS_LOG),
        "Metrics and alarms": {"alarms": SQS_ALARMS * month.queues},
    }


def metrics(month: Month) -> float:
    """Metrics of the stack: for each queue and for all together 4 by ticks, 3 by visits, 5 by work; and cold starts.

    CloudWatch bills those of the hours in which they were sent; here they are sent in every hour.
    """
    return (4.0 + 3.0 + (5.0 if month.jobs else 0.0)) * (month.queues + 1) + 1.0


def tasks(month: Month) -> int:
    """How many containers the work needs."""
    threads = month.work / (TASK_THREADS * month.concurrency)
    processor = month.computing / TASK_VCPU if month.concurrency > 1 else 0.0
    return max(1, ceil(max(threads, processor) / (SECONDS * BUSY_AT_MOST)))


def _cold_starts(month: Month, visits: float) -> float:
    of_one = HOURS / ENVIRONMENT
    frozen_for_long = month.schedule_minutes > FROZEN_AT_MOST
    return of_one + (visits if frozen_for_long else month.shards * of_one)


def _functions(month: Month, requests: float, seconds: float) -> Bill:
    return {
        "Lambda, requests": {"lambda_requests": requests},
        "Lambda, time": {"lambda_gigabyte_seconds": seconds * month.memory / MEGABYTES},
    }


def _logs(size: float) -> Bill:
    return {"Logs": {"log_gigabytes": size / BYTES, "log_gigabyte_months": size / BYTES}}


def _redis(month: Month, ecpu: float) -> Bill:
    kinds: dict[Redis, dict[str, float]] = {
        "serverless": {"cache_gigabyte_hours": CACHE_GIGABYTES * HOURS, "cache_ecpu": ecpu},
        "node": {"cache_node_hours": HOURS},
        "none": {},
    }
    return {REDIS: kinds[month.redis]}
