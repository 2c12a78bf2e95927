"""The calls of AWS, on the local cloud."""

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from lowkiq_lambda.aws.drain_schedules.deployed import DeployError, Group, client, function_arn, stack_outputs
from lowkiq_lambda.aws.drain_schedules.plan import DeployedGroup, Plan, make_plan
from lowkiq_lambda.aws.drain_schedules.schedule import Schedule, name_of, wanted_schedule
from tests.aws.schedules.front import Front
from tests.aws.schedules.values import DEAD_LETTERS, FUNCTION, LIKE, ROLE, as_found, deployed, names
from tests.kit.servers.cloud import LocalCloud

THROTTLED = (429, "ThrottlingException")
DENIED = (403, "AccessDeniedException")


def ignore(_what: str) -> None:
    """Tell nobody."""


def wanted(prefix: str, count: int, like: Schedule = LIKE) -> list[Schedule]:
    """So many schedules."""
    return [wanted_schedule(prefix, index, like) for index in range(count)]


def planned(group: str, prefix: str, schedules: list[Schedule]) -> Plan:
    """What would be done to what is there."""
    return make_plan(prefix, schedules, Group(group).read(prefix), [])


def follow(group: str, prefix: str, schedules: list[Schedule]) -> Plan:
    """Plan and apply."""
    plan = planned(group, prefix, schedules)
    Group(group).apply(plan, ignore)
    return plan


@pytest.mark.usefixtures("aws")
def test_what_is_created_is_all_that_a_schedule_needs(scheduler: Any, group: str, prefix: str) -> None:
    """A new schedule fires on time, once, into its shard, and is dropped soon where it cannot be delivered."""
    follow(group, prefix, wanted(prefix, 2, replace(LIKE, dead_letters=DEAD_LETTERS)))

    assert {
        "Name": f"{prefix}-shard-1",
        "ScheduleExpression": "rate(1 minute)",
        "State": "ENABLED",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Description": "Drains shard 1 of every queue. Made by lowkiq stack schedules.",
        "Target": {
            "Arn": FUNCTION,
            "RoleArn": ROLE,
            "Input": '{"shard": 1}',
            "RetryPolicy": {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 60},
            "DeadLetterConfig": {"Arn": DEAD_LETTERS},
        },
    } == deployed(scheduler, group)[f"{prefix}-shard-1"]


@pytest.mark.usefixtures("aws")
def test_a_group_is_made_once(scheduler: Any, group: str, prefix: str) -> None:
    """A group that is not there is made; nothing is planned where all is as it should be."""
    assert DeployedGroup(group, exists=False) == Group(group).read(prefix)

    first, second = (follow(group, prefix, wanted(prefix, 3)) for _ in range(2))

    assert (True, 3) == (first.makes_group, len(first.create))
    assert not second.has_changes
    assert names(prefix, range(3)) == sorted(deployed(scheduler, group))


@pytest.mark.usefixtures("aws")
def test_each_action_leaves_the_wanted_schedules(scheduler: Any, group: str, prefix: str) -> None:
    """Create, update, delete and keep in one plan: afterwards there is what was wanted, and nothing else."""
    follow(group, prefix, wanted(prefix, 5))
    scheduler.delete_schedule(GroupName=group, Name=name_of(prefix, 1))
    there = deployed(scheduler, group)[name_of(prefix, 2)]
    scheduler.update_schedule(GroupName=group, **{**there, "ScheduleExpression": "rate(7 minutes)"})
    before = deployed(scheduler, group)

    plan = follow(group, prefix, wanted(prefix, 4))

    assert [name_of(prefix, 1)] == [schedule.name for schedule in plan.create]
    assert [name_of(prefix, 2)] == [change.schedule.name for change in plan.update]
    assert [name_of(prefix, 4)] == [schedule.name for schedule in plan.delete]
    assert names(prefix, [0, 3]) == [schedule.name for schedule in plan.keep]
    now = deployed(scheduler, group)
    assert names(prefix, range(4)) == sorted(now)
    assert {"rate(1 minute)"} == {schedule["ScheduleExpression"] for schedule in now.values()}
    assert before[name_of(prefix, 3)] == now[name_of(prefix, 3)]
    assert not planned(group, prefix, wanted(prefix, 4)).has_changes


