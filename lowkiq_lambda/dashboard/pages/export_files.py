"""Files of jobs, written line by line: CSV for people with a spreadsheet, JSON for programs."""

import csv
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Final, Protocol, TypeAlias

import msgspec

from lowkiq_lambda.operate.presentation.formatting import visible

Value: TypeAlias = str | int | float | None
Line: TypeAlias = Mapping[str, Value]
"""A job by the names of its columns."""

_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - spreadsheets take them, too
"""A spreadsheet takes a cell that begins so for a formula, and performs it."""
_BEHIND: Final = re.compile(r"""([;\t\r\n]["'\s]*)(?=[=+\-@＝＋－＠])""")  # noqa: RUF001 - as above
"""In many countries a spreadsheet separates cells by semicolons, and takes no comma and no quote for what it is."""

_CUT: Final = "cut: the list is too long to be read whole, so jobs are missing"


class ExportFile(Protocol):
    """A file: its beginning, its lines, and its end with a link to the rest of the list, if there is one.

    `cut`: the list is so long that its order was made of a part of it, so jobs are missing.
    """

    name: str
    media_type: str

    def begin(self, queue: str, listed: str, columns: Sequence[str]) -> str:
        """The text in front of the lines."""

    def line(self, values: Line) -> str:
        """One job."""

    def end(self, rest: str | None, *, cut: bool) -> str:
        """The text behind the lines."""


class CsvFile:
    """RFC 4180. A last line that begins with “more:” leads to the rest, one with “cut:” says that jobs are missing."""

    name = "csv"
    media_type = "text/csv; charset=utf-8"

    def begin(self, queue: str, listed: str, columns: Sequence[str]) -> str:
        """The names of the columns."""
        del queue, listed
        return _row([*columns])

    def line(self, values: Line) -> str:
        """The values, none of which a spreadsheet takes for a formula."""
        return _row([unformulated(visible(value)) if isinstance(value, str) else value for value in values.values()])

    def end(self, rest: str | None, *, cut: bool) -> str:
        """Where the list goes on, and whether jobs are missing."""
        return ("" if rest is None else _row([f"more: {rest}"])) + (_row([_CUT]) if cut else "")


class JsonFile:
    """One object; `next` is the link to the rest of the list, or null; `cut`: jobs are missing."""

    name = "json"
    media_type = "application/json"

    def __init__(self) -> None:
        self._comma = ""

    def begin(self, queue: str, listed: str, columns: Sequence[str]) -> str:
        """The queue and the list."""
        del columns
        return f'{{"queue":{_json(queue)},"list":{_json(listed)},"jobs":['

    def line(self, values: Line) -> str:
        """An object."""
        text = f"{self._comma}\n{_json(values)}"
        self._comma = ","
        return text

    def end(self, rest: str | None, *, cut: bool) -> str:
        """The link."""
        return f'\n],"cut":{_json(cut)},"next":{_json(rest)}}}\n'


FILES: Final[Mapping[str, type[CsvFile] | type[JsonFile]]] = {"csv": CsvFile, "json": JsonFile}


def unformulated(text: str) -> str:
    """The text with an apostrophe in front of what a spreadsheet would take for a formula.

    >>> unformulated("=1+1"), unformulated("order-1"), unformulated(""), unformulated("a;=1+1;b")
    ("'=1+1", 'order-1', '', "a;'=1+1;b")
    """
    return _BEHIND.sub(r"\1'", f"'{text}" if text.startswith(_FORMULAS) else text)


def _row(values: list[Value]) -> str:
    line = StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(values)
    return line.getvalue()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
