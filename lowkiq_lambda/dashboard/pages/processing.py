"""The jobs of a queue that are in flight, and who has them."""

from starlette.responses import Response

from lowkiq_lambda.dashboard.pages.queue import PAGE, chosen, no_queue
from lowkiq_lambda.dashboard.pages.rows import rows_of
from lowkiq_lambda.dashboard.visit import Visit


def show(visit: Visit) -> Response:
    """The page, or what changes on it."""
    worker = chosen(visit)
    if worker is None:
        return no_queue(visit)
    after, queries = visit.query.get("after"), visit.app.queries(worker)
    shards = queries.shards()
    try:
        found = queries.glimpse().processing_page(PAGE, after=after)
    except ValueError as error:
        return visit.refuse(400, str(error))
    here = {"queue": worker.queue_name}
    return visit.page(
        "processing_live.html" if visit.is_partial else "processing.html",
        queue=worker.queue_name,
        here=visit.to("processing", **here, **({"after": after} if after else {})),
        shards=shards,
        held=[shard for shard in shards if shard.is_held or shard.in_flight],
        jobs=rows_of(visit, worker, found),
        in_flight=sum(shard.in_flight for shard in shards),
        first=visit.to("processing", **here) if after else None,
        next=visit.to("processing", **here, after=found.next) if found.next else None,
    )