@pytest.mark.usefixtures("aws")
def test_what_a_schedule_should_not_have_is_taken_away(scheduler: Any, group: str, prefix: str) -> None:
    """An end, a window or a time zone that somebody gave to a schedule would silence or delay its shard."""
    follow(group, prefix, wanted(prefix, 1))
    there = deployed(scheduler, group)[name_of(prefix, 0)]
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}
    changed = {"EndDate": 1_900_000_000, "FlexibleTimeWindow": window, "ScheduleExpressionTimezone": "Asia/Tokyo"}
    scheduler.update_schedule(GroupName=group, **{**there, **changed})

    plan = follow(group, prefix, wanted(prefix, 1))

    assert {"ends_at", "window", "timezone"} == {one.field for one in plan.update[0].differences}
    assert there == deployed(scheduler, group)[name_of(prefix, 0)]
    assert not planned(group, prefix, wanted(prefix, 1)).has_changes


@pytest.mark.usefixtures("aws")
def test_a_disabled_schedule_stays_so_through_an_update(scheduler: Any, group: str, prefix: str) -> None:
    """An operator's switch outlives a deploy that changes something else."""
    follow(group, prefix, wanted(prefix, 1))
    there = deployed(scheduler, group)[name_of(prefix, 0)]
    key = "arn:aws:kms:us-east-1:000000000000:key/one"
    scheduler.update_schedule(GroupName=group, **{**there, "State": "DISABLED", "KmsKeyArn": key})

    follow(group, prefix, wanted(prefix, 1, replace(LIKE, expression="rate(2 minutes)")))

    now = deployed(scheduler, group)[name_of(prefix, 0)]
    assert ("DISABLED", key, "rate(2 minutes)") == (now["State"], now["KmsKeyArn"], now["ScheduleExpression"])


@pytest.mark.usefixtures("aws")
def test_what_is_not_ours_is_left_alone(scheduler: Any, group: str, prefix: str) -> None:
    """Schedules with other names, other prefixes and in other groups are as they were, and those here are told."""
    follow(group, prefix, wanted(prefix, 3))
    there = deployed(scheduler, group)[name_of(prefix, 0)]
    others = ["backup", f"{prefix}-shard-01", f"{prefix}2-shard-2", f"{prefix}-shard-2-old"]
    for name in others:
        scheduler.create_schedule(GroupName=group, **{**there, "Name": name})
    scheduler.create_schedule(GroupName="default", **{**there, "Name": name_of(prefix, 2)})
    before = deployed(scheduler, group)

    plan = follow(group, prefix, wanted(prefix, 1))

    assert tuple(sorted(others)) == plan.foreign
    now = deployed(scheduler, group)
    assert {*others, name_of(prefix, 0)} == now.keys()
    assert {name: before[name] for name in others} == {name: now[name] for name in others}
    assert name_of(prefix, 2) in deployed(scheduler, "default")


def test_more_schedules_than_a_page_holds_are_all_seen(aws: Front, scheduler: Any, group: str, prefix: str) -> None:
    """AWS lists a hundred at once: the rest is seen too, so that none is created again and the surplus goes."""
    follow(group, prefix, wanted(prefix, 105))
    assert 105 == len(deployed(scheduler, group))

    assert not planned(group, prefix, wanted(prefix, 105)).has_changes
    assert 1 == sum("NextToken" in path for _, path in aws.requests)

    plan = follow(group, prefix, wanted(prefix, 99))

    assert (0, 6, 99) == (len(plan.create), len(plan.delete), len(plan.keep))
    assert sorted(names(prefix, range(99))) == sorted(deployed(scheduler, group))


def test_throttled_calls_are_made_again(aws: Front, group: str, prefix: str) -> None:
    """AWS's word that there were too many calls ends nothing."""
    aws.refuse(2, *THROTTLED)

    follow(group, prefix, wanted(prefix, 2))

    assert not planned(group, prefix, wanted(prefix, 2)).has_changes


def test_a_lost_answer_is_no_conflict(aws: Front, scheduler: Any, group: str, prefix: str) -> None:
    """A call whose answer was lost is made again, and finding its own work there is fine; so is finding it gone."""
    follow(group, prefix, wanted(prefix, 1))
    aws.lose_answers(1)
    follow(group, prefix, wanted(prefix, 3))
    assert names(prefix, range(3)) == sorted(deployed(scheduler, group))

    aws.lose_answers(1)
    follow(group, prefix, wanted(prefix, 1))

    assert names(prefix, range(1)) == sorted(deployed(scheduler, group))


