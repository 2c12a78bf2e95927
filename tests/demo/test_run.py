"""The demo, run in this process with a real daemon: it ends as git says, and says so where it does not."""

import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from local.demo import run
from local.demo.faults import Faults
from local.demo.history import History
from local.demo.repository import read_repository
from local.demo.run import FAILURE, SUCCESS, Demo
from local.demo.source import bundled_history
from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.local.daemon import Daemon
from tests.demo.repositories import Repository


@pytest.fixture
def demo(server_url: str, tmp_path: Path) -> Demo:
    """A demo whose handlers meet with many faults."""
    app = Lowkiq(Config(redis_url=server_url))
    console = Console(file=io.StringIO(), width=200)
    return Demo(app, Daemon, tmp_path / "table", console, Faults(failures=0.1, interruptions=0.05, seed=1))


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A repository in which files come, change and go."""
    made = Repository(tmp_path / "made")
    for number in range(20):
        made.write(b"odd \xff\n%41", f"{number}")
        made.commit({f"file {number % 5}": f"{number}", f"new {number}": "1"})
    made.commit({f"new {number}": None for number in range(10)})
    return read_repository(made.folder)


@contextmanager
def idle(_app: Lowkiq) -> Iterator[None]:
    """A daemon that drains nothing."""
    yield


def told(demo: Demo) -> str:
    """What the demo has printed."""
    assert isinstance(demo.console.file, io.StringIO)
    return demo.console.file.getvalue()


def test_a_replay_under_faults_ends_as_git_says(demo: Demo) -> None:
    """P1, P2, P3: with failing handlers and interrupted threads, every change is applied, in order."""
    history = bundled_history()
    assert demo.run(history) == SUCCESS
    assert "1,498 changes, 206 files, state equal, " in told(demo)
    with closing(sqlite3.connect(demo.folder / "demo.sqlite")) as table:
        files = dict(table.execute("SELECT path, blob FROM files WHERE blob IS NOT NULL"))
        assert table.execute("SELECT count(*) FROM applied").fetchone() == (1498,)
    assert files == history.final


def test_a_table_that_differs_from_git_is_a_failure(demo: Demo, history: History) -> None:
    """A handler that writes something else than it was given is found out, and the file is named."""

    def spoil(_worker: Worker, _batch: Batch, call_next: Callable[[], object]) -> object:
        done = call_next()
        with closing(sqlite3.connect(demo.folder / "demo.sqlite", timeout=30)) as table, table:
            table.execute("UPDATE files SET blob = 'spoiled' WHERE path = 'new 19'")
        return done

    demo.app.server_middlewares.append(spoil)
    assert demo.run(history) == FAILURE
    assert "state DIFFERS" in told(demo)
    assert f"  new 19: spoiled, in git {history.final['new 19']}" in told(demo)


def test_a_change_that_was_lost_is_a_failure_though_the_state_is_equal(demo: Demo, history: History) -> None:
    """What a later change covers up is still missed."""
    lost = next(change for change in history.changes if change.path == "file 0")

    def lose(_worker: Worker, jobs: list[dict[str, object]], call_next: Callable[[], object]) -> object:
        jobs[:] = [job for job in jobs if (job["id"], job["score"]) != (lost.path, lost.seq)]
        return call_next()

    demo.app.client_middlewares.append(lose)
    assert demo.run(history) == FAILURE
    assert "state equal" in told(demo)
    assert f"1 changes were never applied, the first of file 0 in commit {lost.seq}" in told(demo)


def test_a_standstill_is_a_failure(demo: Demo, history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing drains, the demo does not wait for ever."""
    monkeypatch.setattr(run, "PATIENCE", 0.2)
    assert replace(demo, run_daemon=idle).run(history) == FAILURE
    assert "Nothing has happened" in told(demo)
    assert "state is incomplete, 0 of" in told(demo)
