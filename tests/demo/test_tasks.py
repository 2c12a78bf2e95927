"""The three demos of tasks, in small: each ends by itself, and says what has come of it."""

import io
import os
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from rich.console import Console

from local.demo.tasks.__main__ import DEMOS
from local.demo.tasks.demo import FAILURE, INTERRUPTED, SUCCESS
from local.demo.tasks.export import Export
from lowkiq_lambda import Config, Lowkiq
from tests.kit.apps import closing_app

ROOT = Path(__file__).parents[2]
TOLD = {
    "enrol": (22, "3 failed, 19 done", "product 21: product 21 has no picture"),
    "import": (200, "200 done", "200 rows of 20 products; equal rows were joined into "),
    "export": (2_500, "3 done", "2,500 rows in "),
}


def run(name: str, url: str, folder: Path, stop: Event) -> tuple[int, str]:
    """One of the demos in this process: its exit code, and what it printed."""
    console = Console(file=io.StringIO(), width=200)
    with closing_app(Lowkiq(Config(redis_url=url))) as app:
        code = DEMOS[name](app, folder).run(TOLD[name][0], console, stop)
    assert isinstance(console.file, io.StringIO)
    return code, console.file.getvalue()


@pytest.mark.parametrize("name", DEMOS)
def test_a21_a_demo_ends_and_tells_what_has_come_of_it(name: str, server_url: str, tmp_path: Path) -> None:
    """A-21, A-37: enrolment with reasons, an import whose rows join, an export by many jobs whose parts are joined."""
    _, counts, line = TOLD[name]

    code, text = run(name, server_url, tmp_path, Event())

    assert (SUCCESS, True, True) == (code, counts in text, line in text), text


def test_a_demo_whose_outcome_is_wrong_says_so(
    server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts of an export are looked at again: a row that is missing ends the demo with 1."""
    monkeypatch.setattr("local.demo.tasks.export._row", lambda number: f"{max(number, 1)},nobody,0.00\n")
    code, text = run("export", server_url, tmp_path, Event())
    assert (FAILURE, True) == (code, "FAILED: the file does not have each row once, in order" in text)


def test_a_demo_that_is_stopped_cancels_its_task(server_url: str, tmp_path: Path) -> None:
    """As by Ctrl-C: the next one does not find its jobs."""
    stop = Event()
    stop.set()
    with closing_app(Lowkiq(Config(redis_url=server_url))) as app:
        before = {task.id for task in app.tasks.list(limit=1_000).tasks}

        code, text = run("enrol", server_url, tmp_path, stop)

        assert (INTERRUPTED, True) == (code, "Interrupted: the task is cancelled." in text)
        after = [task for task in app.tasks.list(limit=1_000).tasks if task.id not in before]
        assert "cancelled" in {task.state for task in after if task.name == "enrolment"}


def test_each_demo_is_one_command(server_url: str, tmp_path: Path) -> None:
    """A-21: `python -m local.demo.tasks NAME`, as the page says."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOWKIQ_")}
    done = subprocess.run(
        [sys.executable, "-m", "local.demo.tasks", "export", "--size", "1000", "--data-dir", str(tmp_path)],
        cwd=ROOT,
        env={**environment, "LOWKIQ_REDIS_URL": server_url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (SUCCESS, "") == (done.returncode, done.stderr)
    assert "1 done" in done.stdout
    assert (500_000, 500) == (Export.size, Export.size // 1_000)
