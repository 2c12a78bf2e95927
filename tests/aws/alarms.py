"""What the topic of an alarm hears, by the evaluator of the local cloud."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from lowkiq_lambda.stack.cloud.inside.alarms import Recorded, Series, computed
from lowkiq_lambda.stack.cloud.inside.alarms import states as states_with

__all__ = ["FURTHER", "Recorded", "Series", "chosen", "computed", "rings", "states", "told"]

FURTHER: Final = (0, 2)
"""Not at all, and as in CloudWatch's own example, where three of five points are evaluated."""
DEFAULTS: Final = {"OldestDueAgeAlarm": 300, "InboxAgeAlarm": 300}
"""The template's parameters that alarms refer to."""


def states(
    alarm: Mapping[str, Any], minutes: Recorded, parameters: Mapping[str, Any] = DEFAULTS, further: int = 0
) -> list[str]:
    """The state after each period, with the template's default parameters."""
    return states_with(alarm, minutes, parameters, further)


def chosen(value: Any, conditions: Mapping[str, bool]) -> Any:
    """That part of a template as it is deployed where these conditions hold, and no others."""
    if isinstance(value, list):
        return [chosen(one, conditions) for one in value]
    if not isinstance(value, dict):
        return value
    if "Fn::If" in value:
        condition, then, otherwise = value["Fn::If"]
        return chosen(then if conditions.get(condition) else otherwise, conditions)
    deployed = {name: chosen(one, conditions) for name, one in value.items()}
    return {name: one for name, one in deployed.items() if one != {"Ref": "AWS::NoValue"}}


def told(alarm: Mapping[str, Any], found: Sequence[str]) -> list[str]:
    """The changes of state that the topic is told of."""
    actions = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
    changes = [after for before, after in pairwise(found) if before != after]
    return [state for state in changes if actions[state] in alarm]


def rings(alarm: Mapping[str, Any], minutes: Recorded) -> list[str]:
    """What the topic hears through these minutes, with the template's default parameters, however far back it looks."""
    heard = [told(alarm, states(alarm, minutes, further=further)) for further in FURTHER]
    assert [heard[0]] * len(heard) == heard, f"it depends on how far back CloudWatch looks: {heard}"
    return heard[0]
