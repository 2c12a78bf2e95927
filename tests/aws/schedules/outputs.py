"""Stacks and functions, as far as the commands look at them."""

import io
import json
from typing import Any
from zipfile import ZipFile

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


def make_function(client: Any, name: str, queues: str) -> str:
    """A function that drains these queues, by LOWKIQ_QUEUES; its ARN."""
    packed = io.BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr("drain.py", "")
    made = client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=ROLE,
        Handler="drain.handler",
        Code={"ZipFile": packed.getvalue()},
        Environment={"Variables": {"LOWKIQ_QUEUES": queues}},
    )
    return str(made["FunctionArn"])


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
