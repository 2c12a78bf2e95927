"""The states of an alarm by its definition and a series of minutes, as CloudWatch's documentation has them.

CloudWatch looks further back than the periods that an alarm evaluates, and takes the newest points that are there in
place of missing ones; how far is not promised. `further` is by how many points. An alarm should ring alike for any.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

Series: TypeAlias = Sequence[float | None]
"""A value for each minute; None where nothing was published."""
Recorded: TypeAlias = Series | Mapping[str, Series]
"""Of an alarm on several metrics at once, those of each by its id; of one that is left out, nothing was published."""

_BREACHES: Final = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}
_OF_PERIOD: Final[Mapping[str, Callable[[list[float]], float]]] = {"Sum": sum, "Maximum": max, "SampleCount": len}
_MISSING: Final = {"breaching": "ALARM", "notBreaching": "OK", "missing": "INSUFFICIENT_DATA"}


def states(alarm: Mapping[str, Any], minutes: Recorded, parameters: Mapping[str, Any], further: int = 0) -> list[str]:
    """The state after each period; a new alarm is in INSUFFICIENT_DATA before the first."""
    evaluated = int(alarm["EvaluationPeriods"])
    needed, threshold = int(alarm.get("DatapointsToAlarm", evaluated)), alarm["Threshold"]
    limit = float(parameters[threshold["Ref"]] if isinstance(threshold, dict) else threshold)
    points = _points(alarm, minutes, parameters)
    history = ["INSUFFICIENT_DATA"]
    for end in range(1, len(points) + 1):
        there = [point for point in points[max(0, end - evaluated - further) : end] if point is not None]
        newest = there[-evaluated:]
        breaching = sum(_BREACHES[alarm["ComparisonOperator"]](point, limit) for point in newest)
        history.append(_state(alarm["TreatMissingData"], history[-1], breaching, len(newest), (needed, evaluated)))
    return history


def _state(missing: str, before: str, breaching: int, there: int, needed: tuple[int, int]) -> str:
    """By the tables of "Configuring how CloudWatch alarms treat missing data"."""
    to_alarm, evaluated = needed
    if missing == "ignore" and breaching == there < to_alarm:
        return before
    if not there:
        return _MISSING[missing]
    filled = evaluated - there if missing == "breaching" else 0
    return "ALARM" if breaching + filled >= to_alarm else "OK"


def computed(expression: str, **values: float) -> float:
    """The value of metric math for single points; a metric without a point is left out."""

    def filled(name: str, default: float) -> float:
        return values.get(name, default)

    def first_if(condition: float, then: float, otherwise: float) -> float:
        return then if condition else otherwise

    functions: dict[str, Callable[..., float]] = {"FILL": filled, "MAX": max, "SUM": sum, "IF": first_if}
    quoted = re.sub(r"FILL\((\w+),", r"FILL('\1',", expression).replace(" AND ", " and ")
    return float(eval(quoted, {"__builtins__": {}}, {**functions, **values}))  # noqa: S307 - of our own template


def _points(alarm: Mapping[str, Any], minutes: Recorded, parameters: Mapping[str, Any]) -> list[float | None]:
    """A point for each period; None where a metric that it takes has none."""
    if "Metrics" not in alarm:
        (one,) = minutes.values() if isinstance(minutes, Mapping) else (minutes,)
        return list(_of_periods(one, int(alarm["Period"]) // 60, alarm["Statistic"]))
    measured = {one["Id"]: one["MetricStat"] for one in alarm["Metrics"] if "MetricStat" in one}
    (returned,) = [one for one in alarm["Metrics"] if one.get("ReturnData", True)]
    series = minutes if isinstance(minutes, Mapping) else {returned["Id"]: minutes}
    stats = {name: (int(measured[name]["Period"]) // 60, measured[name]["Stat"]) for name in series}
    each = {name: list(_of_periods(one, *stats[name])) for name, one in series.items()}
    expression = _text(returned.get("Expression", returned["Id"]), parameters)
    return [_computed(expression, dict(zip(each, points, strict=True))) for points in zip(*each.values(), strict=True)]


def _computed(expression: str, points: Mapping[str, float | None]) -> float | None:
    try:
        return computed(expression, **{name: point for name, point in points.items() if point is not None})
    except NameError:
        return None


def _text(expression: str | Mapping[str, str], parameters: Mapping[str, Any]) -> str:
    if isinstance(expression, str):
        return expression
    return re.sub(r"\$\{(\w+)\}", lambda name: str(parameters[name[1]]), expression["Fn::Sub"])


def _of_periods(minutes: Series, width: int, statistic: str) -> Iterator[float | None]:
    for at in range(0, len(minutes), width):
        values = [value for value in minutes[at : at + width] if value is not None]
        yield _OF_PERIOD[statistic](values) if values else None
