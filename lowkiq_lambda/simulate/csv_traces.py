"""Traces of CSV files: pushes one by one, or how many there were in each minute."""

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Final, TextIO

from lowkiq_lambda.simulate.trace import LONGEST, BadTrace

_SEPARATORS: Final = ",;\t"
_MINUTE: Final = 60.0
_MOST_PAYLOADS: Final = 1_000_000
_MOST_JOBS: Final = 1e9
_SECONDS_FROM: Final = 100_000_000
_DATE: Final = 8
"""Digits of a date without hyphens."""


class Rows:
    """The rows of an open file behind its headings, with the number of the line that was read last."""

    def __init__(self, file: TextIO) -> None:
        heading = next((line for line in file if line.strip()), None)
        if heading is None:
            raise BadTrace("the file is empty")
        self._separator = max(_SEPARATORS, key=heading.count)
        self.columns = [name.strip().strip('"').casefold() for name in heading.strip().split(self._separator)]
        self.has_rates = {"minute", "jobs"} <= {*self.columns}
        if not self.has_rates and not {"at", "id"} <= {*self.columns}:
            raise BadTrace(f"line 1: expected at,id or at,id,payloads or minute,jobs, not {heading.strip()[:80]!r}")
        self._reader = csv.reader(file, delimiter=self._separator, strict=True)

    @property
    def line(self) -> int:
        """The number of the line that was read last."""
        return self._reader.line_num + 1

    def __iter__(self) -> Iterator[list[str]]:
        columns = len(self.columns)
        try:
            for cells in self._reader:
                if not (cells and cells[0]) and not any(map(str.strip, cells)):
                    continue
                if len(cells) < columns or any(cells[columns:]):
                    raise BadTrace(f"line {self.line}: {len(cells)} columns, and the first line has {columns}")
                yield cells
        except csv.Error as error:
            raise BadTrace(f"line {self.line}: {error}") from error

    def number(self, text: str) -> float:
        """The number of a cell; a comma is a decimal one where commas separate nothing."""
        try:
            value = float(text.strip() if self._separator == "," else text.strip().replace(",", "."))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise BadTrace(f"line {self.line}: {text[:40]!r} is not a number")
        return value

    def moment(self, text: str) -> float:
        """A time of a cell: Unix seconds, or ISO 8601, in UTC where it names no zone."""
        # Most files have seconds. Digits alone may be a date, and infinity is refused below.
        try:
            seconds = math.nan if len(text) <= _DATE else float(text)
        except ValueError:
            seconds = math.nan
        if math.isfinite(seconds):
            return seconds
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            return self.number(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@contextmanager
def rows_of(path: str | PathLike[str]) -> Iterator[Rows]:
    """The open file. Raises BadTrace, which names the file."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            yield Rows(file)
    except UnicodeError as error:
        raise BadTrace(f"{path}: it is not UTF-8") from error
    except (BadTrace, OSError) as error:
        raise BadTrace(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from error


def pushes_of(rows: Rows) -> Iterator[tuple[float, str, int]]:
    """When, which id, how many payloads."""
    last = -math.inf
    at, id_ = map(rows.columns.index, ("at", "id"))
    payloads = rows.columns.index("payloads") if "payloads" in rows.columns else None
    for row in rows:
        time = rows.moment(row[at])
        if time < last:
            raise BadTrace(f"line {rows.line}: the time runs backwards, from {last:.3f} to {time:.3f}")
        last = time
        if not (name := row[id_].strip()):
            raise BadTrace(f"line {rows.line}: it has no id")
        yield time, name, 1 if payloads is None else _whole(rows, row[payloads], 1, _MOST_PAYLOADS)


def rates_of(rows: Rows) -> tuple[float, list[float]]:
    """The begin (Unix seconds), and jobs a second in each minute from there on; minutes without a row have none.

    A minute is its number, or a time in it.
    """
    rates: list[float] = []
    begin, last = 0, -1
    place, count = map(rows.columns.index, ("minute", "jobs"))
    for row in rows:
        minute = _minute(rows, row[place])
        begin = begin if rates else minute
        if rates and minute <= last:
            raise BadTrace(f"line {rows.line}: minute {minute} is not after minute {last}")
        if (minute - begin) * _MINUTE > LONGEST:
            raise BadTrace(f"line {rows.line}: it is more than {LONGEST / 86_400:.0f} days after the first")
        rates += [0.0] * (minute - begin - len(rates))
        jobs = rows.number(row[count])
        if not 0 <= jobs <= _MOST_JOBS:
            raise BadTrace(f"line {rows.line}: {jobs:g} jobs: give a number from 0 to {_MOST_JOBS:,.0f}")
        rates.append(jobs / _MINUTE)
        last = minute
    if not rates:
        raise BadTrace("there is no row in it")
    return begin * _MINUTE, rates


def _minute(rows: Rows, text: str) -> int:
    stripped = text.strip()
    # A number as large as that is Unix seconds.
    if stripped.isdecimal() and int(stripped) < _SECONDS_FROM:
        return int(stripped)
    return int(rows.moment(stripped) // _MINUTE)


def _whole(rows: Rows, text: str, least: int, most: int) -> int:
    value = rows.number(text)
    if not (value.is_integer() and least <= value <= most):
        raise BadTrace(f"line {rows.line}: {text[:40]!r} is not a whole number from {least} to {most:,}")
    return int(value)
