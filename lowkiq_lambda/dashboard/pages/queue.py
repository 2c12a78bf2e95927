"""Parts that the pages of a queue share."""

from typing import Any, Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.declare.worker import Worker

PAGE: Final = 100
"""Jobs on one page of a list."""


def chosen_worker(context: RequestContext) -> type[Worker[Any]] | None:
    """The worker of the queue in the address; None if the app has no such queue."""
    return context.worker_named(context.query.get("queue", ""))


def export_links(context: RequestContext, queue: str, listed: str, **fields: str) -> dict[str, str]:
    """Links to files of a list, by the name of their format."""
    query = {"queue": queue, "list": listed, **fields}
    return {name.upper(): context.link("export", **query, format=name) for name in ("csv", "json")}


def no_queue(context: RequestContext) -> Response:
    """The response if the address does not name a queue of the app."""
    return context.refuse(404, NO_QUEUE)
