"""One queue at a glance: how it does in a sentence, its numbers, its chart, its waits, its shards, its limits."""

from math import ceil
from typing import Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.charts import ChartSpan, chart, in_period
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.moving import move_of
from lowkiq_lambda.dashboard.pages.parts import PAGE, Columns, chosen_worker, no_queue, sort_of
from lowkiq_lambda.dashboard.pages.rows import LONGEST_LINK, shown_id
from lowkiq_lambda.declare.declaring import MAX_SHARDS
from lowkiq_lambda.declare.worker import Worker, auto_of, queues_before
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.operate.inspect.history import read_waits
from lowkiq_lambda.operate.inspect.tuned import is_tuned, read_tuned
from lowkiq_lambda.operate.presentation.formatting import duration, quoted, visible
from lowkiq_lambda.operate.presentation.pace_words import in_a_sentence
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.views.activity import ActivityEntry
from lowkiq_lambda.views.journal import Recovered, Whereabouts
from lowkiq_lambda.views.queues import WAITS, Between, QueueOverview, Span, WaitsOfSpan
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

_ERRORS: Final = 3
"""Groups of errors, and actions, that stand beside the numbers; and how many errors are counted for them, at most."""
_ACTS: Final = 5
_FEW: Final = 10_000
_SHADES: Final = 5

NAMED: Final = 10
"""So many ids of each holder are named."""


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    return in_period(context, "queue", {"queue": worker.queue_name}, lambda period: _show(context, worker, period))


def _show(context: RequestContext, worker: type[Worker[Any]], period: ChartSpan) -> Response:
    name, span, app = worker.queue_name, period.span, context.app
    queue = app.operate(worker)
    # Before the looks, each of which would read the declaration.
    _ = queue.reader
    is_whole = not context.is_partial
    with Together() as side:
        looked_at, past = side.look(queue.shards), side.look(_glance, context, worker, span)
        waits = side.look(read_waits, queue.reader, span, app.config.history_days)
        limits = side.look(queue.limits.explain) if _declares_limits(worker) else None
        # They stand still beside the numbers, and are not read with each refresh.
        acts = side.look(_acts, context, name) if is_whole else None
        auto = side.look(queue.auto.state) if auto_of(worker) is not None else None
        verification = side.look(queue.verified) if app.core.housekeeping.verifies else None
        # An app without releases asks for none.
        released = side.look(app.operate.releases) if app.config.release else None
        tuned = side.look(read_tuned, queue.reader, worker) if is_tuned(worker) else None
    shards, glance = looked_at.result, past.result
    limit = context.site.lag_limit
    is_late = max(glance.now.lag, glance.now.limited_lag, glance.now.paused_lag) > limit
    failed = glance.now.retries + glance.now.morgue_length
    with Together() as side:
        # A queue that is not late costs no look.
        late = side.look(queue.why_late, limit) if is_late else None
        errors = side.look(app.operate.errors, worker, limit=_ERRORS) if is_whole and failed <= _FEW else None
        if limits is None and glance.now.limited:
            limits = side.look(queue.limits.explain)
    return context.render(
        "queue_live.html" if context.is_partial else "queue.html",
        queue=name,
        title=_title(context, glance),
        shards=shards,
        now=glance.now,
        pace=in_a_sentence(glance, is_paused=all(shard.is_paused for shard in shards)),
        at=shards[0].at,
        late=late.result if late else None,
        auto=auto.result if auto else None,
        limits=limits.result if limits else None,
        waits=waits.result,
        heat=_heat(waits.result),
        failed=failed,
        errors=errors.result.groups if errors else None,
        acts=acts.result if acts else None,
        past=glance.history,
        chart=(drawn := chart(glance.history.series)),
        releases=drawn.places(released.result) if released else [],
        period=period,
        here=context.link("queue", queue=name, **period.fields),
        far=f"{FAR:.0f}",
        verified=verification.result if verification else None,
        tuned=str(tuned.result) if tuned else "",
    )


def _glance(context: RequestContext, worker: type[Worker[Any]], span: Span | Between) -> QueueOverview:
    with context.app.operate.overview(span, worker) as overview:
        (glance,) = overview.queues
    return glance


def _declares_limits(worker: type[Worker[Any]]) -> bool:
    return worker.max_running is not None or worker.rate is not None or bool(queues_before(worker))


def _acts(context: RequestContext, name: str) -> list[ActivityEntry]:
    """The last actions on the queue."""
    app = context.app
    return read_activity(app.core.backend, app.config.redis_retry_for, [name], _ACTS)


class HeatRow(msgspec.Struct, frozen=True):
    """The waits of one length: its name, and of each span how many batches, with its shade from 0 to 5."""

    name: str
    cells: list[tuple[int, int]]


def _heat(waits: list[WaitsOfSpan]) -> list[HeatRow]:
    """The longest waits first; nothing where no batch was performed."""
    largest = max((count for span in waits for count in span.counts), default=0)
    names = ["up to 1 s", *(f"up to {duration(most)}" for most in WAITS[1:]), f"over {duration(WAITS[-1])}"]
    return [
        HeatRow(name, [(span.counts[row], ceil(_SHADES * span.counts[row] / largest)) for span in waits])
        for row, name in reversed([*enumerate(names)])
        if largest
    ]


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
