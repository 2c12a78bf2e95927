"""Stacks, as far as the commands look at them."""

import json

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
