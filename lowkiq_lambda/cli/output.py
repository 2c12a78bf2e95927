"""Output of commands, and questions to their users: tables and lines for people, JSON for programs."""

import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final, Literal

import msgspec

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.contexts import CONTEXT
from lowkiq_lambda.operate.presentation.formatting import utc, visible

_COLOURS: Final = {"red": "31", "yellow": "33", "dim": "2"}
NOTHING: Final = "Nothing was changed."
"""The line that a command prints if the answer is not yes."""


def say(*lines: str) -> None:
    """Print lines, at once."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def remark(line: str) -> None:
    """A line beside the output: programs that read the output do not meet it."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def remark_skipped(skipped: Mapping[str, str]) -> None:
    """Remark on queues that were made with another declaration, and why they are left out."""
    for name, sentence in skipped.items():
        remark(visible(f"{name} is left out: {sentence}"))


def write_json(value: object) -> None:
    """Print the value as indented JSON."""
    say(msgspec.json.format(msgspec.json.encode(value)).decode())


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """Lines with a column for each heading: those of these numbers to the left, and the others to the right."""
    cells = [[*map(visible, row)] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def paint(line: str, colour: Literal["red", "yellow", "dim"]) -> str:
    """The line in this colour, where the output is a terminal; NO_COLOR (no-color.org) and TERM=dumb want none."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return line
    return f"\x1b[{_COLOURS[colour]}m{line}\x1b[0m"


def when(at: float) -> str:
    """Unix seconds as a moment in UTC, and in the zone of this machine if that is another."""
    try:
        local = datetime.fromtimestamp(at).astimezone()
    except (OverflowError, OSError, ValueError):
        return utc(at)
    return f"{utc(at)} ({local:%H:%M:%S %Z})" if local.utcoffset() else utc(at)


def agreed(question: str, *, aside: bool = False) -> bool:
    """Ask; whether the answer is the word yes. Raises ConfigError where nobody is there to be asked.

    `aside`: on the error output, as a program reads the output.
    """
    if context := os.environ.get(CONTEXT):
        question = f"In the context {context}: {question}"
    if not sys.stdin.isatty():
        raise ConfigError(f"{question} There is no terminal to ask at: give --yes.")
    return typed(f"{question} Only 'yes' will do: ", aside=aside) == "yes"


def typed(question: str, *, aside: bool) -> str:
    """What somebody types at the terminal; `aside` as in `agreed`."""
    stream = sys.stderr if aside else sys.stdout
    stream.write(question)
    stream.flush()
    return sys.stdin.readline().strip()


@contextmanager
def progress(act: str, total: int | None) -> Iterator[Callable[[int], object]]:
    """A bar on the error output if that is a terminal. The function takes how much of the total is through."""
    if not sys.stderr.isatty():
        yield lambda _through: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=sys.stderr), transient=True) as bars:
        bar = bars.add_task(act, total=total)
        yield lambda through: bars.update(bar, completed=through)


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A markdown table, its first column to the left."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def whole(value: float) -> str:
    """Without decimals, in groups of three digits."""
    return f"{value:,.0f}"
