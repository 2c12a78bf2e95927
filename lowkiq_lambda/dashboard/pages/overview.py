"""The overview: all queues and the servers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import quote_plus

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.dashboard.charts import ChartSpan, chart, in_period, spark
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.needs import Looked
from lowkiq_lambda.dashboard.numbers import numbers_of
from lowkiq_lambda.dashboard.pages.parts import Columns, Sort, sort_of
from lowkiq_lambda.operate.presentation.trouble import Trouble, trouble_of, troubles_of
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.views.queues import Metrics, Quantiles, QueueOverview, Series

if TYPE_CHECKING:
    from lowkiq_lambda.operate.doctor.findings import Need

FEW: Final = 10
"""So many queues stand as they are declared; of more those in trouble come first."""
MOST_ROWS: Final = 60
"""Queues on one page."""
MOST_NEEDS: Final = 30
"""Lines on what needs somebody: more of them are not read."""
FIRST_NEEDS: Final = 6
"""So many of them stand open on a phone, whose other numbers would be far below."""
MOST_MARKS: Final = 8
"""Marks of the chart that stand below it in words."""
_MARKED: Final[Mapping[str, str]] = {
    "pause": "paused",
    "resume": "resumed",
    "forget timing": "forgot how long batches took in",
    "pause tenant": "paused a tenant of",
    "resume tenant": "resumed a tenant of",
    "set limits": "set limits of",
    "reset limits": "reset limits of",
    "reshard": "resharded",
}
"""The actions that change the pace of a queue, each as a verb."""
Group: TypeAlias = Literal["Look here", "At work", "Quiet"]
GROUPS: Final[tuple[Group, ...]] = ("Look here", "At work", "Quiet")


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of all queues."""

    in_flight: int
    length: int
    fresh: int
    retries: int
    morgue_length: int


