"""Functions of the local cloud: environments beside each other, updates under way, refusals, timeouts, failures."""

import io
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import pytest

from tests.kit.servers import LocalCloud
from tests.kit.servers.cloud import ACCOUNT, REGION
from tests.kit.waiting import eventually

CODE = """
import json, os, subprocess, sys, time

RELEASE = {release}
GATE = {gate!r}

if GATE:
    open(f"{{GATE}}.{{os.getpid()}}", "w").close()
while GATE and not os.path.exists(GATE):
    time.sleep(0.005)

def handler(event, context):
    print(json.dumps({{"seen": event["file"]}}))
    open(event["file"] + ".began", "w").close()
    while "until" in event and not os.path.exists(event["until"]):
        time.sleep(0.005)
    if "child" in event:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(event["file"], "w") as told:
            told.write(str(child.pid))
        if event["child"] == "left":
            os._exit(3)
        child.wait()
    if "raise" in event:
        raise ValueError("not today")
    if "exit" in event:
        os._exit(3)
    with open(event["file"], "w") as done:
        done.write(f"{{RELEASE}} {{os.getpid()}}")
    return {{"release": RELEASE, "pid": os.getpid()}}
"""


def packed(release: int, gate: str = "") -> bytes:
    """The code of the function, with its number; a start waits for the file `gate`."""
    archive = io.BytesIO()
    with ZipFile(archive, "w") as opened:
        opened.writestr("app.py", CODE.format(release=release, gate=gate))
    return archive.getvalue()


class CloudFunction:
    """A function of the cloud, and a folder for what its invocations wait for and write."""

    def __init__(self, cloud: LocalCloud, folder: Path) -> None:
        self.name, self.folder, self.client = f"function-{uuid4().hex}", folder, cloud.client("lambda")
        self.client.create_function(
            FunctionName=self.name,
            Runtime="python3.11",
            Role=f"arn:aws:iam::{ACCOUNT}:role/any",
            Handler="app.handler",
            Timeout=20,
            Code={"ZipFile": packed(1)},
        )

    def event(self, name: str, **more: str) -> bytes:
        """An event whose invocation writes files of that name."""
        return json.dumps({"file": str(self.folder / name), **more}).encode()

    def invoke(self, event: bytes, qualifier: str = "$LATEST") -> Any:
        """The handler's answer; of an error the message."""
        return json.load(self.client.invoke(FunctionName=self.name, Qualifier=qualifier, Payload=event)["Payload"])

    def start(self, event: bytes) -> None:
        """Invoke it as nobody waits for it."""
        self.client.invoke(FunctionName=self.name, InvocationType="Event", Payload=event)

    def is_there(self, name: str) -> bool:
        """Whether an invocation has written that file."""
        return (self.folder / name).exists()

    def is_done(self, name: str) -> bool:
        """Whether the invocation with that file has ended its work."""
        return self.is_there(name) and bool((self.folder / name).read_text())

    def allow(self, name: str) -> str:
        """The path of a file that an invocation waits for; `open_gate` makes it."""
        return str(self.folder / name)

    def open_gate(self, name: str) -> None:
        """Let those go on that wait for the file."""
        (self.folder / name).touch()


