"""The first page: all queues at a glance."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args
from urllib.parse import quote_plus

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.charts import Chart, chart, spark
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.error_text import without_password
from lowkiq_lambda.views import Metrics, Overview, Quantiles, QueueOverview, Series, Span

SPANS: Final[Mapping[Span, str]] = {"10m": "10 minutes", "1h": "hour", "6h": "6 hours", "72h": "3 days"}


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """All queues together. The lag is that of the most lagging one."""

    lag: float
    in_flight: int
    length: int
    fresh: int
    retries: int
    in_morgue: int
    done_rate: float
    failed_rate: float
    chart: Chart


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A queue. The spark is a path in the box of a chart; None where nothing happened. The query names it in links.

    `failing`: more failed than was done. `paused`: what the badge says of it; empty where it is not.
    """

    id: str
    name: str
    query: str
    now: Metrics
    spark: str | None
    failing: bool
    took: Quantiles | None
    waited: Quantiles | None
    mismatched: bool
    paused: str


def show(visit: Visit) -> Response:
    """The page, or what changes on it."""
    asked = visit.query.get("span", "")
    span: Span = next((one for one in get_args(Span) if one == asked), "10m")
    queues: list[QueueOverview] = []

    def rows(seen: Overview) -> Iterator[Row]:
        for number, queue in enumerate(seen.queues):
            queues.append(queue)
            yield _row(number, queue)

    # A row is written while the server is at work on the next, and what stands above them is made of all.
    with visit.app.overview(span) as seen:
        written = visit.part("overview_rows.html", rows=rows(seen))
    return visit.page(
        "overview_live.html" if visit.is_partial else "overview.html",
        total=_total(seen.at, queues),
        rows=written if queues else "",
        servers=seen.servers,
        address=without_password(visit.app.redis_url),
        span=span,
        spans=SPANS,
    )


def _total(at: float, queues: Sequence[QueueOverview]) -> Total:
    # What the rows do not show is in no sum, either.
    nows, pasts = [queue.now for queue in queues if not queue.mismatched], [queue.history for queue in queues]
    return Total(
        lag=max((now.lag for now in nows), default=0.0),
        in_flight=sum(now.in_flight for now in nows),
        length=sum(now.length for now in nows),
        fresh=sum(now.fresh for now in nows),
        retries=sum(now.retries for now in nows),
        in_morgue=sum(now.morgue_length for now in nows),
        done_rate=sum(past.done_rate for past in pasts),
        failed_rate=sum(past.failed_rate for past in pasts),
        chart=chart(_together(at, [past.series for past in pasts])),
    )


def _together(at: float, each: Sequence[Series]) -> Series:
    if not each:
        return Series(began_at=at, step=1, done=(), failed=())
    return Series(
        began_at=each[0].began_at,
        step=each[0].step,
        done=tuple(map(sum, zip(*(one.done for one in each), strict=True))),
        failed=tuple(map(sum, zip(*(one.failed for one in each), strict=True))),
    )


def _row(number: int, queue: QueueOverview) -> Row:
    return Row(
        id=f"queue-{number}",
        name=queue.name,
        query=f"queue={quote_plus(queue.name, errors='replace')}",
        now=queue.now,
        spark=spark(queue.history.series),
        failing=sum(queue.history.series.failed) > sum(queue.history.series.done),
        took=queue.history.took,
        waited=queue.history.waited,
        mismatched=queue.mismatched,
        paused=_paused(queue.now.paused, queue.shards_count),
    )


def _paused(paused: int, shards_count: int) -> str:
    if not paused:
        return ""
    return "paused" if paused == shards_count else f"paused: {paused} of {shards_count} shards"
