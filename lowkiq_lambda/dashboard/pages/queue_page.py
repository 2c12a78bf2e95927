"""One queue at a glance: its numbers, its chart, its shards, and its pause."""

from typing import Any, Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.charts import SPANS, chart, span_links, span_of
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.queue import chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.sorting import Columns, sort_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.presentation.formatting import visible
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.views.queues import QueueOverview, ShardDetails, Span

_COLUMNS: Final[Columns[ShardDetails]] = {
    "index": lambda shard: shard.index,
    "length": lambda shard: shard.length,
    "retries": lambda shard: shard.retries,
    "in_flight": lambda shard: shard.in_flight,
    "morgue": lambda shard: shard.morgue_length,
    "lag": lambda shard: shard.lag,
    "owner": lambda shard: shard.owner if shard.is_held else "",
    "held": lambda shard: shard.at - (shard.acquired_at or shard.at) if shard.is_held else -1.0,
    "left": lambda shard: shard.lease_left,
    "token": lambda shard: shard.token,
}


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    name, span = worker.queue_name, span_of(context)
    shards = context.app.operate.queries(worker).shards()
    glance = _glance(context, worker, span)
    return context.render(
        "queue_live.html" if context.is_partial else "queue.html",
        queue=name,
        title=_title(context, glance),
        shards=shards,
        now=glance.now,
        past=glance.history,
        chart=chart(glance.history.series),
        span=span,
        spans=SPANS,
        span_links=span_links(context, "queue", queue=name),
        here=context.link("queue", queue=name, span=span),
        far=f"{FAR:.0f}",
    )


def _glance(context: RequestContext, worker: type[Worker[Any]], span: Span) -> QueueOverview:
    with context.app.operate.overview(span, worker) as overview:
        (glance,) = overview.queues
    return glance


def _title(context: RequestContext, glance: QueueOverview) -> str:
    """The title of the tab, which tells of trouble where the page is not in sight."""
    trouble = ["late"] if glance.now.lag >= context.site.lag_limit else []
    trouble += ["paused"] if glance.now.paused else []
    return " · ".join([*trouble, visible(glance.name), "lowkiq"])


def show_shards(context: RequestContext) -> Response:
    """The shards: their metrics and their holders; or the live region of that page."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    name, queries, sort = worker.queue_name, context.app.operate.queries(worker), sort_of(context.query, _COLUMNS)
    shards = queries.shards()
    return context.render(
        "shards_live.html" if context.is_partial else "shards.html",
        queue=name,
        shards=shards,
        rows=sort.rows(shards, _COLUMNS),
        heads=sort.heads(context, "shards", _COLUMNS, queue=name),
        here=context.link("shards", queue=name, **sort.fields),
        # Without their bytes, which may be payloads that a mask hides.
        damaged=queries.damaged(largest=0),
    )