class Mark(msgspec.Struct, frozen=True):
    """What happened at `since` (Unix seconds): its flag in the chart, and a clause."""

    name: str
    since: float
    words: str


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A queue. `spark`: a path in the box of a chart; None without events. `query`: the queue's field in links.

    `ended`, `failed`: how many ids did in its time. `mismatch`: why it has no numbers, or empty.
    `paused`: the text of the badge, or empty. `moves_to`, `twice`, `empty_in`: as in `QueueOverview`.
    `bar`: the parts of what waits, each with its kind, where it begins and how long it is, of a thousand.
    """

    id: str
    name: str
    query: str
    now: Metrics
    spark: str | None
    ended: int
    failed: int
    took: Quantiles | None
    waited: Quantiles | None
    mismatch: str
    trouble: Trouble
    empty_in: float | None
    bar: list[tuple[str, int, int]]
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
    sort = sort_of(context.query, _COLUMNS)
    part = QueuesPart(find=context.query.get("find", "").strip(), begin=_begin(context.query.get("begin", "")))
    return in_period(context, "", {**sort.fields, **part.fields}, lambda period: _show(context, sort, part, period))


def _show(context: RequestContext, sort: Sort, part: QueuesPart, period: ChartSpan) -> Response:
    with Together() as side:
        latest = side.look(context.site.needs.latest, context.app.operate, is_refresh=context.is_partial)
        unseen = side.look(_unseen, context)
    looked = latest.result
    with context.app.operate.overview(period.span) as overview:
        queues = [*overview.queues]
    letters = part.find.casefold()
    matching = [(number, queue) for number, queue in enumerate(queues) if letters in queue.name.casefold()]
    part = msgspec.structs.replace(part, matching=len(matching))
    is_part = len(queues) > FEW or bool(part.find)
    groups, counts = _on_page(matching, sort, part, looked.needs if is_part else None)
    drawn = chart(_together(overview.at, [queue.history.series for queue in queues]))
    here = {**period.fields, **period.kept}
    return context.render(
        "overview_live.html" if context.is_partial else "overview.html",
        title=_title(context, queues),
        numbers=numbers_of(queues, drawn, looked, overview.at, context.site.lag_limit),
        total=_total(queues),
        chart=drawn,
        marks=drawn.places(_marks(looked)),
        groups={name: context.fragment("overview_rows.html", rows=rows) for name, rows in groups.items()},
        counts=counts,
        servers=overview.servers,
        address=without_password(context.app.core.connections.url),
        period=period,
        heads=sort.heads(context, "", _COLUMNS, **period.fields, **({"find": part.find} if part.find else {})),
        here=context.link("", **here),
        part=part,
        is_part=is_part,
        count=len(queues),
        is_sorted=bool(sort.by),
        first=context.link("", **{**here, "begin": "0"}) if part.begin else None,
        next=context.link("", **{**here, "begin": str(part.end)}) if part.end < part.matching else None,
        unseen=unseen.result,
        looked=looked,
        most=MOST_NEEDS,
        few=FIRST_NEEDS,
        most_marks=MOST_MARKS,
    )


def _begin(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < len(str(2**31)) else 0


def _on_page(
    numbered: Sequence[tuple[int, QueueOverview]], sort: Sort, part: QueuesPart, needs: "Sequence[Need] | None"
) -> tuple[dict[str, list[QueueRow]], dict[str, int]]:
    """The rows of the page by their group, and how many queues there are in each group.

    Without `needs` and a column to sort by they stand as they are declared, and in no group, as a sorted table does.
    """
    window = slice(part.begin, part.end)
    if sort.by or needs is None:
        return {"": sort.rows([_row(*each) for each in numbered], _COLUMNS)[window]}, {"": len(numbered)}
    places = dict(reversed([(need.queue, place) for place, need in enumerate(needs)]))
    troubles = troubles_of([queue for _, queue in numbered], needs)

    def place(number: int, queue: QueueOverview) -> tuple[Group, tuple[object, ...]]:
        now, series, trouble = queue.now, queue.history.series, troubles[queue.name]
        if queue.mismatched:
            return "Look here", (-1, number)
        works = now.due or now.in_flight or any(series.ended) or any(series.failed)
        group: Group = "Look here" if trouble.words else "At work" if works else "Quiet"
        worst = (places.get(queue.name, len(needs)), trouble.rank, -now.lag, -now.in_flight, -now.length)
        return group, (GROUPS.index(group), *worst, number)

    placed = sorted(((*place(number, queue), number, queue) for number, queue in numbered), key=itemgetter(1))
    groups = {name: [_row(number, queue) for own, _, number, queue in placed[window] if own == name] for name in GROUPS}
    return {name: rows for name, rows in groups.items() if rows}, Counter(own for own, *_ in placed)


def _marks(looked: Looked) -> list[Mark]:
    """Releases, pauses, moves and changes of limits, in the order of time."""
    marks = [Mark(release.name, release.since, f"release {release.name} began") for release in looked.releases]
    for entry in looked.activity:
        if entry.action in _MARKED:
            words = f"{_MARKED[entry.action]} {entry.queue} ({entry.target})"
            marks.append(Mark(f"{entry.action} {entry.queue}", entry.at, f"{entry.who} {words}"))
    return sorted(marks, key=lambda mark: mark.since)


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


def _total(queues: Sequence[QueueOverview]) -> Total:
    # Mismatched queues have no metrics.
    nows = [queue.now for queue in queues if not queue.mismatched]
    return Total(
        in_flight=sum(now.in_flight for now in nows),
        length=sum(now.length for now in nows),
        fresh=sum(now.fresh for now in nows),
        retries=sum(now.retries for now in nows),
        morgue_length=sum(now.morgue_length for now in nows),
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
        ended=sum(queue.history.series.ended),
        failed=sum(queue.history.series.failed),
        took=queue.history.took,
        waited=queue.history.waited,
        mismatch=queue.mismatch,
        trouble=trouble_of(queue),
        empty_in=queue.empty_in,
        bar=_bar(queue.now),
        paused=_paused(queue.now.paused, queue.shards_count),
        moves_to=queue.moves_to,
        twice=queue.twice,
    )


def _bar(now: Metrics) -> list[tuple[str, int, int]]:
    """Due, kept back or to be tried again, later, and blocked: a retry that is due counts as due."""
    rest = max(0, now.length - now.due - now.paused_due - now.blocked)
    again = min(rest, now.retries - min(now.retries, now.blocked))
    parts = {"due": now.due, "again": now.paused_due + again, "later": rest - again, "blocked": now.blocked}
    bar, end = list[tuple[str, int, int]](), 0
    for kind, count in parts.items():
        if count:
            begin, end = end, end + count
            left = 1_000 * begin // max(1, now.length)
            bar.append((kind, left, max(1, 1_000 * end // max(1, now.length) - left)))
    return bar


def _paused(paused: int, shards_count: int) -> str:
    if not paused:
        return ""
    return "paused" if paused == shards_count else f"paused: {paused} of {shards_count} shards"
