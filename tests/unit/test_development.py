"""What is for development is refused in a deployment, before anything of it starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from lowkiq_lambda import Config, ConfigError, Lowkiq
from lowkiq_lambda.aws.environment import find_redis
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.settings.development import refuse_in_deployment
from tests.kit.daemons import clean_environment

LAMBDA = ("AWS_LAMBDA_FUNCTION_NAME", "LAMBDA_TASK_ROOT")
CONTAINERS = ("KUBERNETES_SERVICE_HOST", "ECS_CONTAINER_METADATA_URI_V4")
SIGNS = [*((name, "x", name) for name in LAMBDA + CONTAINERS), ("LOWKIQ_ENV", "production", "LOWKIQ_ENV=production")]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, on a machine that is no deployment."""
    for name in ("LOWKIQ_ENV", *LAMBDA, *CONTAINERS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("variable", "value", "shown"), SIGNS)
def test_a_deployment_refuses_the_embedded_server(
    here: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, shown: str
) -> None:
    """Each sign of a deployment is named, with what to do, and no server is started."""
    monkeypatch.setenv(variable, value)
    app = Lowkiq(Config(redis_url="embedded:"))
    worker = app.worker(print)

    with pytest.raises(ConfigError) as refused:
        worker.push_many([{"id": 1}])

    said = f"redis_url='embedded:' is for development, and {shown} says that this is a deployment: name a server"
    assert str(refused.value).startswith(said)
    assert "redis_url" == refused.value.setting
    assert [] == list(here.iterdir())


@pytest.mark.parametrize("variable", CONTAINERS)
def test_a_container_may_be_for_development(variable: str) -> None:
    """CI and editors run in containers too: LOWKIQ_ENV=development says that one is no deployment."""
    refuse_in_deployment("This", {variable: "x", "LOWKIQ_ENV": "development"})

    with pytest.raises(ConfigError, match="or set LOWKIQ_ENV=development"):
        refuse_in_deployment("This", {variable: "x"})


@pytest.mark.parametrize("variable", LAMBDA)
def test_lambda_is_never_for_development(variable: str) -> None:
    """What Lambda sets counts whatever else is set."""
    with pytest.raises(ConfigError, match=f"and {variable} says that this is a deployment: name a server\\.$"):
        refuse_in_deployment("This", {variable: "x", "LOWKIQ_ENV": "development"})


def test_elsewhere_it_is_allowed() -> None:
    """Without a sign, or with an empty one, nothing is refused."""
    refuse_in_deployment("This", {"LOWKIQ_ENV": "", "AWS_LAMBDA_FUNCTION_NAME": "", "HOME": "/"})


def test_every_function_refuses_the_embedded_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all functions start with refuses it, also where the app itself names it."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "drain")

    with pytest.raises(ConfigError, match="AWS_LAMBDA_FUNCTION_NAME says that this is a deployment"):
        find_redis(Lowkiq(Config(redis_url="embedded:")), Settings())


def test_the_drain_function_is_not_even_imported_with_the_embedded_server(here: Path) -> None:
    """Lambda tells the sentence when it starts the environment, and nothing else is started."""
    (here / "jobs.py").write_text(
        "from lowkiq_lambda import Lowkiq\napp = Lowkiq()\n@app.worker\ndef greet(batch): pass\n"
    )
    settings = {
        "AWS_LAMBDA_FUNCTION_NAME": "drain",
        "LOWKIQ_APP": "jobs:app",
        "LOWKIQ_REDIS_URL": "embedded:",
    }
    done = subprocess.run(
        [sys.executable, "-c", "import lowkiq_lambda.aws.drain_function"],
        cwd=here,
        env=clean_environment() | settings,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == done.returncode
    assert "redis_url='embedded:' is for development, and AWS_LAMBDA_FUNCTION_NAME says" in done.stderr
    assert not (here / ".lowkiq").exists()


def test_without_a_server_a_push_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first error of a newcomer says what to set, for development and else."""
    for name in ("LOWKIQ_REDIS_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    worker = Lowkiq().worker(print)

    with pytest.raises(ConfigError) as raised:
        worker.push_many([{"id": 1}])

    assert (
        "No Redis is named. For development set LOWKIQ_REDIS_URL=embedded: (starts a real Valkey for this project); "
        "else set it to your server. A test takes the fixture lowkiq."
    ) == str(raised.value)
