"""The demo itself: pushes a history while a daemon drains it, and compares the end with git."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import TypeAlias
from zlib import crc32

from rich.console import Console

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.errors import LowkiqError
from lowkiq_lambda.local.demo.faults import Faults
from lowkiq_lambda.local.demo.history import History
from lowkiq_lambda.local.demo.progress import Show, showing
from lowkiq_lambda.local.demo.replay import Replay
from lowkiq_lambda.local.demo.report import report_on
from lowkiq_lambda.local.demo.table import Table
from lowkiq_lambda.local.demo.worker import declare_worker
from lowkiq_lambda.worker import Worker

RunDaemon: TypeAlias = Callable[[Lowkiq], AbstractContextManager[object]]
"""Drains the app in threads of this process until its context ends."""

SUCCESS, FAILURE, INTERRUPTED = 0, 1, 130

PUSHED_AT_ONCE = 100
AHEAD = 500
"""How many changes may be pushed and not yet applied: a source that never stops, not one that is all there."""
LOOK_INTERVAL = 0.05
PATIENCE = 90.0
"""Seconds without a batch after which the demo gives up: longer than any lease that a killed run left."""


class DemoError(LowkiqError):
    """The demo cannot go on."""


def run_demo(
    app: Lowkiq, run_daemon: RunDaemon, history: History, folder: Path, console: Console, faults: Faults
) -> int:
    """Replay `history` through `app` into a table in `folder`; the exit code for the process.

    0 where the table ends as git says, 1 where it differs or the replay came to a standstill, 130 after Ctrl-C.
    """

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    with _only_demo_of(folder), closing(Table(folder / "demo.sqlite")) as table:
        table.load(history.base, history.base_seq)
        replay = Replay(table, faults)
        worker = declare_worker(app, replay, f"ApplyChanges-{crc32(bytes(folder.absolute())):08x}")
        for line in _introduction(history, folder / "demo.sqlite"):
            say(line)
        started_at = monotonic()
        try:
            with run_daemon(app), showing(console, len(history.changes)) as show:
                _push_all(replay, worker, history, show)
                _wait_until_empty(replay, app, show)
        except (KeyboardInterrupt, DemoError) as error:
            why = "Interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
            say(f"{why}: the state is incomplete, {table.applied:,} of {len(history.changes):,} changes applied.")
            return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILURE
        report = report_on(replay, history, monotonic() - started_at)
        for line in report.lines():
            say(line)
        return SUCCESS if report.is_good else FAILURE


def _introduction(history: History, table: Path) -> Iterator[str]:
    since = f", from the files of commit {history.base_seq:,} on" if history.base_seq else ""
    yield f"Replaying {len(history.changes):,} changes of {history.paths:,} files: {history.origin}{since}."
    yield f"Each file is an id, each change of it a payload, scored by its commit; the table is {table}."


def _push_all(replay: Replay, worker: type[Worker], history: History, show: Show) -> None:
    for start in range(0, len(history.changes), PUSHED_AT_ONCE):
        pushing = history.changes[start : start + PUSHED_AT_ONCE]
        worker.perform_async([replay.job(change) for change in pushing])
        room = start + len(pushing) - AHEAD
        _wait(replay, show, lambda room=room: replay.table.applied >= room)


def _wait_until_empty(replay: Replay, app: Lowkiq, show: Show) -> None:
    _wait(replay, show, lambda: is_empty(app))


def _wait(replay: Replay, show: Show, condition: Callable[[], bool]) -> None:
    batches, since = replay.counts.batches, monotonic()
    while not condition():
        replay.wait(LOOK_INTERVAL)
        show(replay)
        if replay.counts.batches > batches:
            batches, since = replay.counts.batches, monotonic()
        if monotonic() > since + PATIENCE:
            raise DemoError(f"Nothing has happened for {PATIENCE:.0f} seconds")


@contextmanager
def _only_demo_of(folder: Path) -> Iterator[None]:
    """Two demos in one folder would take each other's jobs and table."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DemoError(f"Another demo runs in {folder}: wait for it, or name another folder.") from error
        yield
