"""The shards of a queue: how much is in each, and who holds it."""

from starlette.responses import Response

from lowkiq_lambda.dashboard.pages.queue import chosen, no_queue
from lowkiq_lambda.dashboard.visit import Visit


def show(visit: Visit) -> Response:
    """The page, or what changes on it."""
    worker = chosen(visit)
    if worker is None:
        return no_queue(visit)
    queries = visit.app.queries(worker)
    return visit.page(
        "shards_live.html" if visit.is_partial else "shards.html",
        queue=worker.queue_name,
        shards=queries.shards(),
        # Not their bytes: those may be of payloads, which a mask would hide.
        damaged=queries.damaged(largest=0),
    )
