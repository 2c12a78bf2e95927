"""What CloudWatch makes of an alarm's definition and a series of minutes, by its documentation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

Series: TypeAlias = Sequence[float | None]
"""A value for each minute; None where nothing was published."""

_BREACHES: Final = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}
_OF_PERIOD: Final[Mapping[str, Callable[[list[float]], float]]] = {"Sum": sum, "Maximum": max}
_MISSING: Final = {"breaching": "ALARM", "notBreaching": "OK", "missing": "INSUFFICIENT_DATA"}


def states(alarm: Mapping[str, Any], minutes: Series, parameters: Mapping[str, Any]) -> list[str]:
    """The state after each period; a new alarm is in INSUFFICIENT_DATA before the first."""
    evaluated, wanted = alarm["EvaluationPeriods"], alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])
    threshold = alarm["Threshold"]
    limit = parameters[threshold["Ref"]] if isinstance(threshold, dict) else threshold
    points = list(_points(minutes, alarm["Period"] // 60, alarm["Statistic"]))
    found = ["INSUFFICIENT_DATA"]
    for end in range(1, len(points) + 1):
        window = [None] * max(0, evaluated - end) + points[max(0, end - evaluated) : end]
        there = [point for point in window if point is not None]
        breaching = sum(_BREACHES[alarm["ComparisonOperator"]](point, limit) for point in there)
        if not there:
            found.append(_MISSING[alarm["TreatMissingData"]])
            continue
        if alarm["TreatMissingData"] == "breaching":
            breaching += len(window) - len(there)
        found.append("ALARM" if breaching >= wanted else "OK")
    return found


def told(alarm: Mapping[str, Any], found: Sequence[str]) -> list[str]:
    """The changes of state that the topic is told of."""
    actions = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
    changes = [after for before, after in pairwise(found) if before != after]
    return [state for state in changes if actions[state] in alarm]


def _points(minutes: Series, width: int, statistic: str) -> Iterator[float | None]:
    for at in range(0, len(minutes), width):
        values = [value for value in minutes[at : at + width] if value is not None]
        yield _OF_PERIOD[statistic](values) if values else None
