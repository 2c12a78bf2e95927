"""The progress of a task in a terminal: a bar, or a line each second elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from lowkiq_lambda.tasks.views import Progress

LINE_INTERVAL = 1.0
"""Seconds between two lines."""


@contextmanager
def showing(console: Console) -> Iterator[Callable[[Progress], None]]:
    """Gives what is to be called with each progress."""
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    with Bar(*columns, console=console) as bar:
        shown = bar.add_task("items", total=None, told="")
        yield lambda progress: bar.update(
            shown, total=progress.total or None, completed=progress.ended, told=_told(progress)
        )


def _lines(console: Console) -> Callable[[Progress], None]:
    next_at = monotonic() + LINE_INTERVAL

    def show(progress: Progress) -> None:
        nonlocal next_at
        if monotonic() >= next_at:
            next_at = monotonic() + LINE_INTERVAL
            console.print(f"{progress.ended:,} of {progress.total:,} items, {_told(progress)}", highlight=False)

    return show


def _told(progress: Progress) -> str:
    return ", ".join(f"{status} {count:,}" for status, count in progress.counts.items() if count)
