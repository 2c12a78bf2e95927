"""Metrics as CloudWatch finds them in a function's log: one line of embedded metric format."""

import json
import sys
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.store.shard.keys import escape

Unit: TypeAlias = Literal["Count", "Seconds"]
Level: TypeAlias = Literal["summary", "queues"]


class CloudMetric(NamedTuple):
    """What a metric counts, what publishes it, and with which of `LOWKIQ_METRICS`."""

    by: str
    meaning: str
    unit: Unit = "Count"
    level: Level = "queues"
    """`summary`: with `queues`, too."""


_DRAIN: Final = "a drain"
_TICK: Final = "a tick"
_INGEST: Final = "the ingest function"
METRICS: Final = {
    "oldest_due_age": CloudMetric(
        _TICK, "How long the oldest due id has waited that nobody holds.", "Seconds", "summary"
    ),
    "dead": CloudMetric(
        _TICK, "Ids that failed for the last time since it was told last, on Lambda and in daemons.", level="summary"
    ),
    "held": CloudMetric(
        _TICK, "Ids that are held, of queues that may hold some; a summary has it above 0.", level="summary"
    ),
    "trimmed": CloudMetric(
        _TICK, "Payloads that a bound of the morgue ever removed, of queues that lost some.", level="summary"
    ),
    "schedules_missed": CloudMetric(
        _TICK,
        "Planned times of schedule entries that nobody looked at in time; a summary has it above 0.",
        level="summary",
    ),
    "schedules_late": CloudMetric(_TICK, "How late the latest firing of an entry was.", "Seconds"),
    "records_failed": CloudMetric(
        _INGEST,
        "Records that failed and come again, with those behind them in their groups; published above 0.",
        level="summary",
    ),
    "lag": CloudMetric(_TICK, "How long the oldest due id has waited, those in flight included.", "Seconds"),
    "length": CloudMetric(_TICK, "Ids that wait."),
    "morgue": CloudMetric(_TICK, "Ids in the morgue."),
    "done": CloudMetric(_DRAIN, "Ids that were done, after each settling."),
    "failed": CloudMetric(_DRAIN, "Ids that failed, after each settling: `retried` and `buried` together."),
    "retried": CloudMetric(_DRAIN, "Ids that failed and are to be tried again."),
    "buried": CloudMetric(_DRAIN, "Ids that failed for the last time."),
    "refused": CloudMetric(_DRAIN, "Ids that ended with `Failed`, which is not a failure."),
    "checkpointed": CloudMetric(_DRAIN, "Runs of a job with a cursor that came further and ended before their job."),
    "recovered": CloudMetric(_DRAIN, "Ids that a dead holder had left, and that wait again."),
    "batch_duration": CloudMetric(_DRAIN, "The mean of the batches of a settling.", "Seconds"),
    "slowest_batch": CloudMetric(_DRAIN, "The longest of the batches of a settling.", "Seconds"),
    "lag_at_start": CloudMetric(_DRAIN, "The lag at the first look, before anything runs.", "Seconds"),
    "lag_at_end": CloudMetric(_DRAIN, "The lag that an invocation left.", "Seconds"),
    "cold_start": CloudMetric(_DRAIN, "1 at the first invocation of an environment."),
}
"""All that is published under a name of its own; a drain adds `ended_` and the reason why it left a shard."""


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
    dimensions = {"function": function} | ({} if queue is None else {"queue": as_dimension(queue)})
    sets = [[*dimensions], ["function"]] if queue is not None and roll_up else [[*dimensions]]
    units = [{"Name": name, "Unit": METRICS[name].unit if name in METRICS else "Count"} for name in values]
    directive = {"Namespace": namespace, "Dimensions": sets, "Metrics": units}
    line = {
        # This machine's, not the server's: CloudWatch takes no time that differs much from its own.
        "_aws": {"Timestamp": int(SystemClock.time() * 1_000), "CloudWatchMetrics": [directive]},
        **dimensions,
        **said,
        **{name: [float(value)] for name, value in values.items()},
    }
    # With its end in one piece: other threads write lines, too.
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def as_dimension(queue_name: str) -> str:
    """The name as CloudWatch takes it: printable ASCII without blank ends, at most 1,024 characters."""
    printable = queue_name.isascii() and queue_name.isprintable() and queue_name == queue_name.strip()
    return (queue_name if printable else escape(queue_name))[:1_024]
