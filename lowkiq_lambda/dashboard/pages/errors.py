"""Errors in groups, of one queue or of all, with the actions on the jobs of a group."""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.charts import spark_of
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.parts import PAGE, no_queue
from lowkiq_lambda.operate.presentation.errors import SharedError, errors_view
from lowkiq_lambda.views.errors import ErrorCounts, ErrorGrouping

_GROUPINGS: Final[Mapping[ErrorGrouping, str]] = {
    "fingerprint": "fingerprint",
    "line": "first line",
    "type": "type alone",
}


class ErrorRow(msgspec.Struct, frozen=True):
    """A group, or its part of one queue. `spark`: a path; with a queue there are acts on its jobs.

    `search`: the fields of the list of its jobs, `waiting` and `dead` links to these.
    """

    group: SharedError
    errors: ErrorCounts
    is_part: bool
    queue: str | None
    spark: str | None
    search: str
    waiting: str
    dead: str


def show(context: RequestContext) -> Response:
    """The page."""
    name = context.query.get("queue")
    worker = None if name is None else context.worker_named(name)
    if name is not None and worker is None:
        return no_queue(context)
    order = context.query.get("by") or "fingerprint"
    by = next((each for each in _GROUPINGS if each == order), None)
    if by is None:
        return context.refuse(400, f"Errors are grouped by {', '.join(_GROUPINGS)}, and not by “{order}”.")
    after = context.query.get("after")
    try:
        groups = context.app.operate.errors(worker, by=by, limit=PAGE, after=after)
    except ValueError:
        return context.refuse(400, "This address is of a count that cannot go on. Begin again.")
    view = errors_view(groups, context.app.operate.releases())
    parameters = {} if name is None else {"queue": name}
    return context.render(
        "errors.html",
        queue=name,
        shards=[] if worker is None else context.app.operate(worker).shards(),
        groups=[[*_rows(context, group)] for group in view.groups],
        found=groups,
        by=by,
        groupings=_GROUPINGS,
        links={other: context.link("errors", **parameters, by=other) for other in _GROUPINGS},
        first=None if after is None else context.link("errors", **parameters, by=by),
        next=None if groups.next is None else context.link("errors", **parameters, by=by, after=groups.next),
        now=context.site.now(),
    )


def _rows(context: RequestContext, group: SharedError) -> Iterator[ErrorRow]:
    """One for the group, and beneath it one for each queue if they are several."""
    if len(group.queues) == 1:
        yield _row(context, group, group, group.queues[0].queue)
        return
    yield _row(context, group, group, None)
    for errors in group.queues:
        yield _row(context, group, errors, errors.queue)


def _row(context: RequestContext, group: SharedError, errors: ErrorCounts, queue: str | None) -> ErrorRow:
    search = {"text": group.line} if group.fingerprint is None else {"fingerprint": group.fingerprint}
    return ErrorRow(
        group,
        errors,
        errors is not group,
        queue,
        spark_of(errors.hours),
        urlencode(search, errors="replace"),
        "" if queue is None else context.link("waiting", queue=queue, **search),
        "" if queue is None else context.link("morgue", queue=queue, **search),
    )
