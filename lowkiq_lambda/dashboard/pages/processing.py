"""The jobs in flight of a queue, and the holders of its shards."""

from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.queue import PAGE, chosen_worker, export_links, no_queue
from lowkiq_lambda.dashboard.pages.rows import rows_of


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    after, queries = context.query.get("after"), context.app.operate.queries(worker)
    shards = queries.shards()
    try:
        jobs = queries.glimpse().processing_page(PAGE, after=after)
    except ValueError as error:
        return context.refuse(400, str(error))
    here = {"queue": worker.queue_name}
    return context.render(
        "processing_live.html" if context.is_partial else "processing.html",
        queue=worker.queue_name,
        here=context.link("processing", **here, **({"after": after} if after else {})),
        shards=shards,
        held=[shard for shard in shards if shard.is_held or shard.in_flight],
        jobs=rows_of(context, worker, jobs),
        in_flight=sum(shard.in_flight for shard in shards),
        exports=export_links(context, worker.queue_name, "processing"),
        first=context.link("processing", **here) if after else None,
        next=context.link("processing", **here, after=jobs.next) if jobs.next else None,
    )
