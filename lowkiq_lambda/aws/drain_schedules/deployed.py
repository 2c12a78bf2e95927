"""The deployed schedules: the few calls of AWS that look at them and change them, and the form that they have there."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from lowkiq_lambda.aws.drain_schedules.plan import DeployedGroup, Plan
from lowkiq_lambda.aws.drain_schedules.schedule import Schedule, differences, place_of
from lowkiq_lambda.base.errors import LowkiqError

_LOOKS_AT_ONCE: Final = 8
_ATTEMPTS: Final = 6
"""Of a call that AWS throttles, or that fails on its way, with growing pauses between them."""
_RIGHTS: Final = "The docs ({page}) list the rights that this command needs."
_HINTS: Final = {
    **dict.fromkeys(("AccessDenied", "AccessDeniedException"), _RIGHTS),
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId"), "Sign in again."),
    "UnrecognizedClientException": "Sign in again.",
    "ValidationException": "Correct the option that it names.",
}

_NO_WINDOW = "OFF"


class DeployError(LowkiqError):
    """AWS could not be asked, or refused: its own words are in the message."""


class AwsUnreachable(DeployError):
    """AWS could not be reached: try again a little later."""


class Group:
    """A schedule group, in the account and the region that AWS's own settings name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._client = client("scheduler")

    def read(self, prefix: str) -> DeployedGroup:
        """What is in the group. Raises DeployError."""
        with said(f"The schedule group {self.name!r} could not be read"):
            if not self._exists():
                return DeployedGroup(self.name, exists=False)
            pages = self._client.get_paginator("list_schedules").paginate(GroupName=self.name)
            names = tuple(schedule["Name"] for page in pages for schedule in page["Schedules"])
            own = [name for name in names if place_of(prefix, name) is not None]
            with ThreadPoolExecutor(_LOOKS_AT_ONCE) as looks:
                schedules = list(looks.map(self._get, own))
        return DeployedGroup(
            self.name, exists=True, names=names, own=tuple(schedule for schedule in schedules if schedule is not None)
        )

    def enabled(self) -> list[str]:
        """The names of the schedules in the group that fire. Raises DeployError."""
        with said(f"The schedule group {self.name!r} could not be read"):
            if not self._exists():
                return []
            pages = self._client.get_paginator("list_schedules").paginate(GroupName=self.name, State="ENABLED")
            return [schedule["Name"] for page in pages for schedule in page["Schedules"]]

    def firing(self) -> list[Schedule]:
        """The schedules in the group that fire. Raises DeployError."""
        names = self.enabled()
        with said(f"The schedule group {self.name!r} could not be read"), ThreadPoolExecutor(_LOOKS_AT_ONCE) as looks:
            return [schedule for schedule in looks.map(self._get, names) if schedule is not None]

    def apply(self, plan: Plan, tell: Callable[[str], object]) -> None:
        """Apply the plan, and pass each change to `tell`. Raises DeployError at the first change that fails.

        New and changed schedules are in place before old ones are deleted, and a later run can go on after each step.
        """
        if plan.refused:
            raise DeployError("A refused plan is not carried out.")
        if plan.makes_group:
            self._make_group()
            tell(f"created the group {self.name}")
        for schedule in plan.create:
            self._create(schedule)
            tell(f"created {schedule.name}")
        for change in plan.update:
            self._update(change.schedule)
            tell(f"updated {change.schedule.name}")
        for schedule in plan.delete:
            self._delete(schedule.name)
            tell(f"deleted {schedule.name}")

    def _exists(self) -> bool:
        try:
            group = self._client.get_schedule_group(Name=self.name)
        except self._client.exceptions.ResourceNotFoundException:
            return False
        if group["State"] != "ACTIVE":
            raise DeployError(f"Schedule group {self.name!r} is being deleted: wait until it is gone.")
        return True

    def _get(self, name: str) -> Schedule | None:
        try:
            return schedule_of(self._client.get_schedule(GroupName=self.name, Name=name))
        except self._client.exceptions.ResourceNotFoundException:
            return None

    def _make_group(self) -> None:
        with said(f"The schedule group {self.name!r} could not be created"):
            try:
                self._client.create_schedule_group(Name=self.name)
            except self._client.exceptions.ConflictException:
                return

    def _create(self, schedule: Schedule) -> None:
        with said(f"The schedule {schedule.name!r} could not be created"):
            try:
                self._client.create_schedule(**request_of(schedule, self.name))
            except self._client.exceptions.ConflictException as error:
                # An answer may have been lost, or another run of this command was quicker.
                deployed = self._get(schedule.name)
                if deployed is None or differences(schedule, deployed):
                    raise _changed_meanwhile(schedule.name) from error
            except self._client.exceptions.ResourceNotFoundException as error:
                raise _changed_meanwhile(schedule.name) from error

    def _update(self, schedule: Schedule) -> None:
        with said(f"The schedule {schedule.name!r} could not be updated"):
            try:
                self._client.update_schedule(**request_of(schedule, self.name))
            except self._client.exceptions.ResourceNotFoundException as error:
                raise _changed_meanwhile(schedule.name) from error

    def _delete(self, name: str) -> None:
        with said(f"The schedule {name!r} could not be deleted"):
            try:
                self._client.delete_schedule(GroupName=self.name, Name=name)
            except self._client.exceptions.ResourceNotFoundException:
                return


