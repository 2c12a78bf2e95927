"""One queue at a glance: its numbers, its chart, its shards, and its pause."""

from typing import Any

from starlette.responses import Response

from lowkiq_lambda.dashboard.charts import chart
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.queue import chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.spans import SPANS, span_links, span_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.presentation.formatting import visible
from lowkiq_lambda.store.server.server_time import FAR
from lowkiq_lambda.views.queues import QueueOverview, Span


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
