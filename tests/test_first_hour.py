"""What a newcomer does first: they install the package, in a folder of their own, and run what the README shows."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kit.daemons import clean_environment
from tests.kit.embedded import end_server

ROOT: Final = Path(__file__).parents[1]
README: Final = (ROOT / "README.md").read_text()

pytestmark = pytest.mark.xdist_group("first_hour")


class Newcomer:
    """An empty folder, and a Python that has the package and what it needs, and nothing else."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self._python = python

    def run(self, code: str) -> tuple[int, str, str]:
        """The code as a program: exit code, output, errors."""
        (self.folder / "first.py").write_text(code)
        # The machine of the tests may be a container in a cluster.
        environment = {**clean_environment(), "LOWKIQ_ENV": "development", "PYTHONPATH": ""}
        done = subprocess.run(
            [self._python, "first.py"], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that this checkout was installed into, with the versions that are locked."""
    folder = tmp_path_factory.mktemp("installed")
    python = folder / "environment" / "bin" / "python"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    wanted = f"lowkiq_lambda[local] @ {wheel.as_uri()}"
    uv = Path(sys.executable).with_name("uv")
    for arguments in (
        ["venv", "--python", sys.executable, str(folder / "environment")],
        ["pip", "install", "--python", str(python), "--constraint", str(ROOT / "requirements" / "local.txt"), wanted],
    ):
        done = subprocess.run([uv, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stderr
    return python


@pytest.fixture
def newcomer(installed: Path, tmp_path: Path) -> Iterator[Newcomer]:
    """Somebody with the package and the README."""
    yield Newcomer(tmp_path, installed)
    end_server(tmp_path / ".lowkiq")


def blocks() -> list[str]:
    """The Python in the README, in order."""
    return re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", [0, 1], ids=["first", "second"])
def test_a_block_of_the_readme_does_what_it_says(newcomer: Newcomer, number: int) -> None:
    """As it stands it prints what stands at its end, and no more than a line about the server."""
    block = blocks()[number]
    promised = block.rstrip().rpartition("  # ")[2]

    code, output, errors = newcomer.run(block)

    assert (0, f"{promised}\n") == (code, output), errors
    said = rf"Embedded server, for development: version \S+, data in {re.escape(str(newcomer.folder))}/\.lowkiq\.\n"
    assert re.fullmatch(said, errors)


def test_the_blocks_of_the_readme_run_in_one_file_and_again(newcomer: Newcomer) -> None:
    """Whoever copies both, and runs them twice, gets both lines twice."""
    both = "".join(blocks()[:2])

    for _ in range(2):
        code, output, errors = newcomer.run(both)

        assert (0, "1 [{'status': 'new'}, {'status': 'paid'}]\n3\n") == (code, output), errors


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    """Whoever installs the package has `lowkiq`, and it teaches its commands."""
    done = subprocess.run(
        [installed.with_name("lowkiq"), "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "Usage: lowkiq COMMAND" in done.stdout


def test_the_first_block_asks_for_a_real_server_for_development() -> None:
    """Its line for the app is the one that all programs of a project can share."""
    assert 'app = Lowkiq(Config(redis_url="embedded:"))  # a real Valkey for development\n' in blocks()[0]


def test_without_a_server_the_first_push_says_what_to_set(newcomer: Newcomer) -> None:
    """Who leaves the URL out reads at the end of the traceback what to do."""
    code, _, errors = newcomer.run(blocks()[0].replace('Config(redis_url="embedded:")', ""))

    assert 1 == code
    assert errors.endswith(
        "ConfigError: No Redis is named. For development set LOWKIQ_REDIS_URL=embedded: (starts a real Valkey for this "
        "project); else set it to your server.\n"
    )
