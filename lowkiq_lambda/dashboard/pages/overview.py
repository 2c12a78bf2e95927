"""The overview: all queues and the servers."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.dashboard.charts import SPANS, Chart, chart, span_links, span_of, spark
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.parts import Columns, Sort, sort_of
from lowkiq_lambda.views.queues import Metrics, Overview, Quantiles, QueueOverview, Series

if TYPE_CHECKING:
    from lowkiq_lambda.operate.doctor.findings import Need

FEW: Final = 10
"""So many queues stand as they are declared; of more those in trouble come first."""
MOST_ROWS: Final = 60
"""Queues on one page."""
MOST_NEEDS: Final = 30
"""Lines on what needs somebody: more of them are not read."""


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of all queues, and their largest lag."""

    lag: float
    in_flight: int
    length: int
    fresh: int
    retries: int
    morgue_length: int
    ended_rate: float
    failed_rate: float
    chart: Chart


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A queue. `spark`: a path in the box of a chart; None without events. `query`: the queue's field in links.

    `failing`: whether more ids failed than were done. `mismatch`: why it has no numbers, or empty.
    `paused`: the text of the badge, or empty. `moves_to`, `twice`: as in `QueueOverview`.
    """

    id: str
    name: str
    query: str
    now: Metrics
    spark: str | None
    failing: bool
    took: Quantiles | None
    waited: Quantiles | None
    mismatch: str
    paused: str
    moves_to: int | None
    twice: int


def _slowest(times: Quantiles | None) -> float:
    return -1.0 if times is None else times.p95


_COLUMNS: Final[Columns[QueueRow]] = {
    "name": lambda row: row.name.casefold(),
    "done": lambda row: row.now.done,
    "failed": lambda row: row.now.failed,
    "lag": lambda row: row.now.lag,
    "in_flight": lambda row: row.now.in_flight,
    "length": lambda row: row.now.length,
    "fresh": lambda row: row.now.fresh,
    "retries": lambda row: row.now.retries,
    "morgue": lambda row: row.now.morgue_length,
    "waited": lambda row: _slowest(row.waited),
    "took": lambda row: _slowest(row.took),
}


class QueuesPart(msgspec.Struct, frozen=True, kw_only=True):
    """Which queues of a long table are on the page: `begin` of `matching`, those whose names contain `find`."""

    find: str = ""
    begin: int = 0
    matching: int = 0

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an address."""
        return {**({"find": self.find} if self.find else {}), **({"begin": str(self.begin)} if self.begin else {})}

    @property
    def end(self) -> int:
        """The number of the last queue on the page."""
        return min(self.matching, self.begin + MOST_ROWS)


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    span, sort = span_of(context), sort_of(context.query, _COLUMNS)
    looked = context.site.needs.latest(context.app.operate, is_refresh=context.is_partial)
    part = QueuesPart(find=context.query.get("find", "").strip(), begin=_begin(context.query.get("begin", "")))
    is_whole = not (sort.by or part.fields) and len(context.app.core.queues) <= FEW
    queues: list[QueueOverview] = []

    def rows(overview: Overview) -> Iterator[QueueRow]:
        for number, queue in enumerate(overview.queues):
            queues.append(queue)
            yield _row(number, queue)

    # Rows are rendered while further replies arrive, if all are on the page as they are; the totals above need all.
    with context.app.operate.overview(span) as overview:
        if is_whole:
            rendered = context.fragment("overview_rows.html", rows=rows(overview))
            part = QueuesPart(matching=len(queues))
        else:
            queues.extend(overview.queues)
            letters = part.find.casefold()
            matching = [(number, queue) for number, queue in enumerate(queues) if letters in queue.name.casefold()]
            part = msgspec.structs.replace(part, matching=len(matching))
            rendered = context.fragment("overview_rows.html", rows=_on_page(matching, sort, part, looked.needs))
    here = {"span": span, **sort.fields, **part.fields}
    return context.render(
        "overview_live.html" if context.is_partial else "overview.html",
        title=_title(context, queues),
        total=_total(overview.at, queues),
        rows=rendered if queues else "",
        servers=overview.servers,
        address=without_password(context.app.core.connections.url),
        span=span,
        spans=SPANS,
        span_links=span_links(context, "", **sort.fields, **part.fields),
        heads=sort.heads(context, "", _COLUMNS, span=span, **({"find": part.find} if part.find else {})),
        here=context.link("", **here),
        part=part,
        is_part=len(queues) > FEW or bool(part.find),
        count=len(queues),
        is_sorted=bool(sort.by),
        first=context.link("", **{**here, "begin": "0"}) if part.begin else None,
        next=context.link("", **{**here, "begin": str(part.end)}) if part.end < part.matching else None,
        unseen=_unseen(context),
        looked=looked,
        most=MOST_NEEDS,
    )


