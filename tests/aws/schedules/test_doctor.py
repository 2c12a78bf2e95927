"""`lowkiq doctor --stack`: shards that no schedule drains."""

from typing import Any

import pytest

from lowkiq_lambda.cli import main
from tests.aws.schedules.command import DONE, FAILED, Run, WriteApp
from tests.aws.schedules.front import Front
from tests.aws.schedules.outputs import OUTPUTS, make_stack
from tests.aws.schedules.values import deployed


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are wrapped as on a wide terminal, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "200")


def test_shards_without_a_schedule_are_told(  # noqa: PLR0913, PLR0917 - its fixtures
    run: Run, write_app: WriteApp, aws: Front, prefix: str, scheduler: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Those of the template count, and those of `lowkiq drain-schedules`, where they fire; AWS is asked on request."""
    app, theirs = write_app({"Orders": 3}), f"{prefix}-shards"
    run(app, "--yes")
    there = deployed(scheduler, f"{prefix}-schedules")
    for name in (f"{prefix}-shard-1", f"{prefix}-shard-2"):
        scheduler.update_schedule(GroupName=f"{prefix}-schedules", **{**there[name], "Name": name, "State": "DISABLED"})
    scheduler.create_schedule_group(Name=theirs)
    scheduler.create_schedule(GroupName=theirs, **{**there[f"{prefix}-shard-0"], "Name": "shard-2"})
    make_stack(aws, prefix, {**OUTPUTS, "ScheduleGroupName": theirs})
    main(["doctor", app, "--stack", prefix])
    missing = capfd.readouterr().out
    name = f"{prefix}-shard-1"
    scheduler.update_schedule(GroupName=f"{prefix}-schedules", **{**there[name], "Name": name, "State": "ENABLED"})
    main(["doctor", app, "--stack", prefix])
    complete = capfd.readouterr().out

    assert "drain schedules: no schedule that fires drains the shard indexes 1\n" in missing
    assert f"-> Make them: lowkiq drain-schedules --stack {prefix}. A daemon needs none.\n" in missing
    assert "drain schedules: each of the 3 shard indexes has a schedule that fires\n" in complete


def test_aws_that_refuses_hides_nothing(
    run: Run, write_app: WriteApp, prefix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the server tells is told, and of AWS that it is not known."""
    app = write_app({"Orders": 3})
    del run
    code = main(["doctor", app, "--stack", prefix])
    told = capfd.readouterr().out

    assert code in {DONE, FAILED}
    assert f"not known  drain schedules: The stack '{prefix}' could not be read: " in told
    assert "  ok         eviction: maxmemory-policy is noeviction\n" in told
