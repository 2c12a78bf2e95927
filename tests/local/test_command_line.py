"""`python -m lowkiq_lambda.local`: what it refuses, and what it says."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from lowkiq_lambda.providers.embedded.folder import ServerFolder
from tests.kit.daemons import DaemonProcess, clean_environment
from tests.kit.servers import MakeServer, Server
from tests.kit.stage import Stage
from tests.kit.waiting import eventually

ANOTHER = pytest.mark.nightly("another of the list is part of each check")
APP = """
from lowkiq_lambda import Lowkiq, Worker
app = Lowkiq()
other = Lowkiq()
number = 3

@app.worker
class Greet(Worker):
    shards_count = 2
    def perform(self, batch):
        print(*(f"hello {name}" for name in batch), flush=True)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with some modules."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "jobs.py").write_text(APP)
    (tmp_path / "wrong.py").write_text("1 / 0")
    return tmp_path


def run(*arguments: str, cwd: Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command line, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "lowkiq_lambda.local", *arguments],
        cwd=cwd,
        env={**clean_environment(), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("shop.jobs:ap", "Module 'shop.jobs' has no 'ap'; it has shop.jobs:app, shop.jobs:other."),
        ("shop.jobs:other", "shop.jobs:other declares no worker: import the modules that declare them."),
    ],
)
def test_an_app_that_cannot_be_run_is_told_in_a_sentence(shop: Path, server_url: str, spec: str, sentence: str) -> None:
    """L-70: what is wrong with MODULE:APP stands on one line, with the exit code for misuse."""
    done = run(spec, "--log-level", "error", cwd=shop, environment={"LOWKIQ_REDIS_URL": server_url})

    assert f"error: {sentence}\n" == done.stderr
    assert 2 == done.returncode


def test_an_app_that_fails_to_import_shows_its_own_traceback(shop: Path) -> None:
    """An error in the user's module is shown with its place, and told in a sentence."""
    done = run("wrong:app", cwd=shop)

    assert f'{shop / "wrong.py"}", line 1' in done.stderr
    assert done.stderr.endswith("error: Importing 'wrong' failed: ZeroDivisionError: division by zero\n")
    assert 2 == done.returncode


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        (["--thread", "3"], {}, "--thread"),
        pytest.param(["--threads", "many"], {}, "--threads many is refused", marks=ANOTHER),
        (["--threads", "0", "shop.jobs:app"], {}, "--threads 0 is refused: give a whole number from 1 to 10000."),
        pytest.param(["--scheduler", "random"], {}, "random", marks=ANOTHER),
        (
            ["shop.jobs:app"],
            {"LOWKIQ_POLL_INTERVAL": "soon"},
            "LOWKIQ_POLL_INTERVAL='soon' is refused: expected a",
        ),
        pytest.param(["shop.jobs:app", "--processes", "0"], {}, "--processes", marks=ANOTHER),
        (["shop.jobs:app", "--max-memory", "500"], {}, "--max-memory needs --processes"),
        pytest.param(
            ["shop.jobs:app", "--redis-url", "localhost"],
            {},
            "redis_url='***' is refused: expected redis://host:port/0",
            marks=ANOTHER,
        ),
    ],
)
def test_ln14_what_cannot_work_is_refused(
    shop: Path, arguments: list[str], environment: dict[str, str], words: str
) -> None:
    """LN-14: unknown options and bad settings end with the exit code for misuse, and name what is wrong."""
    done = run(*arguments, cwd=shop, environment=environment)

    assert words in done.stderr + done.stdout
    assert 2 == done.returncode


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--redis-url", "redis://127.0.0.1:1/?pasword=s3cr3t"], "option 'pasword' is unknown"),
        (["--dashboard", "99999"], "--dashboard 99999 is refused: a port is a number from 1 to 65535."),
    ],
)
def test_nothing_is_told_of_a_start_that_is_refused(shop: Path, arguments: list[str], sentence: str) -> None:
    """The options are checked before the log tells of a daemon or a server; no password is printed."""
    done = run("shop.jobs:app", *arguments, cwd=shop, environment={"LOWKIQ_ENV": "development"})

    assert 2 == done.returncode
    assert done.stderr.startswith("error: ")
    assert sentence in done.stderr
    assert 1 == done.stderr.count("\n")
    assert "s3cr3t" not in done.stderr
    assert not (shop / ".lowkiq").exists()


def test_a_short_password_is_refused_before_anything_is_told(shop: Path) -> None:
    """The dashboard's settings are checked first, too."""
    done = run(
        "shop.jobs:app",
        "--dashboard",
        "0",
        cwd=shop,
        environment={"LOWKIQ_ENV": "development", "LOWKIQ_DASHBOARD_PASSWORD": "short"},
    )

    assert 2 == done.returncode
    assert done.stderr.startswith("error: LOWKIQ_DASHBOARD_PASSWORD")
    assert 1 == done.stderr.count("\n")


def test_a_variable_that_is_no_setting_is_told(shop: Path) -> None:
    """A misspelt setting would have no effect, and nobody would know why; those of the functions are known, too."""
    environment = {
        "LOWKIQ_LEASE_TLL": "4",
        "LOWKIQ_DASHBOARD_PASWORD": "s3cr3t",
        "LOWKIQ_IDLE": "end",
        "LOWKIQ_DASHBOARD_TOKENS": "",
        "LOWKIQ_ENV": "development",
    }

    done = run("shop.jobs:app", "--redis-url", "nowhere", cwd=shop, environment=environment)

    assert [
        "LOWKIQ_DASHBOARD_PASWORD is unknown and has no effect: did you mean LOWKIQ_DASHBOARD_PASSWORD?",
        "LOWKIQ_LEASE_TLL is unknown and has no effect: did you mean LOWKIQ_LEASE_TTL?",
    ] == [line.partition(" WARNING ")[2] for line in done.stderr.splitlines()[:-1]]
    assert "s3cr3t" not in done.stderr


