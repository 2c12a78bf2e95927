"""Schedules as EventBridge Scheduler's API has them."""

from collections.abc import Mapping
from typing import Any

from lowkiq_lambda.aws.drain_schedules.schedule import Schedule

_NO_WINDOW = "OFF"


def request_of(schedule: Schedule, group: str) -> dict[str, Any]:
    """The arguments of CreateSchedule and UpdateSchedule: both are told everything."""
    target: dict[str, Any] = {
        "Arn": schedule.function,
        "RoleArn": schedule.role,
        "Input": schedule.event,
        "RetryPolicy": {
            "MaximumRetryAttempts": schedule.retries,
            "MaximumEventAgeInSeconds": schedule.event_age,
        },
    }
    if schedule.dead_letters:
        target["DeadLetterConfig"] = {"Arn": schedule.dead_letters}
    request: dict[str, Any] = {
        "Name": schedule.name,
        "GroupName": group,
        "ScheduleExpression": schedule.expression,
        "ScheduleExpressionTimezone": schedule.timezone,
        "Description": schedule.description,
        "FlexibleTimeWindow": {"Mode": schedule.window},
        "ActionAfterCompletion": schedule.at_the_end,
        "State": "DISABLED" if schedule.enabled is False else "ENABLED",
        "Target": target,
    }
    if schedule.kms_key:
        request["KmsKeyArn"] = schedule.kms_key
    return request


def schedule_of(answer: Mapping[str, Any]) -> Schedule:
    """A schedule as GetSchedule tells it; what is not told is what Scheduler takes it for."""
    target = answer["Target"]
    policy = target.get("RetryPolicy", {})
    window = answer["FlexibleTimeWindow"]
    minutes = window.get("MaximumWindowInMinutes")
    return Schedule(
        name=answer["Name"],
        expression=answer["ScheduleExpression"],
        function=target["Arn"],
        role=target["RoleArn"],
        event=target.get("Input", ""),
        dead_letters=target.get("DeadLetterConfig", {}).get("Arn"),
        retries=policy.get("MaximumRetryAttempts", 185),
        event_age=policy.get("MaximumEventAgeInSeconds", 86_400),
        window=window["Mode"] if window["Mode"] == _NO_WINDOW else f"{window['Mode']} {minutes} minutes",
        timezone=answer.get("ScheduleExpressionTimezone", "UTC"),
        description=answer.get("Description", ""),
        starts_at=_text(answer.get("StartDate")),
        ends_at=_text(answer.get("EndDate")),
        at_the_end=answer.get("ActionAfterCompletion", "NONE"),
        enabled=answer.get("State", "ENABLED") == "ENABLED",
        kms_key=answer.get("KmsKeyArn"),
    )


def _text(moment: object) -> str | None:
    return None if moment is None else str(moment)
