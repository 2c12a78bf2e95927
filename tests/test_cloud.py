"""The local cloud does what the tests that stand on it believe."""

import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from uuid import uuid4
from zipfile import ZipFile

import pytest

from lowkiq_lambda.stack.cloud.deployment import Deployment
from tests.kit.servers import LocalCloud
from tests.kit.servers.ports import HOST
from tests.kit.waiting import eventually

ROOT = Path(__file__).parents[1]
USER = """
from tests.kit.servers import LocalCloud

with LocalCloud() as cloud:
    print(cloud.pid, cloud.folder, sep="\\n", flush=True)
    input()
"""
LOCAL, STATE, INODE = 1, 3, 9
LISTENS = "0A"

FUNCTION = """
import os, sys

def handler(event, context):
    return {"event": event, "variables": sorted(os.environ), "packages": sorted(sys.modules)}
"""


def deploy(cloud: LocalCloud, name: str) -> None:
    """A function of a few lines."""
    packed = io.BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr("app.py", FUNCTION)
    cloud.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role="arn:aws:iam::000000000000:role/any",
        Handler="app.handler",
        Code={"ZipFile": packed.getvalue()},
    )


def test_a_function_runs_and_sees_nothing_of_the_tests(cloud: LocalCloud) -> None:
    """A function has the variables that it is given; none of ours, and none of our packages."""
    os.environ["LOWKIQ_TEST_LEAK"] = "1"
    name = f"function-{uuid4().hex}"
    deploy(cloud, name)
    try:
        answer = json.load(cloud.client("lambda").invoke(FunctionName=name, Payload=b'{"n": 1}')["Payload"])
    finally:
        del os.environ["LOWKIQ_TEST_LEAK"]
        cloud.client("lambda").delete_function(FunctionName=name)

    assert {"n": 1} == answer["event"]
    assert "LOWKIQ_TEST_LEAK" not in answer["variables"]
    assert not {"lowkiq_lambda", "redis", "msgspec"} & {*answer["packages"]}


def test_a_closed_cloud_leaves_nothing() -> None:
    """No process, no folder and no port stays, those of its functions included."""
    with LocalCloud() as cloud:
        deploy(cloud, "function")
        cloud.client("lambda").invoke(FunctionName="function", Payload=b"{}")
        session = cloud.pid

    with socket.socket() as probe:
        assert probe.connect_ex((HOST, cloud.port))
    assert not cloud.folder.exists()
    eventually(lambda: not living(session), what="the end of all its processes")


def test_nor_does_one_whose_program_was_killed() -> None:
    """SIGKILL of what started it ends it too, with its functions, and removes its folder."""
    user = subprocess.Popen(
        [sys.executable, "-c", USER], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=ROOT
    )
    with user:
        assert user.stdout is not None
        session, folder = int(user.stdout.readline()), Path(user.stdout.readline().strip())
        assert [] != living(session)
        assert folder.exists()

        user.kill()

    eventually(lambda: not (living(session) or folder.exists()), what="the end of all that it left")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the system's own table of sockets")
def test_it_listens_on_loopback_alone(cloud: LocalCloud) -> None:
    """No other machine can reach it: neither its port nor any other that it opens."""
    process = Path(f"/proc/{cloud.pid}")
    # The tables are the machine's; those of the process are told by the number in its open files.
    own = {str(link.readlink()).removeprefix("socket:[").rstrip("]") for link in process.glob("fd/*")}
    rows = [line.split() for name in ("tcp", "tcp6") for line in (process / "net" / name).read_text().splitlines()[1:]]
    listening = {row[LOCAL] for row in rows if row[STATE] == LISTENS and row[INODE] in own}

    assert {f"0100007F:{cloud.port:04X}"} == listening


def test_a_secret_that_is_there_keeps_its_text(cloud: LocalCloud) -> None:
    """Another deploy does not undo a rotation."""
    deployment, secrets = Deployment(cloud, f"stack-{uuid4().hex}"), cloud.client("secretsmanager")
    arn = deployment.keep_secret("redis://old", "redis")
    secrets.put_secret_value(SecretId=arn, SecretString="redis://rotated")

    assert arn == deployment.keep_secret("redis://old", "redis")
    assert "redis://rotated" == secrets.get_secret_value(SecretId=arn)["SecretString"]
    secrets.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


def living(session: int) -> list[str]:
    """The processes of a session, where the system tells; the killed may stay as zombies where nobody reaps them."""
    stats = [text.rpartition(")")[2].split() for text in map(stat_of, Path("/proc").glob("[0-9]*")) if text]
    return [state for state, _, _, its_session, *_ in stats if its_session == str(session) and state != "Z"]


def stat_of(process: Path) -> str:
    """What the system says of a process; nothing of one that is gone."""
    try:
        return (process / "stat").read_text()
    except OSError:
        return ""
