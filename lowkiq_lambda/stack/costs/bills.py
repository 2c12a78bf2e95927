"""The bill of a month for each way: minutes and shards on Lambda, a container, an event bus, SQS.

A bill has rows of amounts by the name of their price (`prices.py`). Each price stands in one row, so that its free tier
is used once. The constants of Lambda were measured of the functions themselves: tests/aws/test_costs.py measures them
again.
"""

from math import ceil
from typing import Final, TypeAlias

from lowkiq_lambda.simulate.choice import LOOK
from lowkiq_lambda.stack.costs.month import HOURS, MINUTES, SECONDS, MetricsKind, Month, Redis
from lowkiq_lambda.stack.costs.prices import Prices

Bill: TypeAlias = dict[str, dict[str, float]]

INSTANCES: Final = "Lambda Managed Instances"
REDIS: Final = "Redis"
"""The row that those who have a Redis already need not pay."""

COLD_START: Final = 1.0
"""Seconds that it takes, which are billed."""
ENVIRONMENT: Final = 2.0
"""Hours until Lambda replaces an environment that is in use."""
MEGABYTES: Final = 1_024.0
"""Of a gigabyte."""
BYTES: Final = 1e9
"""Of a gigabyte of logs."""
CACHE_GIGABYTES: Final = 0.1
"""What ElastiCache Serverless bills at least; jobs that are drained each minute never fill it."""
ECPU_OF_A_JOB: Final = 5.0
"""Of 1 KB: pushed, claimed, settled."""

FROZEN_AT_MOST: Final = 5.0
"""Minutes without an invocation after which the next one is taken for a cold start."""
PAGE: Final = 0.1
"""Seconds of a request to the dashboard."""
REQUESTS_OF_AN_HOUR: Final = 1_800.0
"""Of an open page, which asks every two seconds."""

TICK_LOG: Final = 310.0
"""Bytes of the line of a tick, and of the drain behind it, that find nothing: the same for any number of queues."""
VISIT_LOG: Final = 310.0
"""Bytes of the line of a drain that finds nothing."""
BUSY_LOG: Final = 450.0
"""Bytes that a queue adds to a line that tells of its work in all shards."""
BUSY_VISIT_LOG: Final = 270.0
"""Bytes that a queue adds to a line that tells of its work in one shard."""
METRICS_LOG: Final[dict[MetricsKind, tuple[float, float]]] = {
    "none": (0.0, 0.0),
    "summary": (280.0, 0.0),
    "queues": (420.0, 960.0),
}
"""Bytes of metrics that an idle minute publishes for the app, and for each queue."""
VISIT_METRICS_LOG: Final = 430.0
"""Bytes of metrics that a drain publishes for each queue, with `queues`."""
SETTLE_LOG: Final = 470.0
"""Bytes of metrics of a settling, with `queues`."""
FAILURE_LOG: Final = 800.0
"""Bytes of the line of a failure, with a short traceback."""
SETTLE_INTERVAL: Final = 0.05
"""Seconds of work, at least, for each settling: the setting's default."""

ALARMS: Final[dict[MetricsKind, float]] = {"none": 4.0, "summary": 6.0, "queues": 6.0}
"""Of template.yaml: the metrics that they watch, each of which is billed as an alarm."""
ALARMS_OF_A_QUEUE_FUNCTION: Final = 3.0
"""Of infra/queue-function.yaml."""
ECPU_OF_A_LOOK: Final = 20.0
"""An invocation signs in, looks for the cluster's nodes and asks for work."""

TASK_VCPU: Final = 0.25
TASK_GIGABYTES: Final = 0.5
"""The smallest task of Fargate."""
TASK_THREADS: Final = 5.0
"""The daemon's default."""
BUSY_AT_MOST: Final = 0.5
"""Share of the month in which a task's threads work, so that bursts find room; more work gets more tasks."""
ECPU_OF_A_POLL: Final = 2.0
"""Of a shard, by the daemon, once a second."""