@pytest.fixture
def function(cloud: LocalCloud, tmp_path: Path) -> Iterator[CloudFunction]:
    """One for each test."""
    made = CloudFunction(cloud, tmp_path)
    yield made
    made.client.delete_function(FunctionName=made.name)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads to wait in."""
    with ThreadPoolExecutor(8) as made:
        yield made


def test_an_update_ends_no_invocation(function: CloudFunction, pool: ThreadPoolExecutor) -> None:
    """The one under way goes on with the code that it has; the next one has the new code."""
    old = pool.submit(function.invoke, function.event("old", until=function.allow("gate")))
    eventually(lambda: function.is_there("old.began"), what="the first invocation")

    function.client.update_function_code(FunctionName=function.name, ZipFile=packed(2))
    new = function.invoke(function.event("new"))
    function.open_gate("gate")

    assert (1, 2) == (old.result()["release"], new["release"])
    assert 2 == function.invoke(function.event("again"))["release"]


def test_a_start_that_waited_has_the_newest_code(cloud: LocalCloud, function: CloudFunction) -> None:
    """More starts than run at once wait for each other; those that waited through an update take the new code."""
    starts = 4 * (os.cpu_count() or 1)
    function.client.update_function_code(FunctionName=function.name, ZipFile=packed(1, function.allow("gate")))
    names = [f"start-{number}" for number in range(starts)]
    for name in names:
        function.start(function.event(name))
    eventually(lambda: most_at_once(cloud, function.name) >= starts, what="all invocations at their start")
    # An environment that is made does not have its code yet.
    eventually(lambda: len([*function.folder.glob("gate.*")]) == starts // 2, what="half of them with the first code")

    function.client.update_function_code(FunctionName=function.name, ZipFile=packed(2))
    function.open_gate("gate")
    for name in names:
        eventually(partial(function.is_done, name), what=name)

    releases = sorted((function.folder / name).read_text().split()[0] for name in names)
    assert ["1"] * (starts // 2) + ["2"] * (starts // 2) == releases


def most_at_once(cloud: LocalCloud, name: str) -> float:
    """How many invocations of the function there were at once, those that wait for their start among them."""
    points = cloud.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="ConcurrentExecutions",
        Dimensions=[{"Name": "FunctionName", "Value": name}],
        StartTime=0,
        EndTime=4_000_000_000,
        Period=60,
        Statistics=["Maximum"],
    )["Datapoints"]
    return max((float(point["Maximum"]) for point in points), default=0.0)


def test_an_alias_runs_its_version(function: CloudFunction, pool: ThreadPoolExecutor) -> None:
    """Whatever code came since; back and forth, by its own settings, within the concurrency of the function."""
    first = function.client.publish_version(FunctionName=function.name)["Version"]
    function.client.create_alias(FunctionName=function.name, Name="live", FunctionVersion=first)
    function.client.update_function_code(FunctionName=function.name, ZipFile=packed(2))
    second = function.client.publish_version(FunctionName=function.name)["Version"]

    releases = []
    for version in (first, second, first):
        function.client.update_alias(FunctionName=function.name, Name="live", FunctionVersion=version)
        releases.append(function.invoke(function.event("live"), "live")["release"])
    function.client.put_function_concurrency(FunctionName=function.name, ReservedConcurrentExecutions=1)
    newest = pool.submit(function.invoke, function.event("newest", until=function.allow("gate")))
    eventually(lambda: function.is_there("newest.began"), what="the invocation of the newest code")
    with pytest.raises(function.client.exceptions.TooManyRequestsException):
        function.invoke(function.event("live"), "live")
    function.open_gate("gate")

    assert ([1, 2, 1], 2) == (releases, newest.result()["release"])


def test_invocations_have_environments_of_their_own(function: CloudFunction, pool: ThreadPoolExecutor) -> None:
    """So many at once, so many processes; later ones are warm."""
    gate = function.allow("gate")
    names = [f"at-once-{number}" for number in range(4)]
    running: list[Future[Any]] = [pool.submit(function.invoke, function.event(name, until=gate)) for name in names]
    eventually(lambda: all(function.is_there(f"{name}.began") for name in names), what="four invocations at once")
    function.open_gate("gate")

    pids = {each.result()["pid"] for each in running}

    assert 4 == len(pids)
    assert function.invoke(function.event("later"))["pid"] in pids


def test_a_start_that_finds_no_concurrency_waits(function: CloudFunction, pool: ThreadPoolExecutor) -> None:
    """An event that nobody waits for is tried again, and counts as no failure; a caller is refused at once."""
    function.client.put_function_event_invoke_config(FunctionName=function.name, MaximumRetryAttempts=0)
    function.client.put_function_concurrency(FunctionName=function.name, ReservedConcurrentExecutions=1)
    first = pool.submit(function.invoke, function.event("first", until=function.allow("gate")))
    eventually(lambda: function.is_there("first.began"), what="the first invocation")

    function.start(function.event("second"))
    with pytest.raises(function.client.exceptions.TooManyRequestsException):
        function.invoke(function.event("third"))
    assert not function.is_there("second.began")
    function.open_gate("gate")

    assert 1 == first.result()["release"]
    eventually(lambda: function.is_there("second"), what="the event that was refused")


@pytest.fixture
def failures(cloud: LocalCloud, function: CloudFunction) -> Iterator[Callable[[str], list[Any]]]:
    """Sets a queue for what fails under a qualifier of the function, and tells what came to it."""
    sqs = cloud.client("sqs")
    name = f"failed-{uuid4().hex}"
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]

    def failed(qualifier: str) -> list[Any]:
        function.client.put_function_event_invoke_config(
            FunctionName=function.name,
            Qualifier=qualifier,
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"}},
        )
        return [json.loads(each["Body"]) for each in sqs.receive_message(QueueUrl=queue).get("Messages", [])]

    yield failed
    sqs.delete_queue(QueueUrl=queue)


def test_an_event_that_fails_is_told_of(function: CloudFunction, failures: Callable[[str], list[Any]]) -> None:
    """It goes where the function's settings say, after its last try."""
    assert [] == failures("$LATEST")

    function.start(function.event("failed", **{"raise": "yes"}))

    (body,) = eventually(lambda: failures("$LATEST"), what="the failure")
    assert str(function.folder / "failed") == body["requestPayload"]["file"]
    assert "not today" == body["responsePayload"]["errorMessage"]


