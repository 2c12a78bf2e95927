"""The names that spans and metrics have: those of the semantic conventions for messaging, and a few of our own.

The conventions are in development. The schema says which version of them these names are of; it is raised together
with the names.
"""

from typing import Final

NAME: Final = "lowkiq_lambda"
"""Of the tracer and the meter."""
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"

SYSTEM: Final = "messaging.system"
LOWKIQ: Final = "lowkiq"
DESTINATION: Final = "messaging.destination.name"
"""The queue."""
PARTITION: Final = "messaging.destination.partition.id"
"""The shard."""
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
SEND: Final = "send"
PROCESS: Final = "process"
BATCH_COUNT: Final = "messaging.batch.message_count"
ERROR_TYPE: Final = "error.type"
OTHER_ERROR: Final = "_OTHER"
"""Of a failure without an exception."""

SENT: Final = "messaging.client.sent.messages"
CONSUMED: Final = "messaging.client.consumed.messages"
PROCESS_DURATION: Final = "messaging.process.duration"
MESSAGE: Final = "{message}"
JOB_ID: Final = "{id}"
SECONDS: Final = "s"
DURATION_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Seconds: the buckets that the conventions advise."""

OUTCOME: Final = "lowkiq.outcome"
LINKS_LEFT_OUT: Final = "lowkiq.links_left_out"
"""How many pushes of a batch have no link, as there was no room for them."""
IDS: Final = "lowkiq.ids"
FAILED_IDS: Final = "lowkiq.failed_ids"
"""How many of a batch failed by themselves."""
MERGED: Final = "lowkiq.merged"
LAG: Final = "lowkiq.lag"
LENGTH: Final = "lowkiq.length"
MORGUE: Final = "lowkiq.morgue"


def of_queue(queue_name: str, operation: str) -> dict[str, str | int]:
    """The attributes that all spans and metrics of an operation on a queue have."""
    return {SYSTEM: LOWKIQ, DESTINATION: queue_name, OPERATION_NAME: operation, OPERATION_TYPE: operation}
