"""The command beside the deployed template."""

from typing import Any

from tests.aws.schedules.command import DONE, MISUSED, ROOT, Run, WriteApp
from tests.aws.schedules.front import Front
from tests.aws.schedules.outputs import OUTPUTS, make_stack
from tests.aws.schedules.values import deployed


def test_a_stack_tells_function_and_role(
    run: Run, write_app: WriteApp, aws: Front, prefix: str, scheduler: Any
) -> None:
    """With --stack the outputs of the deployed template say what is invoked, and its name is the prefix."""
    make_stack(aws, prefix, OUTPUTS)

    said = run(write_app({"Orders": 1}), "--yes", "--stack", prefix, "--function", "", "--role", "", "--prefix", "")

    assert DONE == said.code
    target = deployed(scheduler, f"{prefix}-schedules")[f"{prefix}-shard-0"]["Target"]
    assert list(OUTPUTS.values()) == [target["Arn"], target["RoleArn"], target["DeadLetterConfig"]["Arn"]]


def test_a_stack_without_the_outputs_is_told_so(run: Run, write_app: WriteApp, aws: Front, prefix: str) -> None:
    """A stack of another template lacks something, and the sentence says which option gives it."""
    make_stack(aws, prefix, {})

    said = run(write_app({"Orders": 1}), "--yes", "--stack", prefix, "--function", "", "--role", "")

    assert MISUSED == said.code
    assert f"Stack {prefix!r} has no output DrainFunctionArn: give --function." in said.error


def test_schedules_of_the_template_are_told_of(
    run: Run, write_app: WriteApp, aws: Front, prefix: str, scheduler: Any
) -> None:
    """Where the template and the command both drain the shards, the command says so, and touches only its own."""
    app, theirs = write_app({"Orders": 2}), f"{prefix}-shards"
    run(app, "--yes")
    there = deployed(scheduler, f"{prefix}-schedules")[f"{prefix}-shard-0"]
    scheduler.create_schedule_group(Name=theirs)
    for name in ("shard-0", "shard-1", "shard-2", "minute"):
        scheduler.create_schedule(GroupName=theirs, **{**there, "Name": name})
    make_stack(aws, prefix, {**OUTPUTS, "ScheduleGroupName": theirs})

    said = run(app, "--yes", "--stack", prefix)
    for name in ("shard-0", "shard-1"):
        scheduler.update_schedule(GroupName=theirs, **{**there, "Name": name, "State": "DISABLED"})
    fewer = run(app, "--yes", "--stack", prefix)

    assert [DONE, DONE] == [said.code, fewer.code]
    assert "has schedules of its own that fire: 3." in said.error
    assert "has schedules of its own that fire: 1." in fewer.error
    assert {"shard-0", "shard-1", "shard-2", "minute"} == deployed(scheduler, theirs).keys()


def test_the_template_says_what_the_command_reads() -> None:
    """The outputs that --stack reads, the parameter that a note names, and the template's names are the template's."""
    template = (ROOT / "template.yaml").read_text()
    parameters, outputs = template.split("\nRules:")[0], template.split("\nOutputs:")[1]

    for name in (*OUTPUTS, "ScheduleGroupName"):
        assert f"\n  {name}:\n" in outputs
    for name in ("ShardSchedules", "ShardIndexes"):
        assert f"\n  {name}:\n" in parameters
    assert "Name: !Sub shard-${ShardIndex}\n" in template
