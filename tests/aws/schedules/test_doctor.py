"""`lowkiq doctor --stack`: shards that no schedule drains."""

import json
from collections.abc import Callable

import pytest

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.drain_schedules import coverage, deployed
from lowkiq_lambda.cli import main
from lowkiq_lambda.cli.doctor import stack_findings
from lowkiq_lambda.settings.loading import load_app
from tests.aws.schedules.command import DONE, FAILED, Run, WriteApp, push
from tests.aws.schedules.outputs import StackSchedules
from tests.aws.schedules.values import FUNCTION
from tests.kit.servers import Server

NAMED = {"DrainFunctionName": "drain"}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are wrapped as on a wide terminal, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "200")


Told = Callable[..., str]


@pytest.fixture
def told(own_server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Told:
    """What the doctor says of the schedules of the stack, in a line."""
    monkeypatch.setenv("LOWKIQ_REDIS_URL", own_server.url)

    def tell(app: str) -> str:
        main(["doctor", app, "--stack", prefix, "--json"])
        findings = json.loads(capfd.readouterr().out)["findings"]
        own = [one for one in findings if one["check"] == "drain schedules"]
        return "; ".join(f"{one['mark']} {one['about']}: {one['says']}" for one in own)

    return tell


def test_shards_without_a_schedule_are_told(schedules: StackSchedules, told: Told, write_app: WriteApp) -> None:
    """Those of the template count where they fire, and each queue names those that it has none for."""
    app = write_app({"Orders": 3, "Items": 2})
    schedules.add("minute", '{"tick": "only"}')
    schedules.add("shard-0", '{"shard": 0}')
    schedules.add("shard-1", '{"shard": 1}', "DISABLED")
    schedules.add("orders", '{"queue": "Orders", "shard": 1}')
    missing = told(app)
    for index in (1, 2):
        schedules.add(f"shard-{index}-again", f'{{"shard": {index}}}')

    assert missing == "; ".join(
        f"broken {each} has no schedule, and housekeeping starts no drains"
        for each in ("Orders: shard 2", "Items: shard 1")
    )
    assert told(app) == "ok : each of the 5 shards is drained by a schedule that fires"


def test_schedules_that_drain_nothing_are_told(schedules: StackSchedules, told: Told, write_app: WriteApp) -> None:
    """Those of shards and queues that the app does not have, with their names; others' are not ours to judge."""
    app = write_app({"Orders": 1})
    schedules.add("shard-0", '{"shard": 0}')
    schedules.add("shard-7", '{"shard": 7}')
    schedules.add("queue-Gone", '{"queue": "Gone"}')
    schedules.add("shard-8", '{"shard": 8}', "DISABLED")
    schedules.add("backup", '"nightly"')

    nothing = "the schedule drains nothing: the app has no such queue or shard"
    assert told(app) == (
        "ok : each of the 1 shards is drained by a schedule that fires; "
        f"warning queue-Gone: {nothing}; warning shard-7: {nothing}"
    )


@pytest.mark.parametrize("event", ["{}", '{"tick": true}'])
def test_one_schedule_for_all_leaves_no_shard_out(
    schedules: StackSchedules, told: Told, write_app: WriteApp, event: str
) -> None:
    """With `ShardSchedules=false` no shard has a schedule, and each is drained."""
    schedules.add("minute", event)

    assert told(write_app({"Orders": 7})) == "ok : each of the 7 shards is drained by a schedule that fires"


def test_a_shard_that_a_move_has_made_is_told(schedules: StackSchedules, told: Told, write_app: WriteApp) -> None:
    """The queue has more shards than its code declares; without the move that code is served whole."""
    app = write_app({"Orders": 5})
    for index in range(5):
        schedules.add(f"shard-{index}", f'{{"shard": {index}}}')
    push(app)
    before = told(app)
    loaded = load_app(app, Lowkiq)
    loaded.operate(loaded.workers[0]).reshard(to=8)

    assert before == "ok : each of the 5 shards is drained by a schedule that fires"
    assert (
        told(write_app({"Orders": 5}))
        == "broken Orders: shards 5, 6, 7 have no schedule, and housekeeping starts no drains"
    )


def test_ticks_that_fan_out_leave_no_shard_out(
    schedules: StackSchedules, told: Told, write_app: WriteApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function says so, and which queues other functions drain; without a tick nothing fans out."""
    variables = {"LOWKIQ_IDLE": "start", "LOWKIQ_QUEUES": "-Items"}
    monkeypatch.setattr(coverage, "function_environment", lambda _name: variables)
    monkeypatch.setattr(coverage, "stack_outputs", lambda _name: {"ScheduleGroupName": schedules.group, **NAMED})
    app = write_app({"Orders": 3, "Items": 2})
    without_ticks = told(app)
    schedules.add("minute", '{"tick": "only"}')

    assert without_ticks == "broken Orders: shards 0, 1, 2 have no schedule, and housekeeping starts no drains"
    assert told(app) == "ok : each housekeeping run starts drains of the shards that have work"


@pytest.mark.parametrize(
    ("variables", "marks"),
    [
        ({"LOWKIQ_DASHBOARD_SECRET_ARN": "arn"}, ["warning"]),
        ({"LOWKIQ_DASHBOARD_SECRET_ARN": "arn", "LOWKIQ_DASHBOARD_ACCOUNTS": "olga:operator:scrypt:1"}, []),
        ({"LOWKIQ_DASHBOARD_CLAIMS": "iam", "LOWKIQ_DASHBOARD_SECRET_ARN": "arn"}, []),
        ({"LOWKIQ_DASHBOARD_ACCOUNTS": " "}, []),
    ],
)
def test_a_stack_whose_operators_share_a_password_is_told(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], marks: list[str]
) -> None:
    """The dashboard's function says who comes in; nobody is named who shares."""
    monkeypatch.setattr(coverage, "coverage_of", lambda _app, _stack: coverage.Coverage(1, fans_out=False, missing={}))
    monkeypatch.setattr(deployed, "stack_outputs", lambda _stack: {"DashboardFunctionName": "shop-dashboard"})
    monkeypatch.setattr(deployed, "function_environment", lambda _name: variables)

    found = [one for one in stack_findings(Lowkiq(), "shop") if one.check == "accounts"]

    assert marks == [one.mark for one in found]
    assert all("DashboardAccounts" in one.advice and one.about == "shop-dashboard" for one in found)


@pytest.mark.parametrize(
    ("alias", "latest", "marks"), [("", False, []), (":live", True, []), (":live", False, ["warning"])]
)
def test_a_stack_that_runs_another_version_is_told(
    monkeypatch: pytest.MonkeyPatch,
    alias: str,
    latest: bool,  # noqa: FBT001 - what AWS tells
    marks: list[str],
) -> None:
    """Where there is an alias, and what was deployed last is not behind it."""
    drain = f"{FUNCTION}{alias}"
    monkeypatch.setattr(coverage, "coverage_of", lambda _app, _stack: coverage.Coverage(1, fans_out=True, missing={}))
    monkeypatch.setattr(deployed, "stack_outputs", lambda _stack: {"DrainFunctionArn": drain})
    monkeypatch.setattr(deployed, "runs_latest", lambda _function: latest)

    found = [one for one in stack_findings(Lowkiq(), "shop") if one.mark != "ok"]

    assert [(mark, drain, "it runs another version than was deployed last") for mark in marks] == [
        (one.mark, one.about, one.says) for one in found
    ]


def test_a_move_names_the_shards_that_a_stack_would_not_drain(
    schedules: StackSchedules, told: Told, write_app: WriteApp, prefix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """`lowkiq reshard --stack` asks AWS before anything has moved, and has nothing to tell where one drains all."""
    app = write_app({"Orders": 5})
    push(app)
    for index in range(5):
        schedules.add(f"shard-{index}", f'{{"shard": {index}}}')
    command = ["reshard", "Orders", "--app", app, "--to", "6", "--dry-run", "--stack", prefix]

    main(command)
    missing = capfd.readouterr().err
    schedules.add("drain", "{}")
    main(command)

    assert "note: Orders: shard 5 has no schedule, and housekeeping starts no drains.\n" == missing
    assert "" == capfd.readouterr().err
    assert told(app).startswith("ok")


def test_aws_that_refuses_hides_nothing(
    run: Run, write_app: WriteApp, prefix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the server tells is told, and of AWS that it is not known."""
    app = write_app({"Orders": 3})
    del run
    code = main(["doctor", app, "--stack", prefix, "--all"])
    told = capfd.readouterr().out

    assert code in {DONE, FAILED}
    assert f"not known  drain schedules: The stack '{prefix}' could not be read: " in told
    assert "  ok         eviction: maxmemory-policy is noeviction\n" in told
