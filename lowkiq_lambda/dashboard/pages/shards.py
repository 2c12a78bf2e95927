"""The shards of a queue: their metrics and their holders."""

from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.queue import chosen_worker, no_queue


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    queries = context.app.queries(worker)
    return context.render(
        "shards_live.html" if context.is_partial else "shards.html",
        queue=worker.queue_name,
        shards=queries.shards(),
        # Without their bytes, which may be payloads that a mask hides.
        damaged=queries.damaged(largest=0),
    )