@pytest.mark.usefixtures("aws")
def test_a_schedule_that_somebody_else_made_meanwhile_is_not_overwritten(
    scheduler: Any, group: str, prefix: str
) -> None:
    """Between the plan and its end others may act: an equal schedule is fine, another one stops the run."""
    plan = planned(group, prefix, wanted(prefix, 2))
    follow(group, prefix, wanted(prefix, 1))
    there = deployed(scheduler, group)[name_of(prefix, 0)]
    theirs = {**there, "Name": name_of(prefix, 1), "ScheduleExpression": "rate(9 minutes)"}
    scheduler.create_schedule(GroupName=group, **theirs)

    with pytest.raises(DeployError, match=r"shard-1', or its group, was changed by somebody else meanwhile"):
        Group(group).apply(plan, ignore)

    assert theirs["ScheduleExpression"] == deployed(scheduler, group)[name_of(prefix, 1)]["ScheduleExpression"]


@pytest.mark.usefixtures("aws")
def test_what_was_deleted_meanwhile_stops_an_update_and_no_deletion(scheduler: Any, group: str, prefix: str) -> None:
    """A schedule that is gone cannot be updated, which a later run mends; that it should go has been done."""
    follow(group, prefix, wanted(prefix, 2))
    deletion = planned(group, prefix, wanted(prefix, 1))
    update = planned(group, prefix, wanted(prefix, 1, replace(LIKE, expression="rate(2 minutes)")))
    scheduler.delete_schedule(GroupName=group, Name=name_of(prefix, 1))
    Group(group).apply(deletion, ignore)
    scheduler.delete_schedule(GroupName=group, Name=name_of(prefix, 0))

    with pytest.raises(DeployError, match="run the command again"):
        Group(group).apply(update, ignore)

    scheduler.delete_schedule_group(Name=group)
    with pytest.raises(DeployError, match="run the command again"):
        Group(group).apply(replace(deletion, delete=(), create=(as_found(wanted(prefix, 1)[0]),)), ignore)


def test_a_refused_plan_cannot_be_applied(aws: Front, group: str, prefix: str) -> None:
    """Whoever applies a refused plan is stopped before the first call."""
    plan = replace(planned(group, prefix, wanted(prefix, 2)), refused=("no",))

    with pytest.raises(DeployError, match="not carried out"):
        Group(group).apply(plan, ignore)

    assert [] == aws.writes


def test_a_missing_right_is_said_in_a_sentence(aws: Front, group: str, prefix: str) -> None:
    """What AWS refuses names what was to be done, AWS's own words, and where the rights are listed."""
    aws.refuse(1, *DENIED)

    with pytest.raises(DeployError) as refusal:
        Group(group).read(prefix)

    assert str(refusal.value) == (
        f"The schedule group {group!r} could not be read: AccessDeniedException: as the test says "
        "The docs (drain-schedules.md) list the rights that this command needs."
    )


@pytest.mark.usefixtures("aws")
def test_no_region_and_no_credentials_are_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    """What is missing in AWS's own settings is named."""
    # boto3 keeps what it found in the session that it made first.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(DeployError, match=r"could not be read: .*credentials"):
        Group(group).read("any")

    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    with pytest.raises(DeployError, match="Name a region: set AWS_REGION"):
        Group(group)
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    assert "eu-west-3" == client("scheduler").meta.region_name


@pytest.mark.usefixtures("aws")
def test_a_function_is_found_by_its_name(cloud: LocalCloud, prefix: str) -> None:
    """A name becomes the ARN that a schedule needs; an ARN is taken as it is; an unknown name is said."""
    made = cloud.client("lambda").create_function(
        FunctionName=prefix,
        Role=ROLE,
        PackageType="Image",
        Code={"ImageUri": "000000000000.dkr.ecr.us-east-1.amazonaws.com/any:latest"},
    )

    assert made["FunctionArn"] == function_arn(prefix)
    assert FUNCTION == function_arn(FUNCTION)
    with pytest.raises(DeployError, match="The function 'unknown' could not be read: "):
        function_arn("unknown")


@pytest.mark.usefixtures("aws")
def test_the_outputs_of_a_stack_are_read(cloud: LocalCloud, prefix: str) -> None:
    """What the template says about itself is found; a stack that is not there is said."""
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {"DrainFunctionArn": {"Value": "one"}, "SchedulerRoleArn": {"Value": "two"}},
    }
    cloud.client("cloudformation").create_stack(StackName=prefix, TemplateBody=json.dumps(template))

    assert {"DrainFunctionArn": "one", "SchedulerRoleArn": "two"} == stack_outputs(prefix)
    with pytest.raises(DeployError, match="The stack 'unknown' could not be read: "):
        stack_outputs("unknown")
