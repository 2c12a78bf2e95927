"""What holders of a queue's shards left behind, and where it is now."""

from typing import Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.queue import PAGE, chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.rows import LONGEST_LINK, shown_id
from lowkiq_lambda.operate.presentation.formatting import quoted
from lowkiq_lambda.views.journal import Recovered, Whereabouts

NAMED: Final = 10
"""So many ids of each holder are named."""


class RecoveredId(msgspec.Struct, frozen=True, kw_only=True):
    """An id that was put back. `link`: to its page, which also tells of an id that is gone; None if it is too long."""

    name: str
    link: str | None
    now: Whereabouts
    is_struck: bool
    is_buried: bool


class RecoveredRow(msgspec.Struct, frozen=True, kw_only=True):
    """A holder and what it left; `more`: ids that are not named."""

    one: Recovered
    ids: list[RecoveredId]
    more: int


def show(context: RequestContext) -> Response:
    """The page."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    name = worker.queue_name
    return context.render(
        "recovered.html",
        queue=name,
        shards=context.app.operate.queries(worker).shards(),
        rows=[_row(context, name, one) for one in context.app.operate.recovered(worker, PAGE)],
    )


def _row(context: RequestContext, queue: str, one: Recovered) -> RecoveredRow:
    named = one.ids[:NAMED]
    return RecoveredRow(
        one=one,
        ids=[
            RecoveredId(
                name=shown_id(job_id),
                link=context.link("job", queue=queue, id=job_id) if len(quoted(job_id)) <= LONGEST_LINK else None,
                now=one.now[job_id],
                is_struck=job_id in one.struck,
                is_buried=job_id in one.buried,
            )
            for job_id in named
        ],
        more=one.more + len(one.ids) - len(named),
    )
