"""Stacks, as far as the commands look at them."""

import json
from typing import Any

from tests.aws.schedules.front import Front
from tests.aws.schedules.values import DEAD_LETTERS, FUNCTION, ROLE

OUTPUTS = {"DrainFunctionArn": FUNCTION, "SchedulerRoleArn": ROLE, "FailureQueueArn": DEAD_LETTERS}


def make_stack(aws: Front, name: str, outputs: dict[str, str]) -> None:
    """A stack that is only its outputs."""
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {key: {"Value": value} for key, value in outputs.items()},
    }
    aws.cloud.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))


class StackSchedules:
    """The schedules of a stack, of which it has none at first, and what they send."""

    def __init__(self, aws: Front, stack: str, scheduler: Any) -> None:
        self._scheduler, self.group = scheduler, f"{stack}-shards"
        scheduler.create_schedule_group(Name=self.group)
        make_stack(aws, stack, {**OUTPUTS, "ScheduleGroupName": self.group})

    def add(self, name: str, event: str, state: str = "ENABLED") -> None:
        """One that sends it each minute."""
        self._scheduler.create_schedule(
            GroupName=self.group,
            Name=name,
            State=state,
            ScheduleExpression="rate(1 minute)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": FUNCTION, "RoleArn": ROLE, "Input": event},
        )
