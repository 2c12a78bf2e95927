"""Shows how far a replay is: a bar on a terminal, a line each second elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lowkiq_lambda.local.demo.replay import Replay

Show: TypeAlias = Callable[[Replay], None]

LINE_INTERVAL = 1.0
"""Seconds between two lines."""


@contextmanager
def showing(console: Console, total: int) -> Iterator[Show]:
    """Gives what is to be called now and then with the replay that has `total` changes."""
    if console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task("applied", total=total, told="")
            yield lambda replay: bar.update(task, completed=replay.table.applied, told=_told(replay))
    else:
        yield _lines(console, total)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        console=console,
    )


def _lines(console: Console, total: int) -> Show:
    next_at = monotonic() + LINE_INTERVAL

    def show(replay: Replay) -> None:
        nonlocal next_at
        if monotonic() < next_at:
            return
        next_at = monotonic() + LINE_INTERVAL
        applied = f"applied {replay.table.applied:,} of {total:,} changes"
        console.print(f"{applied}, {_told(replay)}", markup=False, highlight=False, soft_wrap=True)

    return show


def _told(replay: Replay) -> str:
    counts = replay.counts
    return f"{counts.retries:,} retries, {counts.interruptions:,} interruptions"
