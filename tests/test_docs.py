"""The examples in the README, the docs and the docstrings do what they show."""

import doctest
import importlib
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import SkipTest

import pytest
from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

import lowkiq_lambda
from docs_build.pages import pages
from lowkiq_lambda.providers.embedded import url
from lowkiq_lambda.providers.embedded.shared import leave
from tests.kit.daemons import PYTHONPATH
from tests.kit.following import FOLLOWED
from tests.kit.servers.server import Server

ROOT = Path(__file__).parents[1]
PAGES = sorted(str(file) for file, _ in pages(ROOT))
RUN = {"python", "console"}
SHOWN = {"text", "lua", "json", "toml", "mermaid", "hcl"}
UNRUN_AT_MOST = 5
ELSEWHERE = {*FOLLOWED, "infra/cdk.md"}
"""Pages whose examples other tests run: of the last one those of tests/infra, in the environment that has CDK."""
README_LINES = 120
OUTPUT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture
def redis_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server for one page, which `Lowkiq()` finds in the environment, and a folder for an embedded one."""
    monkeypatch.setenv("LOWKIQ_ENV", "development")
    monkeypatch.setattr(url, "project_root", lambda: tmp_path)
    with Server() as server:
        monkeypatch.setenv("LOWKIQ_REDIS_URL", server.url)
        yield server.url
    leave()
    # An app that a page imports keeps the server that it has found.
    for name in [name for name in sys.modules if name.partition(".")[0] == "app"]:
        del sys.modules[name]


def run(command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command line in the project's folder, with this interpreter's programs first on PATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment |= {
        "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]]),
        "PYTHONPATH": PYTHONPATH,
        "COLUMNS": "110",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def evaluate_console(example: Example) -> None:
    """Runs each `$ ` line; what is shown below it must be what it prints. `make` runs dry."""
    for block in re.split(r"^\$ ", str(example.parsed), flags=re.MULTILINE)[1:]:
        command, _, shown = block.partition("\n")
        done = run(re.sub(r"^make\b", "make --dry-run", command))

        assert 0 == done.returncode, f"$ {command}\n{done.stdout}{done.stderr}"
        if shown.strip():
            agrees = doctest.OutputChecker().check_output(shown, done.stdout, OUTPUT)
            assert agrees, f"$ {command}\nshown:\n{shown}\nprinted:\n{done.stdout}"


def parse(page: str, console: Callable[[Example], None] = evaluate_console) -> Document:
    """A page with what can be run in it."""
    document = Document.parse(
        str(ROOT / page), PythonCodeBlockParser(), CodeBlockParser("console", console), SkipParser()
    )
    document.namespace["__name__"] = "documentation"
    return document


def evaluate(document: Document) -> None:
    """Runs all of it that is not marked to be skipped."""
    for example in document:
        try:
            example.evaluate()
        except SkipTest:
            continue


@pytest.mark.parametrize("page", sorted({*PAGES} - ELSEWHERE))
@pytest.mark.usefixtures("redis_url")
def test_the_examples_of_a_page_run(page: str) -> None:
    """What a reader copies from a page works, from its first block to its last."""
    evaluate(parse(page))


@pytest.mark.usefixtures("redis_url")
def test_the_pages_get_along_on_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer tries one page after the other on the embedded server: no page is in the way of another."""
    monkeypatch.setenv("LOWKIQ_REDIS_URL", "embedded:")
    for page in sorted({*PAGES} - ELSEWHERE):
        evaluate(parse(page, console=lambda _example: None))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_known_kind(page: str) -> None:
    """No example escapes by the name of its language: it is run, or there is nothing to run in it."""
    fences = re.findall(r"^[ >]*```(.*)$", (ROOT / page).read_text(), re.MULTILINE)

    assert set() == set(fences[::2]) - RUN - SHOWN


def test_few_blocks_are_left_unrun() -> None:
    """A block that is not run is the exception, and says why."""
    unrun = [
        f"{page}: {reason}"
        for page in PAGES
        for reason in re.findall(r"<!-- skip: (.*?) -->", (ROOT / page).read_text())
    ]

    assert [] == [one for one in unrun if not re.search(r': next "\w+ .+"$', one)]
    assert len(unrun) <= UNRUN_AT_MOST, unrun


def test_the_readme_is_short() -> None:
    """It sells; what teaches and what is looked up has its pages."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


@pytest.mark.usefixtures("redis_url")
def test_the_examples_of_the_docstrings_run() -> None:
    """What a docstring shows at a prompt is what comes back."""
    package = Path(*lowkiq_lambda.__path__)
    # Beside each docstring doctest looks whether any file has changed, so that hundreds without a prompt take seconds.
    found = [path.relative_to(package.parent) for path in package.rglob("*.py") if ">>> " in path.read_text()]
    modules = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in found]

    assert len(modules) > 20
    failures = {name: doctest.testmod(importlib.import_module(name), optionflags=OUTPUT).failed for name in modules}

    assert dict.fromkeys(modules, 0) == failures
