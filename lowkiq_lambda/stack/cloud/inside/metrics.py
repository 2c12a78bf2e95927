"""Metrics of the local cloud: those that AWS measures, as far as the stack's alarms need them, and those of logs."""

import importlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

_MINUTE: Final = 60
_STATISTICS: Final[Mapping[str, Callable[[list[float]], float]]] = {"Sum": sum, "Maximum": max, "SampleCount": len}


class CloudMetrics:
    """Writes into the emulator's CloudWatch, which keeps points and answers who asks for them."""

    def __init__(self) -> None:
        self._watch: Any = importlib.import_module("ministack.services.cloudwatch")

    def add(self, namespace: str, name: str, value: float, dimensions: Mapping[str, str]) -> None:
        """A point of now."""
        self._watch.record_metric(namespace, name, value, "None", dict(dimensions))

    def add_invocation(self, function: str, milliseconds: float, event: Any, *, failed: bool) -> None:
        """The points of an invocation, and of the stream that its event is of."""
        dimensions = {"FunctionName": function}
        self.add("AWS/Lambda", "Invocations", 1, dimensions)
        self.add("AWS/Lambda", "Errors", int(failed), dimensions)
        self.add("AWS/Lambda", "Duration", milliseconds, dimensions)
        for created in _changed_at(event):
            self.add("AWS/Lambda", "IteratorAge", (time.time() - created) * 1_000, dimensions)

    def add_log(self, log: str) -> None:
        """The points of a log's lines in the embedded metric format."""
        for line in log.splitlines():
            if '"_aws"' in line:
                for namespace, name, value, dimensions in _embedded(line):
                    self.add(namespace, name, value, dimensions)

    def add_queues(self) -> None:
        """The points of each queue, for the minute that has just ended."""
        service: Any = importlib.import_module("ministack.services.sqs")
        now = time.time()
        for url, queue in list(service._queues.items()):
            dimensions, messages = {"QueueName": url.rpartition("/")[2]}, list(queue["messages"])
            visible = sum(message["visible_at"] <= now for message in messages)
            ages = [now - message["sent_at"] for message in messages]
            sent = sum(age <= _MINUTE for age in ages)
            for name, value in (
                ("ApproximateNumberOfMessagesVisible", visible),
                ("ApproximateNumberOfMessagesNotVisible", len(messages) - visible),
                ("ApproximateAgeOfOldestMessage", max(ages, default=0)),
                ("NumberOfMessagesSent", sent),
            ):
                self.add("AWS/SQS", name, value, dimensions)

    def minutes(self, metric: Mapping[str, Any], statistic: str, first: int, end: int) -> list[float | None]:
        """The values of a metric by the minute of Unix time, from `first` to before `end`; none where it has none."""
        dimensions = {each["Name"]: str(each["Value"]) for each in metric.get("Dimensions", [])}
        key = (metric["Namespace"], metric["MetricName"], self._watch._dims_key(dimensions))
        minutes: dict[int, list[float]] = {}
        for point in list(self._watch._metrics.get(key) or ()):
            minutes.setdefault(int(point["Timestamp"] // _MINUTE), []).append(point["Value"])
        return [_STATISTICS[statistic](minutes[at]) if at in minutes else None for at in range(first, end)]


def _changed_at(event: Any) -> Iterator[float]:
    records = event.get("Records") if isinstance(event, dict) else None
    if records and isinstance(records, list) and records[-1].get("eventSource") == "aws:dynamodb":
        yield float(records[-1]["dynamodb"]["ApproximateCreationDateTime"])


def _embedded(line: str) -> Iterator[tuple[str, str, float, dict[str, str]]]:
    try:
        fields = json.loads(line)
    except ValueError:
        return
    for directive in fields["_aws"]["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            dimensions = {name: str(fields[name]) for name in names}
            for metric in directive["Metrics"]:
                values = fields[metric["Name"]]
                for value in values if isinstance(values, list) else [values]:
                    yield directive["Namespace"], metric["Name"], float(value), dimensions
