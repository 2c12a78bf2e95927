"""The demo as a program: what a person sees who starts it, stops it, kills it, or tampers with its work."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from local.demo.run import FAILURE, INTERRUPTED, SUCCESS
from lowkiq_lambda.providers.embedded.folder import ServerFolder
from tests.demo.repositories import Repository
from tests.kit.examples import mostly_nightly
from tests.kit.waiting import eventually

ROOT = Path(__file__).parents[2]
REFUSED = ["--failures 1", "--interruptions -1", "--limit some", "--many"]
SLOW = ("--interruptions", "0.4")
"""A demo that has not ended by the time that something is done to it: its threads die all the time."""
PATIENT = "60"
"""Seconds of a lease with which a machine that stands still for a moment gives nobody a reason to warn."""


class Program:
    """Starts demos that share a data folder."""

    def __init__(self, folder: Path, server_url: str, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LOWKIQ_")},
            "LOWKIQ_REDIS_URL": server_url,
            "LOWKIQ_LEASE_TTL": "1",
            "PYTHONPATH": str(ROOT),
        }

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """A running demo, outside of any checkout."""
        self.folder.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "local.demo", "--data-dir", str(self.folder), *arguments],
            cwd=self.folder,
            env={**self.environment, "GIT_CEILING_DIRECTORIES": str(self.folder.parent)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.enter_context(process)
        self._stack.callback(process.kill)
        return process

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """A demo that ended: exit code, output, errors."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def has_applied(self, least: int) -> bool:
        """Whether the demo has come so far."""
        with closing(sqlite3.connect(f"file:{self.folder}/demo.sqlite?mode=ro", uri=True)) as table:
            count: int = table.execute("SELECT count(*) FROM applied").fetchone()[0]
        return count >= least


@pytest.fixture
def program(tmp_path: Path, server_url: str) -> Iterator[Program]:
    """Demos on the shared server, in a folder of their own."""
    with ExitStack() as stack:
        yield Program(tmp_path / "data", server_url, stack)


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    """A repository of some commits."""
    made = Repository(tmp_path / "made")
    for number in range(30):
        made.commit({f"file {number % 4}": f"{number}", f"new {number}": "1"})
    made.commit({f"new {number}": None for number in range(15)})
    return made


def comes_to(program: Program, least: int) -> bool:
    """Whether so many changes are applied; False, too, as long as there is no table."""
    try:
        return program.has_applied(least)
    except sqlite3.OperationalError:
        return False


def test_a_repository_is_replayed_and_found_equal(program: Program, made: Repository) -> None:
    """The figures are told in one line, and nothing goes to the errors, whatever failed on purpose."""
    program.environment["LOWKIQ_LEASE_TTL"] = PATIENT
    code, output, errors = program.run("--repository", str(made.folder), "--failures", "0.3", "--limit", "20")
    assert (SUCCESS, "") == (code, errors)
    assert "Replaying 19 changes of 19 files, on top of commit 28" in output
    assert "state equal, retries " in output
    assert f"the 19 files that git ls-tree lists for commit {made.git('rev-parse', 'HEAD')[:12]}." in output


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_stopped_says_that_its_state_is_incomplete(program: Program, stop: signal.Signals) -> None:
    """Ctrl-C and TERM end it in good order, and nothing goes to the errors."""
    program.environment["LOWKIQ_LEASE_TTL"] = PATIENT
    process = program.start(*SLOW)
    eventually(lambda: comes_to(program, 1))
    process.send_signal(stop)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (INTERRUPTED, "")
    assert "Interrupted: the state is incomplete, " in output
    assert "state equal" not in output


def test_a_demo_after_one_that_was_killed_ends_as_git_says(program: Program) -> None:
    """P2: what the killed one left, jobs in flight and leases, does not stand in the way."""
    process = program.start(*SLOW)
    eventually(lambda: comes_to(program, 100))
    process.kill()
    process.wait()
    code, output, _ = program.run()
    assert code == SUCCESS
    assert "1,498 changes, 206 files, state equal" in output


def test_a_second_demo_in_the_same_folder_is_told_to_wait(program: Program) -> None:
    """The two would share one table."""
    first = program.start(*SLOW)
    eventually(lambda: comes_to(program, 1))
    # However long the second takes to start, the first has not ended by then.
    first.send_signal(signal.SIGSTOP)
    code, _, errors = program.run()
    assert code == FAILURE
    assert "error: Another demo runs in " in errors


def test_the_demo_has_a_server_of_its_own_wherever_it_runs(program: Program) -> None:
    """It keeps nothing that a deployment would miss: it needs no URL in a container either."""
    del program.environment["LOWKIQ_REDIS_URL"]
    program.environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    code, output, errors = program.run("--limit", "20")

    assert SUCCESS == code, errors
    assert "state equal" in output
    assert ServerFolder(program.folder).read_access() is not None
    assert not ServerFolder(program.folder).server_lives()


def test_a_repository_that_cannot_be_replayed_is_told_in_a_sentence(program: Program) -> None:
    """The option names a checkout; where there is none, one line says so."""
    code, _, errors = program.run("--repository", str(program.folder))

    assert FAILURE == code
    assert errors.startswith("error: ")
    assert 1 == errors.count("\n")


@pytest.mark.parametrize("words", mostly_nightly(REFUSED, REFUSED[0]))
def test_what_the_demo_cannot_do_is_refused(program: Program, words: str) -> None:
    """The exit code is that of misuse, and the last line names the word."""
    code, _, errors = program.run(*words.split())

    assert 2 == code
    assert words.rsplit(maxsplit=1)[-1] in errors.splitlines()[-1]
