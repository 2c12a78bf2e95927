"""The deployed stack with `Alias=live`: everything starts the alias, which the command moves back and a deploy on."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import BY_HAND, Stack

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.xdist_group("cloud"),
    pytest.mark.timeout(400),
    pytest.mark.nightly("the stack without options is deployed in each check"),
]


@pytest.fixture
def versions(stack: Stack) -> Iterator[Stack]:
    """The stack with two releases, of which the second runs."""
    for release in ("first", "second"):
        stack.deployment.update(Alias="live", Release=release)
    yield stack
    stack.deployment.update(Alias="", Release="")


def behind_the_alias(stack: Stack, function: str = "drain") -> dict[str, Any]:
    """The settings of what schedules start."""
    name = f"{stack.deployment.name}-{function}"
    found: dict[str, Any] = stack.cloud.client("lambda").get_function_configuration(FunctionName=name, Qualifier="live")
    return found


def rolled_back(stack: Stack, *words: str) -> str:
    """What the command prints that an operator runs."""
    command = ("-m", "lowkiq_lambda", "stack", "rollback", stack.deployment.name, *words)
    variables = {**os.environ, **stack.cloud.environment}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def test_a_rollback_takes_all_starts_to_the_version_before(versions: Stack) -> None:
    """The schedule starts the alias: the first release, which drains, and then that of the next deploy."""
    target = versions.schedule(f"shard-{BY_HAND}")["Target"]["Arn"]
    before = [behind_the_alias(versions, each) for each in ("drain", "dashboard")]
    printed = rolled_back(versions, "--yes")
    after = [behind_the_alias(versions, each) for each in ("drain", "dashboard")]
    path = versions.push(BY_HAND)
    with versions.due_now(BY_HAND):
        versions.wait_until_done(BY_HAND)
    versions.deployment.update(Release="third")
    third = behind_the_alias(versions)

    assert target.endswith(f":function:{versions.deployment.name}-drain:live")
    assert [["second"] * 2, ["first"] * 2, ["third"]] == [
        [one["Environment"]["Variables"]["LOWKIQ_RELEASE"] for one in each] for each in (before, after, [third])
    ]
    assert [int(one["Version"]) for one in before] == [int(one["Version"]) + 1 for one in after]
    assert "(second)" in printed
    assert "(first)" in printed
    assert 1 == versions.newest(path)


def test_lambda_keeps_what_fails_of_the_alias_as_well(versions: Stack) -> None:
    """No retries, and the failure queue: of the alias, which is what is invoked."""
    name = versions.deployment.outputs["DrainFunctionName"]
    settings = versions.cloud.client("lambda").get_function_event_invoke_config(FunctionName=name, Qualifier="live")

    assert 0 == settings["MaximumRetryAttempts"]
    assert versions.deployment.outputs["FailureQueueArn"] == settings["DestinationConfig"]["OnFailure"]["Destination"]
