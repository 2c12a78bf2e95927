"""One queue at a glance: its numbers, its chart, its shards, the ids that holders left behind, and its pause."""

from typing import Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.charts import SPANS, chart, span_links, span_of
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.moving import move_of
from lowkiq_lambda.dashboard.pages.parts import PAGE, Columns, chosen_worker, no_queue, sort_of
from lowkiq_lambda.dashboard.pages.rows import LONGEST_LINK, shown_id
from lowkiq_lambda.declare.declaring import MAX_SHARDS
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.presentation.formatting import quoted, visible
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.views.journal import Recovered, Whereabouts
from lowkiq_lambda.views.queues import QueueOverview, Span
from lowkiq_lambda.views.shards import ShardDetails

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

NAMED: Final = 10
"""So many ids of each holder are named."""


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    name, span = worker.queue_name, span_of(context)
    shards = context.app.operate(worker).shards()
    glance = _glance(context, worker, span)
    limit = context.site.lag_limit
    is_late = max(glance.now.lag, glance.now.limited_lag, glance.now.paused_lag) > limit
    return context.render(
        "queue_live.html" if context.is_partial else "queue.html",
        queue=name,
        title=_title(context, glance),
        shards=shards,
        now=glance.now,
        # A queue that is not late costs no look.
        late=context.app.operate(worker).why_late(limit) if is_late else None,
        past=glance.history,
        chart=(drawn := chart(glance.history.series)),
        # An app without releases asks for none.
        releases=drawn.places(context.app.operate.releases()) if context.app.config.release else [],
        span=span,
        spans=SPANS,
        span_links=span_links(context, "queue", queue=name),
        here=context.link("queue", queue=name, span=span),
        far=f"{FAR:.0f}",
        verified=context.app.operate(worker).verified() if context.app.core.housekeeping.verifies else None,
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
    name, queries, sort = worker.queue_name, context.app.operate(worker), sort_of(context.query, _COLUMNS)
    layout, shards = queries.reader.shards.layout, queries.shards()
    rows, labels = sort.rows(shards, _COLUMNS), [home.index for home in layout.homes]
    parts = [("Shards", rows)]
    if layout.is_moving:
        old, new = ([row for row in rows if (row.index >= layout.before) == is_new] for is_new in (False, True))
        parts = [(_some(layout.before, "old"), old), (_some(layout.after, "new"), new)]
    return context.render(
        "shards_live.html" if context.is_partial else "shards.html",
        queue=name,
        shards=shards,
        move=move_of(name, layout, shards),
        parts=parts,
        labels=labels,
        most_shards=MAX_SHARDS,
        at=shards[0].at,
        heads=sort.heads(context, "shards", _COLUMNS, queue=name),
        here=context.link("shards", queue=name, **sort.fields),
        # Without their bytes, which may be payloads that a mask hides.
        damaged=queries.damaged(largest=0),
    )


def _some(count: int, kind: str) -> str:
    return f"{count:,} {kind} shard{'' if count == 1 else 's'}"


class RecoveredId(msgspec.Struct, frozen=True, kw_only=True):
    """An id that was put back. `link`: to its page, which also tells of an id that is gone; None if it is too long."""

    name: str
    link: str | None
    now: Whereabouts
    is_crash_counted: bool
    is_dead: bool


class RecoveredRow(msgspec.Struct, frozen=True, kw_only=True):
    """A holder and what it left; `more`: ids that are not named."""

    one: Recovered
    ids: list[RecoveredId]
    more: int


def show_recovered(context: RequestContext) -> Response:
    """What holders of the shards left behind, and where it is now."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    name = worker.queue_name
    return context.render(
        "recovered.html",
        queue=name,
        shards=context.app.operate(worker).shards(),
        rows=[_row(context, name, one) for one in context.app.operate(worker).recovered(PAGE)],
    )


def _row(context: RequestContext, queue: str, one: Recovered) -> RecoveredRow:
    ids = one.ids[:NAMED]
    return RecoveredRow(
        one=one,
        ids=[
            RecoveredId(
                name=shown_id(job_id),
                link=context.link("job", queue=queue, id=job_id) if len(quoted(job_id)) <= LONGEST_LINK else None,
                now=one.now[job_id],
                is_crash_counted=job_id in one.crash_counted,
                is_dead=job_id in one.dead,
            )
            for job_id in ids
        ],
        more=one.more + len(one.ids) - len(ids),
    )
