"""What a newcomer does first: they install the package, in a folder of their own, and run what the README shows."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kit.daemons import clean_environment
from tests.kit.embedded import end_server
from tests.kit.examples import mostly_nightly
from tests.kit.following import EXTRAS, FOLLOWED, Follower
from tests.kit.installed import install

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ("README.md", "docs/throughput.md")
"""Their first blocks are for newcomers: a class and a function."""
TOLD: Final = {
    "docs/fastapi.md": ["dashboard at /lowkiq for this machine alone, password "],
    "docs/tutorial.md": ["dashboard at http://127.0.0.1:"],
}
"""Parts of lines that the first terminal shows beside those that the page has of it."""

pytestmark = pytest.mark.xdist_group("first_hour")


class Newcomer:
    """An empty folder, and a Python that has the package and what it needs, and nothing else."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self._python = python

    def run(self, code: str) -> tuple[int, str, str]:
        """The code as a program: exit code, output, errors."""
        (self.folder / "first.py").write_text(code)
        environment = clean_environment()
        # With bytecode, as people have it.
        del environment["PYTHONDONTWRITEBYTECODE"]
        # The machine of the tests may be a container in a cluster.
        environment |= {"LOWKIQ_ENV": "development", "PYTHONPATH": ""}
        done = subprocess.run(
            [self._python, "first.py"], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the package alone."""
    return install(wheel, tmp_path_factory.mktemp("installed") / "environment", "local")


@pytest.fixture(scope="module")
def installed_for_pages(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with all that the pages to be followed have installed."""
    return install(wheel, tmp_path_factory.mktemp("pages") / "environment", EXTRAS, "pytest", lock="dev")


@pytest.fixture
def newcomer(installed: Path, tmp_path: Path) -> Iterator[Newcomer]:
    """Somebody with the package and the README."""
    yield Newcomer(tmp_path, installed)
    end_server(tmp_path / ".lowkiq")


def test_the_extra_of_aws_brings_what_the_functions_import(wheel: Path, tmp_path: Path) -> None:
    """Each function of the stack, the dashboard's too, is imported where nothing but that extra is installed."""
    python = install(wheel, tmp_path / "environment", "aws", lock="dev")
    functions = ("drain_function", "ingest_function", "dashboard_function")
    code = "; ".join(f"import lowkiq_lambda.aws.{each}" for each in functions)
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)


def first_block(page: str) -> str:
    """The first Python of a page."""
    found = re.search(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("page", PAGES)
def test_a_first_block_does_what_it_says(newcomer: Newcomer, page: str) -> None:
    """As it stands it prints what stands at its end, and warns of nothing."""
    block = first_block(page)
    promised = block.rstrip().rpartition("  # ")[2]

    code, output, errors = newcomer.run(block)

    assert (0, f"{promised}\n", "") == (code, output, errors)


def test_the_first_blocks_run_in_one_file_and_again(newcomer: Newcomer) -> None:
    """Whoever copies both, and runs them twice, gets both lines twice."""
    both = "".join(map(first_block, PAGES))

    for _ in range(2):
        code, output, errors = newcomer.run(both)

        assert (0, "17 ['new', 'paid']\n3\n") == (code, output), errors


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    """Whoever installs the package has `lowkiq`, and it teaches its commands."""
    done = subprocess.run(
        [installed.with_name("lowkiq"), "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "Usage: lowkiq COMMAND" in done.stdout


def test_the_first_block_asks_for_a_real_server_for_development() -> None:
    """Its line for the app is the one that all programs of a project can share."""
    assert 'app = Lowkiq(Config(redis_url="embedded:"))  # a real Valkey for development\n' in first_block("README.md")


def test_without_a_server_the_first_push_says_what_to_set(newcomer: Newcomer) -> None:
    """Who leaves the URL out reads at the end of the traceback what to do."""
    code, _, errors = newcomer.run(first_block("README.md").replace('Config(redis_url="embedded:")', ""))

    assert 1 == code
    assert errors.endswith(
        "ConfigError: No Redis is named. For development set LOWKIQ_REDIS_URL=embedded: (starts a real Valkey for this "
        "project); else set it to your server. A test takes the fixture lowkiq.\n"
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", mostly_nightly(sorted(FOLLOWED), "docs/tutorial.md"))
def test_a_page_works_to_the_letter(installed_for_pages: Path, tmp_path: Path, page: str) -> None:
    """From an empty folder: its files are written, its commands run in their order, and what it shows is what comes."""
    with Follower(tmp_path, installed_for_pages) as newcomer:
        newcomer.follow(ROOT / page)

        assert [] == [line for line in TOLD.get(page, ()) if line not in newcomer.terminal(0)]
