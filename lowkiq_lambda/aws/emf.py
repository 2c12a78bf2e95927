"""Metrics as CloudWatch finds them in a function's log: one line of embedded metric format."""

import json
import sys
from collections.abc import Mapping
from typing import Final

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit
from aws_lambda_powertools.metrics.functions import is_metrics_disabled

from lowkiq_lambda.store.shard.keys import escape

_SECONDS: Final = (
    "lag",
    "oldest_due_age",
    "lag_at_start",
    "lag_at_end",
    "batch_duration",
    "slowest_batch",
    "schedules_late",
)


def publish(
    namespace: str,
    function: str,
    queue: str | None,
    values: Mapping[str, float],
    *,
    roll_up: bool = True,
    **said: object,
) -> None:
    """Print the values under the dimensions of function and queue, and, to `roll_up`, of the function alone.

    `said` is kept in the log's line, to be searched for. The line has left this process when this returns.
    """
    metrics = EphemeralMetrics(namespace=namespace)
    # The environment may name a service for the logs: as one dimension more it would hide these from alarms.
    metrics.service = None  # type: ignore[assignment]  # its type is inferred, and too narrow
    metrics.add_dimension("function", function)
    if queue is not None:
        metrics.add_dimension("queue", as_dimension(queue))
    if queue is not None and roll_up:
        metrics.add_dimensions(function=function)
    for name, value in values.items():
        metrics.add_metric(name, MetricUnit.Seconds if name in _SECONDS else MetricUnit.Count, value)
    for name, what in said.items():
        metrics.add_metadata(name, what)
    if not is_metrics_disabled():
        # The line with its end in one piece, which Powertools does not do: other threads write lines, too.
        sys.stdout.write(json.dumps(metrics.serialize_metric_set(), separators=(",", ":")) + "\n")
        sys.stdout.flush()


def as_dimension(queue_name: str) -> str:
    """The name as CloudWatch takes it: printable ASCII without blank ends, at most 1,024 characters."""
    printable = queue_name.isascii() and queue_name.isprintable() and queue_name == queue_name.strip()
    return (queue_name if printable else escape(queue_name))[:1_024]
