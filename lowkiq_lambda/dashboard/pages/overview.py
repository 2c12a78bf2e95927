"""The first page: all queues at a glance."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, get_args
from urllib.parse import quote_plus

import msgspec
from starlette.responses import Response

from lowkiq_lambda.config import without_password
from lowkiq_lambda.dashboard.charts import Chart, chart, spark
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.views import Metrics, Overview, Past, Quantiles, Series, Span

SPANS: Final[Mapping[Span, str]] = {"10m": "10 minutes", "1h": "hour", "6h": "6 hours", "72h": "3 days"}


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """All queues together. The lag is that of the most lagging one."""

    lag: float
    busy: int
    length: int
    fresh: int
    retries: int
    dead: int
    processed_rate: float
    failed_rate: float
    chart: Chart


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A queue. The spark is a path in the box of a chart; None where nothing happened. The query names it in links.

    `paused`: what the badge says of it; empty where it is not.
    """

    id: str
    name: str
    query: str
    now: Metrics
    spark: str | None
    took: Quantiles | None
    waited: Quantiles | None
    mismatched: bool
    paused: str


def show(visit: Visit) -> Response:
    """The page, or what changes on it."""
    asked = visit.query.get("span", "")
    span: Span = next((one for one in get_args(Span) if one == asked), "10m")
    seen = visit.app.overview(span)
    return visit.page(
        "overview_live.html" if visit.is_partial else "overview.html",
        total=_total(seen),
        rows=[*_rows(seen, {worker.queue_name: worker.shards_count for worker in visit.app.workers})],
        servers=seen.servers,
        address=without_password(visit.app.config.redis_url or ""),
        span=span,
        spans=SPANS,
    )


def _total(seen: Overview) -> Total:
    queues, pasts = seen.queues.values(), seen.pasts.values()
    return Total(
        lag=max((queue.lag for queue in queues), default=0.0),
        busy=sum(queue.busy for queue in queues),
        length=sum(queue.length for queue in queues),
        fresh=sum(queue.fresh for queue in queues),
        retries=sum(queue.retries for queue in queues),
        dead=sum(queue.morgue_length for queue in queues),
        processed_rate=sum(past.processed_rate for past in pasts),
        failed_rate=sum(past.failed_rate for past in pasts),
        chart=chart(_together(seen.at, pasts)),
    )


def _together(at: float, pasts: Iterable[Past]) -> Series:
    each = [past.series for past in pasts]
    if not each:
        return Series(began_at=at, step=1, processed=(), failed=())
    return Series(
        began_at=each[0].began_at,
        step=each[0].step,
        processed=tuple(map(sum, zip(*(one.processed for one in each), strict=True))),
        failed=tuple(map(sum, zip(*(one.failed for one in each), strict=True))),
    )


def _rows(seen: Overview, shards: Mapping[str, int]) -> Iterator[Row]:
    for number, (name, queue) in enumerate(seen.queues.items()):
        past = seen.pasts[name]
        yield Row(
            id=f"queue-{number}",
            name=name,
            query=f"queue={quote_plus(name, errors='replace')}",
            now=queue,
            spark=spark(past.series),
            took=past.took,
            waited=past.waited,
            mismatched=name in seen.mismatched,
            paused=_paused(queue.paused, shards[name]),
        )


def _paused(paused: int, shards_count: int) -> str:
    if not paused:
        return ""
    return "paused" if paused == shards_count else f"paused: {paused} of {shards_count} shards"