def test_an_event_of_a_rule_that_fails_is_told_of_by_its_alias(
    cloud: LocalCloud, function: CloudFunction, failures: Callable[[str], list[Any]]
) -> None:
    """The settings are those of the alias, which the rule names, and not of the version that runs."""
    version = function.client.publish_version(FunctionName=function.name)["Version"]
    function.client.create_alias(FunctionName=function.name, Name="live", FunctionVersion=version)
    assert [] == failures("live")
    rules, alias = cloud.client("events"), f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function.name}:live"
    rules.put_rule(Name=function.name, EventPattern=json.dumps({"source": [function.name]}))
    rules.put_targets(Rule=function.name, Targets=[{"Id": "alias", "Arn": alias, "InputPath": "$.detail"}])

    detail = function.event("failed", **{"raise": "yes"}).decode()
    rules.put_events(Entries=[{"Source": function.name, "DetailType": "any", "Detail": detail}])

    (body,) = eventually(lambda: failures("live"), what="the failure")
    assert str(function.folder / "failed") == body["requestPayload"]["file"]
    rules.remove_targets(Rule=function.name, Ids=["alias"])
    rules.delete_rule(Name=function.name)


def test_a_process_that_exits_fails_its_invocation_alone(function: CloudFunction) -> None:
    """As does one that takes too long, which is killed; the next invocation has another process."""
    function.client.update_function_configuration(FunctionName=function.name, Timeout=1)

    exited = function.invoke(function.event("exited", exit="yes"))
    late = function.invoke(function.event("late", until=function.allow("never")))

    assert "Runtime.ExitError" == exited["errorType"]
    assert ("Sandbox.Timedout", "Task timed out after 1.00 seconds") == (late["errorType"], late["errorMessage"])
    assert 1 == function.invoke(function.event("next"))["release"]


@pytest.mark.parametrize("child", ["waited for", "left"])
def test_what_a_function_started_ends_with_it(function: CloudFunction, child: str) -> None:
    """At its timeout, also where it has exited: a process that holds on to its pipes holds the invocation so long."""
    function.client.update_function_configuration(FunctionName=function.name, Timeout=1)

    late = function.invoke(function.event("parent", child=child))

    pid = int((function.folder / "parent").read_text())
    assert "Sandbox.Timedout" == late["errorType"]
    eventually(lambda: not is_running(pid), what="the end of the child")


def is_running(pid: int) -> bool:
    """Whether there is such a process; a killed one may stay as a zombie where nobody reaps it."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(told.strip()) and not told.startswith("Z")


def test_all_lines_of_an_invocation_are_in_its_log(cloud: LocalCloud, function: CloudFunction) -> None:
    """Also the last ones, when the answer is there."""
    function.invoke(function.event("logged"))

    events = cloud.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{function.name}")["events"]
    assert json.dumps({"seen": str(function.folder / "logged")}) in [event["message"] for event in events]
