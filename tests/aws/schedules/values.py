"""Schedules to plan with, and those that the cloud has."""

from collections.abc import Sequence
from typing import Any

from lowkiq_lambda.aws.drain_schedules.plan import DeployedGroup, Plan
from lowkiq_lambda.aws.drain_schedules.schedule import Schedule, corrected, name_of
from tests.kit.servers.cloud import ACCOUNT, REGION

FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:drain"
OTHER_FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:another-drain"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/schedules"
OTHER_ROLE = f"arn:aws:iam::{ACCOUNT}:role/others"
DEAD_LETTERS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:undelivered"

LIKE = Schedule(name="", expression="rate(1 minute)", function=FUNCTION, role=ROLE, event="")


def after(plan: Plan, found: DeployedGroup) -> DeployedGroup:
    """The group as it is when the plan was carried out."""
    if plan.refused:
        return found
    changed = {change.schedule.name: change.schedule for change in plan.update}
    gone = {schedule.name for schedule in plan.delete}
    own = {schedule.name: changed.get(schedule.name, schedule) for schedule in found.own if schedule.name not in gone}
    own |= {schedule.name: as_found(schedule) for schedule in plan.create}
    return DeployedGroup(found.group, exists=True, names=(*plan.foreign, *own), own=tuple(own.values()))


def as_found(schedule: Schedule, *, enabled: bool = True) -> Schedule:
    """A wanted schedule as it is found when it was made."""
    state = Schedule("", "", "", "", "", enabled=enabled)
    return corrected(schedule, state)


def names(prefix: str, indexes: Sequence[int]) -> list[str]:
    """The names of schedules."""
    return [name_of(prefix, index) for index in indexes]


def deployed(client: Any, group: str) -> dict[str, dict[str, Any]]:
    """All that the cloud has in the group, by name, as it tells it."""
    listed = client.list_schedules(GroupName=group, MaxResults=1_000_000)["Schedules"]
    found = [client.get_schedule(GroupName=group, Name=schedule["Name"]) for schedule in listed]
    kept = {"Name", "ScheduleExpression", "State", "Target", "FlexibleTimeWindow", "Description", "KmsKeyArn"}
    return {one["Name"]: {name: value for name, value in one.items() if name in kept} for one in found}
