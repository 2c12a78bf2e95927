"""The demo itself: pushes a history while a daemon drains it, and compares the end with git."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TypeAlias
from zlib import crc32

from rich.console import Console

from local.demo.faults import Faults, unlogged
from local.demo.history import History
from local.demo.progress import Show, showing
from local.demo.replay import Replay
from local.demo.report import report_on
from local.demo.table import Table
from local.demo.worker import declare_worker
from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import LowkiqError

RunDaemon: TypeAlias = Callable[[Lowkiq], AbstractContextManager[object]]
"""Drains the app in threads of this process until its context ends."""

SUCCESS, FAILURE, INTERRUPTED = 0, 1, 130

TABLE = "demo.sqlite"
PUSHED_AT_ONCE = 100
AHEAD = 500
"""How many changes may be pushed and not yet applied: the history comes as from a source that goes on."""
LOOK_INTERVAL = 0.05
PATIENCE = 90.0
"""Seconds without a batch after which the demo gives up: longer than any lease that a killed run left."""


class DemoError(LowkiqError):
    """The demo cannot go on."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that can be run once."""

    app: Lowkiq
    run_daemon: RunDaemon
    folder: Path
    """Where the table is made."""
    console: Console
    faults: Faults
    stop: Event = field(default_factory=Event)
    """Set from outside, it ends the demo as Ctrl-C does."""

    def run(self, history: History) -> int:
        """Replay a history through the app into the table; the exit code of the process.

        0 where the table ends as git says, 1 where it does not, 130 after Ctrl-C. Raises `DemoError` where
        another demo has the folder.
        """
        with unlogged(), _alone_in(self.folder), closing(Table(self.folder / TABLE)) as table:
            table.load(history.base, history.base_seq)
            replay = Replay(table, self.faults)
            for line in self._introduction(history):
                self._say(line)
            try:
                seconds = self._replay(replay, history)
            except KeyboardInterrupt:
                self._say(_incomplete("Interrupted", table, history), style="bold red")
                return INTERRUPTED
            except LowkiqError as error:
                self._say(_incomplete(str(error).rstrip("."), table, history), style="bold red")
                return FAILURE
            report = report_on(replay, history, seconds)
            self._say(report.summary, style="bold green" if report.is_good else "bold red")
            for line in report.explanation():
                self._say(line)
            return SUCCESS if report.is_good else FAILURE

    def _introduction(self, history: History) -> Iterator[str]:
        since = f", on top of commit {history.base_seq:,}" if history.base_seq else ""
        yield f"Replaying {len(history.changes):,} changes of {history.paths:,} files{since}"
        yield f"  from   {history.origin}"
        yield f"  into   {self.folder / TABLE}"
        yield "Each file is an id, each change of it a payload, scored by the number of its commit."

    def _replay(self, replay: Replay, history: History) -> float:
        """How many seconds it took until nothing was left to do."""
        worker = declare_worker(self.app, replay, f"ApplyChanges-{crc32(bytes(self.folder.absolute())):08x}")
        with self.run_daemon(self.app), showing(self.console, len(history.changes)) as show:
            started_at = monotonic()
            wait = partial(_wait, self.stop, replay, show)
            for start in range(0, len(history.changes), PUSHED_AT_ONCE):
                wait(partial(_has_room, replay, start))
                pushing = history.changes[start : start + PUSHED_AT_ONCE]
                worker.push_many([replay.job(change) for change in pushing])
            wait(partial(_is_empty, self.app))
            show(replay)
            return monotonic() - started_at

    def _say(self, line: str, style: str | None = None) -> None:
        self.console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def _incomplete(why: str, table: Table, history: History) -> str:
    applied = f"{table.applied:,} of {len(history.changes):,} changes applied"
    return f"{why}: the state is incomplete, {applied}."


def _has_room(replay: Replay, pushed: int) -> bool:
    return pushed - replay.table.applied < AHEAD


def _is_empty(app: Lowkiq) -> bool:
    """Whether no shard has a job that waits or is in flight."""
    return all(state.next_at is None for state in app.core.drains.drainer.probe(app.core.drains.drainer.shards()))


def _wait(stop: Event, replay: Replay, show: Show, condition: Callable[[], bool]) -> None:
    batches, since = replay.counts.batches, monotonic()
    while not condition():
        if stop.is_set():
            raise KeyboardInterrupt
        replay.wait(LOOK_INTERVAL)
        show(replay)
        if replay.counts.batches > batches:
            batches, since = replay.counts.batches, monotonic()
        if monotonic() > since + PATIENCE:
            raise DemoError(f"Nothing has happened for {PATIENCE:.0f} seconds")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two demos in one folder would take each other's jobs and table."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DemoError(f"Another demo runs in {folder}: wait for it, or name another folder.") from error
        yield
