"""Errors in groups, of one queue or of all, with the actions on the jobs of a group."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.charts import spark_of
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.parts import PAGE, no_queue
from lowkiq_lambda.views.errors import ErrorGroup, ErrorGrouping

_GROUPINGS: Final[Mapping[ErrorGrouping, str]] = {
    "fingerprint": "fingerprint",
    "line": "first line",
    "type": "type alone",
}


class ErrorRow(msgspec.Struct, frozen=True):
    """A group. `spark`: a path; `search`: the fields of the list of its jobs, `waiting` and `dead` links to these."""

    group: ErrorGroup
    number: int
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
    parameters = {} if name is None else {"queue": name}
    return context.render(
        "errors.html",
        queue=name,
        shards=[] if worker is None else context.app.operate(worker).shards(),
        rows=[_row(context, number, group) for number, group in enumerate(groups.groups)],
        found=groups,
        by=by,
        groupings=_GROUPINGS,
        links={other: context.link("errors", **parameters, by=other) for other in _GROUPINGS},
        first=None if after is None else context.link("errors", **parameters, by=by),
        next=None if groups.next is None else context.link("errors", **parameters, by=by, after=groups.next),
        now=context.site.now(),
    )


def _row(context: RequestContext, number: int, group: ErrorGroup) -> ErrorRow:
    search = {"text": group.line} if group.fingerprint is None else {"fingerprint": group.fingerprint}
    return ErrorRow(
        group,
        number,
        spark_of(group.hours),
        urlencode(search, errors="replace"),
        context.link("waiting", queue=group.queue, **search),
        context.link("morgue", queue=group.queue, **search),
    )
