"""The local cloud with groups of the test's own, and the command as a user runs it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lowkiq_lambda.cli import main
from tests.aws.schedules.command import CommandOutput, Run, WriteApp, without_aws, write_module
from tests.aws.schedules.front import Front
from tests.aws.schedules.outputs import StackSchedules
from tests.aws.schedules.values import FUNCTION, ROLE
from tests.kit.servers import Server
from tests.kit.servers.cloud import LocalCloud


@pytest.fixture
def front(cloud: LocalCloud) -> Iterator[Front]:
    """A front of the cloud for this test."""
    with Front(cloud) as started:
        yield started


@pytest.fixture
def prefix() -> str:
    """What the test's schedules are called by."""
    return f"test-{uuid4().hex[:12]}"


@pytest.fixture
def group(prefix: str) -> str:
    """The group of the test's schedules, which is not made yet."""
    return f"{prefix}-schedules"


@pytest.fixture
def scheduler(cloud: LocalCloud) -> Any:
    """A client of the cloud itself, to look at what came of it."""
    return cloud.client("scheduler")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, front: Front) -> Front:
    """This process takes the front for AWS."""
    for name in set(os.environ) - set(without_aws()):
        monkeypatch.delenv(name)
    for name, value in front.environment.items():
        monkeypatch.setenv(name, value)
    return front


@pytest.fixture
def schedules(aws: Front, prefix: str, scheduler: Any) -> StackSchedules:
    """Those of a stack that is called by the prefix."""
    return StackSchedules(aws, prefix, scheduler)


@pytest.fixture
def write_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteApp:
    """Writes an app with these queue names and counts of shards; returns its MODULE:APP."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(shards: Mapping[str, int]) -> str:
        return write_module(tmp_path, f"jobs_{uuid4().hex}", shards)

    return write


@pytest.fixture
def run(
    aws: Front,
    prefix: str,
    own_server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Runs the command in this process: its words, behind those that name function, role and prefix if it does not."""
    assert aws.writes == []
    monkeypatch.setenv("LOWKIQ_REDIS_URL", own_server.url)

    def run(*words: str, indexes: bool = False) -> CommandOutput:
        usual = {"--function": FUNCTION, "--role": ROLE, "--prefix": prefix}
        plan = [word for option in usual.items() if option[0] not in words for word in option]
        code = main(["stack", "schedules", *(["indexes"] if indexes else plan), *words])
        out, error = capfd.readouterr()
        return CommandOutput(code, out, error)

    return run
