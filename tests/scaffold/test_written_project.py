"""A project as somebody has it: written by the wheel, in an empty folder, with nothing of a checkout."""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from lowkiq_lambda import Lowkiq
from tests.kit.daemons import clean_environment
from tests.kit.embedded import end_server
from tests.kit.installed import install
from tests.kit.servers.cloud import cloud_program
from tests.kit.templates import run as run_tool
from tests.kit.waiting import eventually

EXTRAS: Final = "aws,fastapi,local"
TOOLS: Final = ("mypy", "pip", "pytest", "ruff")
MACHINE: Final = "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"
HERE: Final = f"python3.{sys.version_info[1]}-{MACHINE}"

EMBEDDED: Final = {"LOWKIQ_ENV": "development", "LOWKIQ_REDIS_URL": "embedded:"}
ALARM: Final = "\nalarm        lowkiq-local-SilenceAlarm"
PUSH: Final = ("push", "SyncOrder", "17", '{"status": "paid"}')

pytestmark = [pytest.mark.xdist_group("first_hour"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shop(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, and its environment as `make` would have made it."""
    folder = tmp_path_factory.mktemp("empty")
    python = install(wheel, folder / "environment", EXTRAS, *TOOLS, lock="dev")
    run(folder, python.with_name("lowkiq"), "new", "shop", "--web", "fastapi")
    shop = folder / "shop"
    (shop / ".venv").symlink_to(folder / "environment")
    (shop / ".venv" / ".done").touch()
    return shop


def environment_with(settings: Mapping[str, str]) -> dict[str, str]:
    """That of somebody without a checkout; with bytecode, as people have it."""
    environment = {**clean_environment(), "PYTHONPATH": "", **settings}
    del environment["PYTHONDONTWRITEBYTECODE"]
    return environment


def run(folder: Path, *command: str | Path, code: int = 0, settings: Mapping[str, str] = MappingProxyType({})) -> str:
    """What a command says, which must end with that code."""
    done = subprocess.run(
        command, cwd=folder, env=environment_with(settings), capture_output=True, text=True, check=False
    )
    assert code == done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_its_tests_pass(shop: Path) -> None:
    """`make test` runs them on a server of their own."""
    assert "6 passed" in run(shop, "make", "test")


def test_its_schedules_are_in_step_with_its_shards(shop: Path) -> None:
    """A queue with more shards than samconfig.toml names schedules for fails the tests, whoever wrote which."""
    jobs, settings = shop / "app" / "jobs.py", shop / "samconfig.toml"
    code, given = jobs.read_text(), settings.read_text()
    pytest_ = (shop / ".venv/bin/python", "-m", "pytest", "-q", "tests/test_stack.py")
    try:
        jobs.write_text(code.replace("shards_count = 5", "shards_count = 8"))
        missing = run(shop, *pytest_, code=1)
        # As `sam deploy --guided` writes it.
        settings.write_text(given.replace("ShardIndexes=0,1,2,3,4", 'ShardIndexes=\\"0,1,2,3,4,5,6,7\\"'))
        mended = run(shop, *pytest_)
    finally:
        jobs.write_text(code)
        settings.write_text(given)

    assert "test_each_shard_has_a_schedule" in missing
    assert "1 passed" in mended


@pytest.mark.nightly("its tests pass in each check, and its files are written by templates that seldom change")
def test_it_is_in_good_form(shop: Path) -> None:
    """`make lint`: ruff and mypy in strict mode find nothing, and the stack is in step with the library."""
    assert "All files of the stack are those of lowkiq_lambda" in run(shop, "make", "lint")


def test_it_is_installed_from_the_wheel_that_wrote_it(shop: Path, wheel: Path) -> None:
    """An index need not know the package; and git does not learn of the path."""
    (shop / ".venv" / ".done").unlink()
    said = run(shop, "make", "-n", "test")
    (shop / ".venv" / ".done").touch()

    assert f'"lowkiq-lambda[{EXTRAS}] @ file://{wheel}" -e ".[dev]"' in said
    assert "local.mk" in (shop / ".gitignore").read_text().splitlines()


@pytest.mark.nightly("the template that it is a copy of is checked in each check")
def test_its_template_is_valid(shop: Path) -> None:
    """CloudFormation's linter finds nothing, also where the template lies in a folder of its own."""
    done = run_tool("cfn-lint", str(shop / "lowkiq" / "template.yaml"))

    assert (0, "") == (done.returncode, done.stdout)


@pytest.mark.nightly("tests/e2e has a stack that drains in each check")
def test_its_stack_works_on_this_machine(shop: Path) -> None:
    """`make cloud` deploys it from its own files: a tick drains a job that was pushed, and the dashboard answers."""
    lowkiq = shop / ".venv/bin/lowkiq"
    try:
        run(shop, lowkiq, *PUSH, settings=EMBEDDED)
        said = run(shop, "make", "cloud", "ARGS=--once", settings={"LOWKIQ_TEST_CLOUD": str(cloud_program())})
        found = run(shop, lowkiq, "show", "SyncOrder", "17", code=1, settings=EMBEDDED)
    finally:
        end_server(shop / ".lowkiq")

    assert "the stack works: a drain has ended, and the dashboard answers" in said.splitlines()
    assert found.startswith("The queue has no job of this id: it is done")


@contextmanager
def running_cloud(shop: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`lowkiq stack cloud`, until Ctrl-C; `log` has what it prints."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [shop / ".venv/bin/lowkiq", "stack", "cloud"],
            cwd=shop,
            env=environment_with({"LOWKIQ_TEST_CLOUD": str(cloud_program())}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait()
        end_server(shop / ".lowkiq")


@pytest.mark.nightly("its stack works on this machine in each check, by one tick")
@pytest.mark.skipif(sys.platform != "linux", reason="packages hold what runs on Lambda, which is Linux")
@pytest.mark.timeout(600)
def test_the_schedule_of_its_stack_drains_what_is_pushed(shop: Path, tmp_path: Path) -> None:
    """A job that is pushed while `lowkiq stack cloud` runs is done by the minute's schedule alone; Ctrl-C ends all.

    The same command from another terminal deploys into the cloud that runs.
    """
    log = tmp_path / "log"
    with running_cloud(shop, log) as process:
        eventually(lambda: process.poll() is not None or "\nCtrl-C ends it" in log.read_text(), 300, "the stack")
        (url,) = re.findall(r"^Valkey +(\S+)", log.read_text(), re.MULTILINE)
        app = Lowkiq()
        app.core.configure(redis_url=url)
        app.worker(queue_name="SyncOrder", shards_count=5, batch_size=100, merge="max")(print)
        before = app.operate.metrics()["SyncOrder"].payloads
        deploy = (shop / ".venv/bin/lowkiq", "stack", "cloud", "--parameter")
        again = run(shop, *deploy, "Inbox=fifo", "--parameter", "HistoryDays=7")
        refused = run(shop, *deploy, "Inbox=perhaps", code=1)
        run(shop, ".venv/bin/lowkiq", *PUSH, settings=EMBEDDED)

        eventually(lambda: app.operate.metrics()["SyncOrder"].payloads == before + 1, 200, "the schedule's drain")
        assert 0 == app.operate.metrics()["SyncOrder"].length
        eventually(lambda: ALARM in log.read_text(), 200, "the alarm that rings until the first housekeeping runs")
        process.send_signal(signal.SIGINT)
        code = process.wait(60)

    assert "built and deployed again" in again
    assert "Inbox" in refused.splitlines()[-1]
    assert (0, "the cloud is gone") == (code, log.read_text().splitlines()[-1])
    assert not (shop / ".lowkiq" / "cloud.json").exists()


@pytest.mark.nightly("test_package builds functions in each check")
def test_a_function_of_it_is_built_as_sam_does(shop: Path, tmp_path: Path) -> None:
    """By the Makefile beside the template, in a copy of app/: app.jobs:app is what the function imports, too."""
    scratch, package = tmp_path / "scratch", tmp_path / "package"
    shutil.copytree(shop / "app", scratch, ignore=shutil.ignore_patterns("__pycache__"))
    makefile = shop / "lowkiq" / "infra" / "package" / HERE / "Makefile"
    path = os.pathsep.join([str(shop / ".venv" / "bin"), os.environ["PATH"]])

    run(scratch, "make", "-f", makefile, "build-DrainFunction", f"ARTIFACTS_DIR={package}", settings={"PATH": path})

    code = "import sys; sys.path.insert(0, sys.argv[1]); from app import jobs; print(jobs.app)"
    assert "Lowkiq object" in run(tmp_path, sys._base_executable, "-I", "-S", "-c", code, package)  # type: ignore[attr-defined]  # of the interpreter, not of this environment
    library = {path.name for path in (package / "lowkiq_lambda").iterdir()}
    assert set() == library & {"cli", "local", "stack", "testing", "dashboard"}
