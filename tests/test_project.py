"""What the project says about itself agrees: dependencies, locks, versions, reasons for exceptions."""

import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT_TEXT = (ROOT / "pyproject.toml").read_text()
PYPROJECT: dict[str, Any] = tomllib.loads(PYPROJECT_TEXT)
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[str]] = PYPROJECT["dependency-groups"]

RUN = PYPROJECT["project"]["dependencies"]
LOCAL = RUN + EXTRAS["local"] + GROUPS["build"]
# Each in an environment of its own.
TOOLS = {name: GROUPS[name] for name in ("checkov", "cloud", "dist", "docs", "infra", "moto", "sam")}
LOWEST = [*RUN, *chain.from_iterable(EXTRAS.values())]
DEV = [
    *RUN,
    *chain.from_iterable(EXTRAS.values()),
    *chain.from_iterable(group for name, group in GROUPS.items() if name not in TOOLS),
]
PEERS = {
    name: re.findall(r"^[a-z].*$", (ROOT / "bench" / "peers" / f"{name}.in").read_text(), re.MULTILINE)
    for name in ("peers", "peers-older")
}
EVERYTHING = [*DEV, *chain.from_iterable(TOOLS.values())]
FUNCTIONS = {name: RUN + GROUPS[name] for name in ("drain-function", "dashboard-function")}
SETS = {"run": RUN, "local": LOCAL, "dev": DEV, "lowest": LOWEST, **FUNCTIONS, **TOOLS, **PEERS}

LOCKED = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+).*\\\n(?:    --hash=sha256:[0-9a-f]{64}.*\n)+", re.MULTILINE
)
EXCEPTION = re.compile(r'^\s+"(?P<code>[A-Z]+[0-9]+)",(?P<reason>.*)$', re.MULTILINE)
SILENCER = re.compile(r"# (?:noqa|type: ignore|pragma: no cover)\b:?(?P<rest>.*)$")


def names(requirements: list[str]) -> set[str]:
    """Only the names of the packages, without extras, versions and markers."""
    return {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in requirements}


def lock(name: str) -> str:
    """The text of one lock file."""
    return (ROOT / "requirements" / f"{name}.txt").read_text()


def versions(name: str) -> dict[str, str]:
    """The packages that one lock file pins with at least one hash."""
    return {match["name"]: match["version"] for match in LOCKED.finditer(lock(name))}


def test_every_direct_dependency_has_its_reason_in_the_docs() -> None:
    """The page of dependencies names what is declared, all of it and nothing else, each with a reason."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9-]+)(?:\[.*\])?` \| (?:.{10,}) \| (?:.{10,}) \|$", page, re.MULTILINE)

    assert sorted(names(EVERYTHING)) == sorted(rows)


@pytest.mark.parametrize(("name", "requirements"), SETS.items(), ids=SETS)
def test_every_direct_dependency_is_locked_with_a_hash(name: str, requirements: list[str]) -> None:
    """Whatever is declared for a set stands in its lock file, at one version, with hashes."""
    assert set() == names(requirements) - versions(name).keys()


@pytest.mark.parametrize("name", SETS)
def test_every_line_of_a_lock_is_a_pinned_package_or_its_hash(name: str) -> None:
    """Nothing stands in a lock file that pip would install without comparing a hash."""
    pinned = re.findall(r"^[^\s#].*$", lock(name), re.MULTILINE)

    assert len(versions(name)) == len(pinned)


@pytest.mark.parametrize("name", SETS)
def test_a_lock_names_no_address_and_no_path(name: str) -> None:
    """A lock file is the same for everybody: it tells nothing of where its author's packages came from."""
    assert [] == re.findall(r".*(?:://|--(?:extra-)?index-url|--find-links|@ |(?<![\w.])/\w+).*", lock(name))


@pytest.mark.parametrize("name", ["run", "local", *FUNCTIONS])
def test_the_locks_agree(name: str) -> None:
    """What is tested is what runs: the smaller sets have the versions of the set that the tests use."""
    assert versions("dev") | versions(name) == versions("dev")


def test_the_lowest_versions_that_are_declared_are_those_that_are_tried() -> None:
    """Each floor of `pyproject.toml` stands in the lock that the checks install once: none is there by hope."""
    floors = dict(re.findall(r"^([a-z0-9-]+)(?:\[.*\])?>=([0-9.]+)", "\n".join(LOWEST), re.MULTILINE))
    tried = versions("lowest")

    assert {name: whole(floor) for name, floor in floors.items()} == {name: whole(tried[name]) for name in floors}


def test_the_package_asks_for_no_extras_of_others() -> None:
    """Beside `redis[hiredis]` pip tries ever older versions of kombu for `celery[redis]==5.5.3`, until one fails."""
    assert [] == [requirement for requirement in RUN if "[" in requirement]


def whole(version: str) -> str:
    """The version without the zeros at its end, which mean nothing."""
    return re.sub(r"(\.0)+$", "", version)


def test_every_ruff_exception_has_its_reason() -> None:
    """A rule that is off says beside itself why."""
    lint = PYPROJECT["tool"]["ruff"]["lint"]
    codes = [*lint["ignore"], *chain.from_iterable(lint["per-file-ignores"].values())]
    explained = [match["code"] for match in EXCEPTION.finditer(PYPROJECT_TEXT) if len(match["reason"]) > len("  # why")]

    assert sorted(codes) == sorted(explained)


def test_every_silencer_in_the_code_has_its_reason() -> None:
    """A check that is silenced for one line says there which and why: `# noqa: CODE - the reason`."""
    unexplained = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in ("lowkiq_lambda", "tests", "bench", "docs_build", "examples", "lint", "local", "app")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        for match in SILENCER.finditer(line)
        if path != Path(__file__) and not re.search(r"[-#(] ?\w+ \w+", match["rest"])
    ]

    assert [] == unexplained


def test_the_changelog_has_the_packages_version() -> None:
    """The newest version that the changelog describes is the one that is built."""
    headings = re.findall(r"^## \[(\d\S*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert PYPROJECT["project"]["version"] == headings[0]


def test_ci_runs_what_people_run() -> None:
    """The script for CI calls the test command and nothing else."""
    script = (ROOT / ".ci" / "run").read_text().splitlines()

    assert ["#!/usr/bin/env bash", "set -euo pipefail", 'cd "$(dirname "$0")/.."', "make test"] == script


@pytest.mark.nightly("each check looks into the wheel and installs it for the newcomer")
@pytest.mark.timeout(300)
def test_what_is_published_is_complete_and_can_be_installed() -> None:
    """`make dist` builds and checks both archives, and what it uploads works where nothing else is."""
    done = subprocess.run(
        [ROOT / "scripts" / "dist"],
        env={**os.environ, "VENV": str(Path(sys.executable).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)
    steps = "built built checked uploaded installed installed walked installed ran"
    assert steps.split() == [line.split(maxsplit=1)[0] for line in done.stdout.splitlines()]
