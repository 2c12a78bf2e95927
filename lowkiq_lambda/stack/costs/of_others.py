"""What other ways to run the same jobs use in a month: a container, SQS FIFO, EventBridge with FIFO subscribers."""

from math import ceil
from typing import Final

from lowkiq_lambda.stack.costs.bills import COLD_START, ECPU_OF_A_JOB, ENVIRONMENT, Bill, functions, logs, redis, safety
from lowkiq_lambda.stack.costs.month import HOURS, SECONDS, Month

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
