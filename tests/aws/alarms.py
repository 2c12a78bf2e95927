"""What CloudWatch makes of an alarm's definition and a series of minutes, by its documentation.

CloudWatch looks further back than the periods that an alarm evaluates, and takes the newest points that are there in
place of missing ones; how far is not promised. `further` is by how many points. An alarm should ring alike for any.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

Series: TypeAlias = Sequence[float | None]
"""A value for each minute; None where nothing was published."""

FURTHER: Final = (0, 2)
"""Not at all, and as in CloudWatch's own example, where three of five points are evaluated."""
_BREACHES: Final = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}
_OF_PERIOD: Final[Mapping[str, Callable[[list[float]], float]]] = {"Sum": sum, "Maximum": max}
_MISSING: Final = {"breaching": "ALARM", "notBreaching": "OK", "missing": "INSUFFICIENT_DATA"}


def states(alarm: Mapping[str, Any], minutes: Series, parameters: Mapping[str, Any], further: int = 0) -> list[str]:
    """The state after each period; a new alarm is in INSUFFICIENT_DATA before the first."""
    evaluated, wanted = alarm["EvaluationPeriods"], alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])
    threshold = alarm["Threshold"]
    limit = parameters[threshold["Ref"]] if isinstance(threshold, dict) else threshold
    points = list(_points(minutes, alarm["Period"] // 60, alarm["Statistic"]))
    found = ["INSUFFICIENT_DATA"]
    for end in range(1, len(points) + 1):
        there = [point for point in points[max(0, end - evaluated - further) : end] if point is not None]
        newest = there[-evaluated:]
        breaching = sum(_BREACHES[alarm["ComparisonOperator"]](point, limit) for point in newest)
        if not newest:
            found.append(_MISSING[alarm["TreatMissingData"]])
            continue
        if alarm["TreatMissingData"] == "breaching":
            breaching += evaluated - len(newest)
        found.append("ALARM" if breaching >= wanted else "OK")
    return found


def told(alarm: Mapping[str, Any], found: Sequence[str]) -> list[str]:
    """The changes of state that the topic is told of."""
    actions = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
    changes = [after for before, after in pairwise(found) if before != after]
    return [state for state in changes if actions[state] in alarm]


def rings(alarm: Mapping[str, Any], minutes: Series) -> list[str]:
    """What the topic hears through these minutes, with the template's default parameters, however far back it looks."""
    defaults = {"OldestDueAgeAlarm": 300, "InboxAgeAlarm": 300}
    heard = [told(alarm, states(alarm, minutes, defaults, further)) for further in FURTHER]
    assert [heard[0]] * len(heard) == heard, f"it depends on how far back CloudWatch looks: {heard}"
    return heard[0]


def _points(minutes: Series, width: int, statistic: str) -> Iterator[float | None]:
    for at in range(0, len(minutes), width):
        values = [value for value in minutes[at : at + width] if value is not None]
        yield _OF_PERIOD[statistic](values) if values else None