def test_a_refused_password_ends_the_daemon_with_a_sentence(shop: Path, make_server: MakeServer) -> None:
    """E-46: what waiting does not heal is told at the start, and never with the password."""
    server = make_server()
    url = server.add_user("guest", "~*", "+@all", password="secret")  # noqa: S106 - a test's
    done = run("shop.jobs:app", "--redis-url", url.replace("secret", "s3cr3t"), cwd=shop)

    assert "error: Redis refused the user or password" in done.stderr
    assert "s3cr3t" not in done.stderr
    assert 2 == done.returncode


def test_the_help_teaches(shop: Path) -> None:
    """The help says what the daemon does, its settings, its signals, and gives examples."""
    done = run("--help", cwd=shop)

    assert 0 == done.returncode
    for words in (
        "MODULE:APP",
        "LOWKIQ_REDIS_URL",
        "LOWKIQ_THREADS_PER_NODE",
        "LOWKIQ_SCHEDULES",
        "--threads",
        "--log-format",
        "TSTP",
        "TTIN",
        "SETTINGS",
        "SIGNALS",
        "EXIT CODES",
        "EXAMPLES",
    ):
        assert words in done.stdout


def test_the_app_may_be_named_by_the_environment(shop: Path, server: Server) -> None:
    """LOWKIQ_APP serves where the command line names no app, and modules are found in the current folder."""
    environment = {"LOWKIQ_APP": "shop.jobs:app", "LOWKIQ_REDIS_URL": server.url}
    daemon = DaemonProcess(["--threads", "1"], environment, shop / "log", cwd=shop)
    try:
        eventually(lambda: "has more shards than there are threads" in daemon.log, timeout=30)
        daemon.send(signal.SIGTERM)

        assert 0 == daemon.exit_code()
    finally:
        daemon.close()


def test_without_a_url_the_daemon_has_a_server_of_its_own(shop: Path) -> None:
    """The embedded server's folder is named in the log, its password is not, and it is gone after a clean end."""
    folder = shop / "data"
    daemon = DaemonProcess(
        ["shop.jobs:app", "--threads", "1", "--data-dir", str(folder)],
        {"LOWKIQ_ENV": "development"},
        shop / "log",
        cwd=shop,
    )
    try:
        # It catches signals from then on.
        eventually(lambda: "has more shards than there are threads" in daemon.log, timeout=30)
        daemon.send(signal.SIGTERM)

        assert 0 == daemon.exit_code()
    finally:
        daemon.close()
    assert f"data in {folder}." in daemon.log
    assert f"export LOWKIQ_REDIS_URL=embedded:{folder}\n" in daemon.log
    assert not ServerFolder(folder).server_lives()
    assert "redis=redis://***@127.0.0.1:" in daemon.log


@pytest.mark.parametrize("program", [["lowkiq_lambda.local"], ["lowkiq_lambda", "run"]])
def test_ln14_without_an_app_nothing_is_run(tmp_path: Path, program: list[str], own_server: Server) -> None:
    """LN-14: a deployment that lost its app says how to name one, ends with 2, and leaves nothing in its Redis."""
    done = subprocess.run(
        [sys.executable, "-m", *program],
        cwd=tmp_path,
        env={
            **clean_environment(),
            "LOWKIQ_ENV": "production",
            "LOWKIQ_REDIS_URL": own_server.url,
            "LOWKIQ_APPP": "shop.jobs:app",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    warned, told = done.stderr.splitlines()
    assert (2, "") == (done.returncode, done.stdout)
    assert warned.endswith("LOWKIQ_APPP is unknown and has no effect: did you mean LOWKIQ_APP?")
    assert told.startswith("error: No app is named: give --app MODULE:APP")
    assert "or set LOWKIQ_APP" in told
    assert 0 == own_server.admin.dbsize()


def test_a_daemon_of_a_deployment_needs_a_url(shop: Path) -> None:
    """In a container nobody is given an empty server in place of the one whose URL got lost."""
    done = run("shop.jobs:app", cwd=shop, environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})

    assert 2 == done.returncode
    assert done.stderr.endswith(
        "error: No Redis is named, and KUBERNETES_SERVICE_HOST says that this is a deployment: name a server, or set "
        "LOWKIQ_ENV=development.\n"
    )
    assert not (shop / ".lowkiq").exists()


def test_logs_can_be_read_by_people_and_by_machines(stage: Stage) -> None:
    """The same facts come as `message key=value`, or as one JSON object on each line."""
    plain = stage.daemon()
    stage.await_told("on_heartbeat", pid=plain.pid)
    plain.send(signal.SIGTERM)
    plain.exit_code()
    machine = stage.daemon("--log-format", "json", "--log-level", "info")
    stage.await_told("on_heartbeat", pid=machine.pid)
    machine.send(signal.SIGTERM)
    machine.exit_code()

    assert "INFO    daemon app=tests.local.app:app queues=" in plain.log
    assert "\x1b" not in plain.log
    lines = [json.loads(line) for line in machine.log.splitlines()]
    assert {"timestamp", "level", "name", "thread", "message"} <= set.intersection(*(set(line) for line in lines))
    assert ["daemon"] == [line["message"] for line in lines if line.get("threads") == 5]
    broken = [line["exception"] for line in lines if "exception" in line]
    # A daemon sends a heartbeat at its start and when its state changes, so that hook may come again.
    assert 8 == sum("on_heartbeat is broken" not in text for text in broken) < len(broken)