def _changed_meanwhile(name: str) -> DeployError:
    return DeployError(
        f"Schedule {name!r}, or its group, was changed by somebody else meanwhile: run the command again, it goes on "
        "from here."
    )


def function_arn(function: str) -> str:
    """The ARN of a function that is given by its name, with or without an alias. Raises DeployError."""
    if function.startswith("arn:"):
        return function
    with said(f"The function {function!r} could not be read"):
        return str(client("lambda").get_function_configuration(FunctionName=function)["FunctionArn"])


def function_environment(function: str) -> dict[str, str]:
    """The variables of a function. Raises DeployError."""
    with said(f"The function {function!r} could not be read"):
        settings = client("lambda").get_function_configuration(FunctionName=function)
    return dict(settings.get("Environment", {}).get("Variables", {}))


def runs_latest(function: str) -> bool:
    """Whether the alias in a function's ARN starts what was deployed last, code and variables. Raises DeployError."""
    name, _, alias = function.rpartition(":")
    with said(f"The function {function!r} could not be read"):
        api = client("lambda")
        latest, live = (
            api.get_function_configuration(FunctionName=name, **qualifier) for qualifier in ({}, {"Qualifier": alias})
        )
    return all(latest.get(part) == live.get(part) for part in ("CodeSha256", "Environment"))


def stack_outputs(stack: str) -> dict[str, str]:
    """The outputs of a CloudFormation stack. Raises DeployError."""
    with said(f"The stack {stack!r} could not be read"):
        stacks: Sequence[Any] = client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stacks[0].get("Outputs", [])}


def client(service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients' classes at run time
    """A client that bears with throttling. Raises DeployError."""
    try:
        # Imported here, as it takes a quarter of a second and only this command needs it.
        import boto3  # noqa: PLC0415 - as said above
        from botocore.config import Config  # noqa: PLC0415 - as said above
    except ModuleNotFoundError as error:
        raise DeployError("boto3 is not installed: pip install 'lowkiq-lambda[aws]'.") from error
    settings = Config(
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS}, connect_timeout=10, read_timeout=30
    )
    with said("AWS could not be asked"):
        # boto3 itself knows only AWS_DEFAULT_REGION.
        return boto3.client(service, region_name=os.environ.get("AWS_REGION") or None, config=settings)


@contextmanager
def said(failure: str, page: str = "drain-schedules.md") -> Iterator[None]:
    """What boto3 raises in the block, as a sentence that begins with `failure`; `page` lists the rights."""
    from botocore.exceptions import (  # noqa: PLC0415 - only this command needs it
        BotoCoreError,
        ClientError,
        HTTPClientError,
        NoRegionError,
    )
    from botocore.exceptions import ConnectionError as NoConnection  # noqa: PLC0415 - as above

    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        words = error.response.get("Error", {}).get("Message") or str(error)
        raise DeployError(f"{failure}: {code}: {words} {_HINTS.get(code, '').format(page=page)}".rstrip()) from error
    except NoRegionError as error:
        raise DeployError("Name a region: set AWS_REGION.") from error
    except (HTTPClientError, NoConnection) as error:
        raise AwsUnreachable(f"{failure}: {error}") from error
    except BotoCoreError as error:
        raise DeployError(f"{failure}: {error}") from error


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