SQS_BATCH: Final = 10
"""Messages in a request to SQS, and in an invocation from a FIFO queue, at most."""
SQS_POLLERS: Final = 5.0
SQS_WAIT: Final = 20.0
"""Lambda asks an idle queue with that many long polls at a time, of that many seconds each; they are billed."""
BARE_INVOCATION: Final = 0.005
"""Seconds of an invocation beside the handler's."""
BARE_LOG: Final = 450.0
"""Bytes of an invocation: Lambda's own lines."""
SQS_ALARMS: Final = 3.0
"""Of a queue: errors, age of the oldest message, dead letters. SQS's own metrics are free."""
BUS_ALARMS: Final = 2.0
"""Of a subscriber: errors, and events that were given up. EventBridge's own metrics are free."""


def dollars(bill: Bill, prices: Prices, *, free_tier: bool = False) -> dict[str, float]:
    """What each row of the bill costs."""
    return {
        row: sum(prices[name].of(amount, free_tier=free_tier) for name, amount in amounts.items())
        for row, amounts in bill.items()
    }


def functions(month: Month, requests: float, seconds: float) -> Bill:
    """Invocations, and the seconds that they take."""
    return {
        "Lambda, requests": {"lambda_requests": requests},
        "Lambda, time": {"lambda_gigabyte_seconds": seconds * month.memory / MEGABYTES},
    }


def logs(size: float) -> Bill:
    """So many bytes, kept for a month."""
    return {"Logs": {"log_gigabytes": size / BYTES, "log_gigabyte_months": size / BYTES}}


def safety(month: Month) -> Bill:
    """Secrets, keys, and the way out of a VPC, where there are any."""
    ways = {
        "none": {},
        "ipv6": {},
        "endpoints": {"endpoint_hours": month.endpoints * HOURS},
        "nat": {"nat_hours": HOURS},
    }
    rows: Bill = {
        "Secrets and keys": {"secrets": float(month.secrets), "kms_keys": float(month.kms_keys)},
        "Way out of the VPC": ways[month.way_out],
    }
    return {row: amounts for row, amounts in rows.items() if any(amounts.values())}


def redis(month: Month, ecpu: float) -> Bill:
    """The server, of the kind that the month says."""
    kinds: dict[Redis, dict[str, float]] = {
        "serverless": {"cache_gigabyte_hours": CACHE_GIGABYTES * HOURS, "cache_ecpu": ecpu},
        "node": {"cache_node_hours": HOURS},
        "none": {},
    }
    return {REDIS: kinds[month.redis]}


def minute_bill(month: Month) -> Bill:
    """One schedule a minute, whose invocation ticks and drains all shards."""
    return _bill(month, visits=0.0)


def shards_bill(month: Month) -> Bill:
    """A schedule for each shard, and one for the tick."""
    return _bill(month, visits=month.shards * MINUTES / month.schedule_minutes)


def metrics(month: Month) -> float:
    """Custom metrics of the stack: two; or, with `queues`, for each queue and for the app.

    CloudWatch bills those of the hours in which they were sent; here they are sent in every hour.
    """
    if month.metrics == "queues":
        # 4 by ticks, 3 by drains and 5 by work; of the app alone the dead, and cold starts.
        return (4.0 + 3.0 + (5.0 if month.jobs else 0.0)) * (month.queues + 1) + 2.0
    return 2.0 if month.metrics == "summary" else 0.0


def _bill(month: Month, visits: float) -> Bill:
    own = month.queue_functions * MINUTES
    invocations = MINUTES + visits + own
    requests = month.dashboard_hours * REQUESTS_OF_AN_HOUR
    cold_starts = _cold_starts(month, visits) + month.queue_functions * HOURS / ENVIRONMENT
    seconds = invocations * LOOK + cold_starts * COLD_START + month.running
    return {
        **functions(month, invocations + requests, seconds + requests * PAGE),
        "EventBridge Scheduler": {"scheduler_invocations": invocations},
        "API Gateway, for the dashboard": {"http_api_requests": requests},
        **logs(_logged(month, visits) + own * visit_log(month)),
        "Metrics and alarms": {
            "metrics": metrics(month),
            "alarms": ALARMS[month.metrics] + month.queue_functions * ALARMS_OF_A_QUEUE_FUNCTION,
        },
        **safety(month),
        **redis(month, invocations * ECPU_OF_A_LOOK + month.jobs * ECPU_OF_A_JOB),
    }


