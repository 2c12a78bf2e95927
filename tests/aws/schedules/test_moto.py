"""The command against moto's Scheduler: create, keep, update, delete, and what people did there by hand."""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import pytest

from lowkiq_lambda.cli import main
from tests.aws.schedules.command import DONE, NOT_APPLIED, WriteApp, without_aws
from tests.aws.schedules.moto import Moto
from tests.aws.schedules.outputs import make_function
from tests.aws.schedules.values import FUNCTION, ROLE, names
from tests.kit.servers import Server

ALLOWED: Final = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
TRUST: Final = {"Version": "2012-10-17", "Statement": [ALLOWED]}

Follow: TypeAlias = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    """One for all tests: each has a group of its own."""
    with Moto() as started:
        yield started


@pytest.fixture
def theirs(moto: Moto) -> Any:
    """A client, to look and to change things by hand."""
    return moto.client("scheduler")


@pytest.fixture
def follow(
    moto: Moto,
    prefix: str,
    own_server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Follow:
    """Runs the command, with moto as AWS: its exit code, and the last line of its plan."""
    for name in set(os.environ) - set(without_aws()):
        monkeypatch.delenv(name)
    for name, value in {**moto.environment, "LOWKIQ_REDIS_URL": own_server.url}.items():
        monkeypatch.setenv(name, value)

    def run(app: str, *words: str, yes: bool = True) -> tuple[int, str]:
        target = [] if "--function" in words else ["--function", FUNCTION]
        usual = [*target, "--role", ROLE, "--prefix", prefix, "--yes" if yes else "--dry-run"]
        code = main(["stack", "schedules", app, *usual, *words])
        out, error = capfd.readouterr()
        (sums,) = [line for line in out.splitlines() if "as they should be" in line] or [error]
        return code, sums

    return run


def group_of(theirs: Any, group: str) -> dict[str, dict[str, Any]]:
    """All schedules there, by name."""
    listed = theirs.get_paginator("list_schedules").paginate(GroupName=group)
    found = [each["Name"] for page in listed for each in page["Schedules"]]
    return {name: theirs.get_schedule(GroupName=group, Name=name) for name in found}


def by_hand(schedule: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What somebody sends who changes a schedule in the console."""
    fields = ("Name", "GroupName", "ScheduleExpression", "Target", "FlexibleTimeWindow", "State", "Description")
    return {**{name: schedule[name] for name in fields if name in schedule}, **changes}


def test_schedules_are_created_kept_updated_and_deleted(
    follow: Follow, write_app: WriteApp, theirs: Any, prefix: str, group: str
) -> None:
    """Each plan says what it does, and a second run has nothing to do."""
    two, three = write_app({"Orders": 2, "Clicks": 1}), write_app({"Orders": 3, "Clicks": 1})
    created, kept = follow(two), follow(two)
    grown = follow(three)
    slower = follow(three, "--expression", "cron(0/5 * * * ? *)")
    expressions = {each["ScheduleExpression"] for each in group_of(theirs, group).values()}
    shrunk = follow(two)

    assert (DONE, "2 to create, 0 to update, 0 to delete, 0 as they should be.") == created
    assert (DONE, "Nothing to do: 2 schedules are as they should be.") == kept
    assert (DONE, "1 to create, 0 to update, 0 to delete, 2 as they should be.") == grown
    assert (DONE, "0 to create, 3 to update, 0 to delete, 0 as they should be.") == slower
    assert {"cron(0/5 * * * ? *)"} == expressions
    assert (DONE, "0 to create, 2 to update, 1 to delete, 0 as they should be.") == shrunk
    assert names(prefix, range(2)) == sorted(group_of(theirs, group))


def test_what_was_changed_by_hand_is_told_and_mended(
    follow: Follow, write_app: WriteApp, theirs: Any, prefix: str, group: str
) -> None:
    """Deleted, edited, switched off: all but the last, which is an operator's decision; others' schedules stay."""
    app = write_app({"Orders": 4})
    follow(app)
    first, second, third, fourth = [each for _, each in sorted(group_of(theirs, group).items())]
    theirs.delete_schedule(GroupName=group, Name=first["Name"])
    theirs.update_schedule(**by_hand(second, Target={**second["Target"], "Input": '{"shard": 9}'}))
    theirs.update_schedule(**by_hand(third, State="DISABLED"))
    theirs.create_schedule(**by_hand(fourth, Name="backup"))

    told, mended, again = follow(app, yes=False), follow(app), follow(app)

    assert (NOT_APPLIED, "1 to create, 1 to update, 0 to delete, 2 as they should be.") == told
    assert (DONE, told[1]) == mended
    assert (DONE, "Nothing to do: 4 schedules are as they should be.") == again
    now = group_of(theirs, group)
    assert ["backup", *names(prefix, range(4))] == sorted(now)
    assert [f'{{"shard": {index}}}' for index in range(4)] == [now[name]["Target"]["Input"] for name in sorted(now)[1:]]
    assert ["ENABLED", "ENABLED", "DISABLED", "ENABLED"] == [now[name]["State"] for name in sorted(now)[1:]]


def test_each_queue_has_its_own(follow: Follow, write_app: WriteApp, moto: Moto, prefix: str) -> None:
    """By the same command: they take the place of those of all queues, and send the queue with the shard."""
    app = write_app({"Orders": 2, "a queue": 1, "Reports": 3})
    moto.client("iam").create_role(RoleName=ROLE.rpartition("/")[2], AssumeRolePolicyDocument=json.dumps(TRUST))
    function = make_function(moto.client("lambda"), f"{prefix}-drain", "-Reports")
    follow(app)
    changed, again = (follow(app, "--each", "queue", "--function", function, "--retarget") for _ in range(2))

    now = group_of(moto.client("scheduler"), f"{prefix}-schedules")
    assert (DONE, "3 to create, 0 to update, 3 to delete, 0 as they should be.") == changed
    assert (DONE, "Nothing to do: 3 schedules are as they should be.") == again
    assert {
        f"{prefix}-shards.Orders-0": '{"queue": "Orders", "shard": 0}',
        f"{prefix}-shards.Orders-1": '{"queue": "Orders", "shard": 1}',
        f"{prefix}-shards.a-queue-162b39e2-0": '{"queue": "a queue", "shard": 0}',
    } == {name: each["Target"]["Input"] for name, each in now.items()}
