"""A list as a file: CSV or JSON of what its pages show, read page by page while it is sent.

A file ends at a bound and says from where the next one goes on: API Gateway takes no response above 6 MB, and waits for
none longer than half a minute.
"""

import csv
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from starlette.responses import Response, StreamingResponse

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.filters import ListQuery, list_query
from lowkiq_lambda.dashboard.pages.lists import MORGUE, WAITING, JobPage
from lowkiq_lambda.dashboard.pages.parts import PAGE, chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.rows import JobRow, rows_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.inspect.payload_query import without_values
from lowkiq_lambda.operate.presentation.formatting import iso, visible
from lowkiq_lambda.operate.queue_operations import QueueOperations

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_BYTES_OF_GATEWAY: Final = 2 * 1024 * 1024
"""Behind API Gateway, whose limit is 6 MB; each quotation mark counts twice there."""
SECONDS: Final = 20.0
"""After so long a file ends with the page that it has come to."""

Value: TypeAlias = str | int | float | None
Line: TypeAlias = Mapping[str, Value]
"""A job by the names of its columns."""

_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - spreadsheets take them, too
"""A spreadsheet takes a cell that begins so for a formula, and performs it."""
_BEHIND: Final = re.compile(r"""([;\t\r\n]["'\s]*)(?=[=+\-@＝＋－＠])""")  # noqa: RUF001 - as above
"""In many countries a spreadsheet separates cells by semicolons, and takes no comma and no quote for what it is."""

_CUT: Final = "cut: the list is too long to be read whole, so jobs are missing"


class Exported(msgspec.Struct, frozen=True):
    """A list that can be exported: its query, how a page of it is read, and the name of its column of times."""

    query: Callable[[Mapping[str, str]], ListQuery]
    read: Callable[[QueueOperations, ListQuery], JobPage]
    time: str

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        failures = [] if self.time == "dead_since" else ["failures"]
        return ["id", "shard", self.time, *failures, "error", "payloads", "payload"]


LISTS: Final[Mapping[str, Exported]] = {
    "waiting": Exported(WAITING.query, lambda queue, query: WAITING.read(queue, query, PAGE), "due_at"),
    "morgue": Exported(MORGUE.query, lambda queue, query: MORGUE.read(queue, query, PAGE), "dead_since"),
    "processing": Exported(
        lambda fields: list_query(fields, ["id"], "asc"),
        lambda queue, query: queue.in_flight.list(PAGE, after=query.after),
        "due_at",
    ),
}


def show(context: RequestContext) -> Response:
    """The file."""
    fields, worker = context.query, chosen_worker(context)
    listed, kind = LISTS.get(fields.get("list", "")), FILES.get(fields.get("format", ""))
    if worker is None:
        return no_queue(context)
    if listed is None or kind is None:
        return context.refuse(400, "An export is of waiting, morgue or processing, as csv or json.")
    file = kind()
    try:
        query = listed.query(fields)
        pages = _pages(context.app.operate(worker).glimpse(), listed, query)
        # A page of the dashboard tells of a bad value, or a Redis that is away: half of a file could not.
        first = next(pages)
    except ValueError as error:
        return context.refuse(400, str(error))
    logged = msgspec.structs.replace(query, payload=without_values(query.payload, context.mask))
    sought = ", ".join(f"{name} {value!r}" for name, value in logged.fields().items())
    activity.note_export(context, worker.queue_name, f"{fields['list']} as {file.name}{', ' * bool(sought)}{sought}")
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{worker.queue_name}-{fields['list']}")
    return StreamingResponse(
        _content(context, worker, listed, query, chain([first], pages), file),
        media_type=file.media_type,
        headers={"content-disposition": f'attachment; filename="{name}.{file.name}"'},
    )


def _pages(queue: QueueOperations, listed: Exported, query: ListQuery) -> Iterator[JobPage]:
    page = listed.read(queue, query)
    yield page
    while page.next is not None:
        page = listed.read(queue, msgspec.structs.replace(query, after=page.next))
        yield page


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


def _content(  # noqa: PLR0913, PLR0917 - a list, and a file of it
    context: RequestContext,
    worker: type[Worker[Any]],
    listed: Exported,
    query: ListQuery,
    pages: Iterator[JobPage],
    file: ExportFile,
) -> Iterator[str]:
    most = MOST_BYTES_OF_GATEWAY if "aws.event" in context.request.scope else MOST_BYTES
    ends_at, size, cut = time.monotonic() + SECONDS, 0, False
    name, of_list = worker.queue_name, context.query["list"]
    yield file.begin(name, of_list, listed.columns)
    for page in pages:
        text = "".join(file.line(_line(listed.time, row)) for row in rows_of(context, worker, page))
        cut |= page.cut
        size += len(text.encode(errors="replace"))
        if page.next is not None and (size >= most or time.monotonic() >= ends_at):
            rest = {"queue": name, "list": of_list, "format": file.name, **query.fields(), "after": page.next}
            yield text + file.end(context.link("export", **rest).removeprefix(context.root), cut=cut)
            return
        yield text
    yield file.end(None, cut=cut)


def _line(time_name: str, row: JobRow) -> Line:
    """A job as its row on a page shows it, with its whole id."""
    failures: Line = {} if time_name == "dead_since" else {"failures": int(row.retry_count) + 1}
    return {
        "id": row.id,
        "shard": row.shard,
        time_name: iso(row.at) or repr(row.at),
        **failures,
        "error": row.error,
        "payloads": row.payloads,
        "payload": row.preview,
    }


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