def tick_log(month: Month) -> float:
    """Bytes of a tick, and of the drain behind it, that find nothing."""
    of_app, of_queue = METRICS_LOG[month.metrics]
    return TICK_LOG + of_app + of_queue * month.queues


def visit_log(month: Month) -> float:
    """Bytes of a drain that finds nothing."""
    return VISIT_LOG + (VISIT_METRICS_LOG * month.queues if month.metrics == "queues" else 0.0)


def _logged(month: Month, visits: float) -> float:
    settles = min(month.jobs / month.batch, month.running / SETTLE_INTERVAL) if month.metrics == "queues" else 0.0
    lines, size = (visits, BUSY_VISIT_LOG) if visits else (MINUTES, BUSY_LOG)
    work = min(month.jobs, lines * month.queues) * size + settles * SETTLE_LOG + month.failures * FAILURE_LOG
    return MINUTES * tick_log(month) + visits * visit_log(month) + work


def _cold_starts(month: Month, visits: float) -> float:
    of_one = HOURS / ENVIRONMENT
    frozen_for_long = month.schedule_minutes > FROZEN_AT_MOST
    return of_one + (visits if frozen_for_long else of_one * month.shards if visits else 0.0)


def container_bill(month: Month) -> Bill:
    """The daemon in the smallest task of Fargate, all month; it serves the dashboard too, and publishes no metrics."""
    hours = HOURS * tasks(month)
    polls = SECONDS * month.shards * tasks(month)
    return {
        "Fargate": {"fargate_vcpu_hours": TASK_VCPU * hours, "fargate_gigabyte_hours": TASK_GIGABYTES * hours},
        "Public IPv4 address": {"ipv4_hours": hours},
        **safety(month),
        **redis(month, polls * ECPU_OF_A_POLL + month.jobs * ECPU_OF_A_JOB),
    }


def instances_bill(month: Month) -> Bill:
    """The functions on Lambda Managed Instances: their hours with a fee, and no seconds.

    How many Lambda adds to the first ones is not estimated: it scales by the processor.
    """
    rest = {row: amounts for row, amounts in minute_bill(month).items() if row != "Lambda, time"}
    return {**rest, INSTANCES: {"instance_dollars": month.instance_hour * month.instances * HOURS}}


def sqs_bill(month: Month) -> Bill:
    """A FIFO queue for each of ours, the id as message group, a function behind it; no Redis, and nothing merges."""
    batches = month.jobs / min(month.batch, SQS_BATCH)
    polls = SQS_POLLERS * SECONDS / SQS_WAIT * month.queues
    return {
        **functions(month, batches, month.work + batches * BARE_INVOCATION + _cold_seconds(month)),
        "SQS: send, receive, delete, poll": {"sqs_fifo_requests": 3 * batches + polls},
        **logs(batches * BARE_LOG),
        "Metrics and alarms": {"alarms": SQS_ALARMS * month.queues},
    }


def bus_bill(month: Month) -> Bill:
    """A custom event bus with a FIFO subscriber for each queue, the id as event group: each event is an invocation."""
    return {
        **functions(month, month.jobs, month.work + month.jobs * BARE_INVOCATION + _cold_seconds(month)),
        "EventBridge: events": {"bus_events": float(month.jobs)},
        **logs(month.jobs * BARE_LOG),
        "Metrics and alarms": {"alarms": BUS_ALARMS * month.queues},
    }


def tasks(month: Month) -> int:
    """How many containers the work needs."""
    threads = month.work / (TASK_THREADS * month.concurrency)
    processor = month.computing / TASK_VCPU if month.concurrency > 1 else 0.0
    return max(1, ceil(max(threads, processor) / (SECONDS * BUSY_AT_MOST)))


def _cold_seconds(month: Month) -> float:
    return HOURS / ENVIRONMENT * month.queues * COLD_START if month.jobs else 0.0
