"""Shows how far a replay is: a bar on a terminal, a line each second elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from local.demo.replay import Replay

Show: TypeAlias = Callable[[Replay], None]

LINE_INTERVAL = 1.0
"""Seconds between two lines."""
LATE = 3.0
"""Seconds without a batch after which a reason is named."""


@contextmanager
def showing(console: Console, total: int) -> Iterator[Show]:
    """Gives what is to be called now and then with the replay that has `total` changes."""
    began_at = monotonic()
    if console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task("applied", total=total, told="")
            yield lambda replay: bar.update(task, completed=replay.table.applied, told=_told(replay, began_at))
    else:
        yield _lines(console, total, began_at)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        console=console,
    )


def _lines(console: Console, total: int, began_at: float) -> Show:
    next_at = began_at + LINE_INTERVAL

    def show(replay: Replay) -> None:
        nonlocal next_at
        if monotonic() < next_at:
            return
        next_at = monotonic() + LINE_INTERVAL
        applied = f"applied {replay.table.applied:,} of {total:,} changes"
        console.print(f"{applied}, {_told(replay, began_at)}", markup=False, highlight=False, soft_wrap=True)

    return show


def _told(replay: Replay, began_at: float) -> str:
    counts = replay.counts
    if counts.batches == 0 and monotonic() - began_at >= LATE:
        return "waiting for the leases of a run that was killed"
    return f"retries {counts.retries:,}, interruptions {counts.interruptions:,}"
