"""What commands print: tables and lines for people, JSON for programs."""

import sys
from collections.abc import Iterable, Sequence

import msgspec

from lowkiq_lambda.operate.presentation.formatting import visible


def say(*lines: str) -> None:
    """Print lines, at once."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def remark(line: str) -> None:
    """A line beside the output: programs that read the output do not meet it."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def write_json(value: object) -> None:
    """Print the value as indented JSON."""
    say(msgspec.json.format(msgspec.json.encode(value)).decode())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with a column for each heading, the first to the left and the others to the right."""
    cells = [[*map(visible, row)] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
