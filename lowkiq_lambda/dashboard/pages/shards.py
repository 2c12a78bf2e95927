"""The shards of a queue: their metrics and their holders."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.queue import chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.sorting import Columns, sort_of
from lowkiq_lambda.views.queues import ShardDetails

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