def _begin(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < len(str(2**31)) else 0


def _on_page(
    numbered: Sequence[tuple[int, QueueOverview]], sort: Sort, part: QueuesPart, needs: "Sequence[Need]"
) -> list[QueueRow]:
    """The rows of the page; without a column to sort by those in trouble come first, as the needs have them."""
    window = slice(part.begin, part.end)
    if sort.by:
        return sort.rows([_row(*each) for each in numbered], _COLUMNS)[window]
    places = dict(reversed([(need.about, place) for place, need in enumerate(needs)]))

    def trouble(each: tuple[int, QueueOverview]) -> tuple[object, ...]:
        number, queue = each
        if queue.mismatched:
            return (0, 0, number)
        now = queue.now
        return (1, places.get(queue.name, len(needs)), -now.lag, -now.in_flight, -now.length, number)

    return [_row(*each) for each in sorted(numbered, key=trouble)[window]]


def _title(context: RequestContext, queues: Sequence[QueueOverview]) -> str:
    """The title of the tab, which tells of trouble where the page is not in sight."""
    late = sum(queue.now.lag >= context.site.lag_limit for queue in queues if not queue.mismatched)
    return " · ".join([*([f"{late} late"] if late else []), "Overview", "lowkiq"])


def _unseen(context: RequestContext) -> float | None:
    """For how many seconds nobody has looked at the app's schedule entries, if it has any and that is too long."""
    if not (context.app.core.housekeeping.declares_schedules or context.app.core.housekeeping.fires_schedules):
        return None
    from lowkiq_lambda.dashboard.entries import unattended  # noqa: PLC0415 - imported lazily: cold start

    return unattended(context)


def _total(at: float, queues: Sequence[QueueOverview]) -> Total:
    # Mismatched queues have no metrics.
    nows, pasts = [queue.now for queue in queues if not queue.mismatched], [queue.history for queue in queues]
    return Total(
        lag=max((now.lag for now in nows), default=0.0),
        in_flight=sum(now.in_flight for now in nows),
        length=sum(now.length for now in nows),
        fresh=sum(now.fresh for now in nows),
        retries=sum(now.retries for now in nows),
        morgue_length=sum(now.morgue_length for now in nows),
        ended_rate=sum(past.ended_rate for past in pasts),
        failed_rate=sum(past.failed_rate for past in pasts),
        chart=chart(_together(at, [past.series for past in pasts])),
    )


def _together(at: float, each: Sequence[Series]) -> Series:
    if not each:
        return Series(began_at=at, step=1, ended=(), failed=())
    return Series(
        began_at=each[0].began_at,
        step=each[0].step,
        ended=tuple(map(sum, zip(*(series.ended for series in each), strict=True))),
        failed=tuple(map(sum, zip(*(series.failed for series in each), strict=True))),
    )


def _row(number: int, queue: QueueOverview) -> QueueRow:
    return QueueRow(
        id=f"queue-{number}",
        name=queue.name,
        query=f"queue={quote_plus(queue.name, errors='replace')}",
        now=queue.now,
        spark=spark(queue.history.series),
        failing=sum(queue.history.series.failed) > sum(queue.history.series.ended),
        took=queue.history.took,
        waited=queue.history.waited,
        mismatch=queue.mismatch,
        paused=_paused(queue.now.paused, queue.shards_count),
        moves_to=queue.moves_to,
        twice=queue.twice,
    )


def _paused(paused: int, shards_count: int) -> str:
    if not paused:
        return ""
    return "paused" if paused == shards_count else f"paused: {paused} of {shards_count} shards"
