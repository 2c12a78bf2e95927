"""The page about a template of one's own: what is on it is built by SAM from the wheel, deployed, and drains."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.stack.packaging.lean import leave_out_pages
from tests.aws.packages import HERE
from tests.kit.servers import LocalCloud, Server
from tests.kit.templates import ROOT, TOOLS
from tests.kit.waiting import eventually

PAGE: Final = (ROOT / "docs" / "own-template.md").read_text()
FILES: Final = re.compile(r"^`(?P<name>[\w./]+)`[^\n]*\n\n```\w+\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
MOST_BYTES: Final = 6_000_000
NAME: Final = "own-template"
BUCKET: Final = "packages-own-template"

pytestmark = [
    pytest.mark.xdist_group("packages"),
    pytest.mark.skipif(sys.platform != "linux", reason="a package holds what runs on Linux"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def project(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, for this machine's Python and processor, as SAM builds them."""
    folder = tmp_path_factory.mktemp("own")
    runtime, _, architecture = HERE.partition("-")
    for found in FILES.finditer(PAGE):
        path = folder / found["name"]
        path.parent.mkdir(exist_ok=True)
        path.write_text(found["text"].replace("python3.13", runtime).replace("[arm64]", f"[{architecture}]"))
    settings = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PIP_FIND_LINKS": str(wheel.parent),
        "SAM_CLI_TELEMETRY": "0",
    }
    done = subprocess.run(
        [TOOLS / "sam", "build"], cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def package(project: Path) -> Path:
    """The function's package, behind the second command of the page."""
    built = project / ".aws-sam" / "build" / "Drain"
    assert "lowkiq stack build DrainFunction python3.13-arm64 .aws-sam/build/Drain --finish\n" in PAGE
    assert 0 == main(["stack", "build", "DrainFunction", HERE, str(built), "--finish"])
    return built


@pytest.fixture(scope="module")
def zipped(package: Path) -> bytes:
    """As `sam deploy` uploads it."""
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(package))
    return packed.getvalue()


@pytest.fixture
def stack(project: Path, zipped: bytes, cloud: LocalCloud) -> Iterator[tuple[dict[str, str], Server]]:
    """The page's template, deployed, with its outputs; and its server."""
    api, s3 = cloud.client("cloudformation"), cloud.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="drain.zip", Body=zipped)
    template = (project / "template.yaml").read_text()
    with Server() as server:
        api.create_stack(
            StackName=NAME,
            TemplateBody=template.replace("CodeUri: src/", f"CodeUri: s3://{BUCKET}/drain.zip"),
            Parameters=[{"ParameterKey": "RedisUrl", "ParameterValue": server.url}],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        )

        def described() -> dict[str, Any]:
            found: dict[str, Any] = api.describe_stacks(StackName=NAME)["Stacks"][0]
            return found

        eventually(lambda: not described()["StackStatus"].endswith("_IN_PROGRESS"), 60, "the end of its making")
        assert "CREATE_COMPLETE" == described()["StackStatus"], api.describe_stack_events(StackName=NAME)
        yield {one["OutputKey"]: one["OutputValue"] for one in described()["Outputs"]}, server
        api.delete_stack(StackName=NAME)
        api.get_waiter("stack_delete_complete").wait(StackName=NAME, WaiterConfig={"Delay": 1})
    s3.delete_object(Bucket=BUCKET, Key="drain.zip")
    s3.delete_bucket(Bucket=BUCKET)


@pytest.mark.nightly("test_package looks at packages in each check")
def test_the_finished_zip_is_small_and_has_bytecode(zipped: bytes) -> None:
    """At most 6 MB, with bytecode of each module of ours, and none of what only pages need."""
    names = set(ZipFile(BytesIO(zipped)).namelist())
    ours = {name for name in names if name.startswith("lowkiq_lambda/") and name.endswith(".py")}
    version = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"
    without = {name for name in ours if re.sub(r"([^/]+)\.py$", rf"__pycache__/\1.{version}.pyc", name) not in names}

    assert len(zipped) <= MOST_BYTES
    assert "lowkiq_lambda/aws/drain_function.py" in ours
    assert set() == without
    assert set() == {name.partition("/")[0] for name in names} & {"boto3", "jinja2", "mangum", "starlette", "anyio"}


@pytest.mark.nightly("tests/e2e has a stack that drains in each check")
def test_the_event_of_its_schedule_drains_a_job(stack: tuple[dict[str, str], Server], cloud: LocalCloud) -> None:
    """What was pushed from outside is done when the function had the event that the schedule has for it."""
    outputs, server = stack
    app = Lowkiq()
    app.core.configure(redis_url=server.url)

    @app.worker(shards_count=5, batch_size=10)
    def sync_order(_: object) -> None:
        """Is performed by the function, and never here."""

    sync_order.push("17", {"status": "paid"})
    scheduler = cloud.client("scheduler")
    listed = scheduler.list_schedules(MaxResults=1_000_000)["Schedules"]
    (minute,) = [one for one in listed if one["Target"]["Arn"].endswith(outputs["DrainFunctionName"])]
    target = scheduler.get_schedule(Name=minute["Name"], GroupName=minute["GroupName"])["Target"]

    answer = cloud.client("lambda").invoke(FunctionName=target["Arn"], Payload=target["Input"].encode())

    told = json.load(answer["Payload"])
    assert "FunctionError" not in answer, told
    (found,) = app.operate.metrics().values()
    assert (1, 0, 0) == (found.payloads, found.length, found.in_flight), told


def test_its_template_is_as_short_as_it_says() -> None:
    """The template is about thirty lines, and requirements.txt names the library with its extra."""
    files = {found["name"]: found["text"] for found in FILES.finditer(PAGE)}

    assert {"template.yaml", "src/requirements.txt", "src/jobs.py"} == files.keys()
    assert 30 >= len(files["template.yaml"].splitlines()) - len(["Outputs:", "  DrainFunctionName: …"])
    assert "lowkiq-lambda[lambda]\n" == files["src/requirements.txt"]


def test_what_the_app_needs_of_it_stays(tmp_path: Path) -> None:
    """A package that its requirements name stays, with what that one requires; another of the pages' goes."""
    requires = {"jinja2": "MarkupSafe>=2", "markupsafe": "", "mangum": ""}
    for name, other in requires.items():
        (tmp_path / name).mkdir()
        told = tmp_path / f"{name}-1.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Name: {name}\nVersion: 1\n" + (f"Requires-Dist: {other}\n" if other else ""))
        (told / "RECORD").write_text(f"{name}/__init__.py,,\n{told.name}/METADATA,,\n")
    (tmp_path / "requirements.txt").write_text("lowkiq-lambda[lambda]\nJinja2>=3\n")

    leave_out_pages(tmp_path)

    assert {"jinja2", "markupsafe"} == {name for name in requires if (tmp_path / name).exists()}
    assert not (tmp_path / "mangum-1.dist-info").exists()


def test_a_folder_without_the_library_is_not_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence says which folder is meant."""
    assert 1 == main(["stack", "build", "DrainFunction", HERE, str(tmp_path), "--finish"])
    assert "name the folder that `sam build` made for the function" in capsys.readouterr().err
