"""Lists of a queue's jobs, filtered or searched, page by page."""

from collections.abc import Callable, Sequence

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.pages.filters import NAMES, WAYS, Filter, Way, filter_of
from lowkiq_lambda.dashboard.pages.queue import chosen, no_queue
from lowkiq_lambda.dashboard.pages.rows import rows_of
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.job import JobView, MorgueJob
from lowkiq_lambda.store.queries import Queries
from lowkiq_lambda.views import Page

Found = Page[JobView] | Page[MorgueJob]


class List(msgspec.Struct, frozen=True):
    """One of the lists: its path and template, by what it can be ordered, the first of it that way, how it is read."""

    path: str
    orders: Sequence[str]
    way: Way
    read: Callable[[Queries, Filter], Found]


def show_list(visit: Visit, which: List) -> Response:
    """The page of a list."""
    worker = chosen(visit)
    if worker is None:
        return no_queue(visit)
    asked, sentence = filter_of(visit.query, which.orders, which.way), ""
    found: Found = Page[JobView]([])
    queries = visit.app.queries(worker)
    try:
        found = which.read(queries.glimpse(), asked)
    except ValueError as error:
        sentence = str(error)
    total = sum(getattr(shard, "morgue_length" if which.path == "morgue" else "length") for shard in queries.shards())
    first = asked.fields()
    return visit.page(
        f"{which.path}.html",
        400 if sentence else 200,
        queue=worker.queue_name,
        filter=asked,
        orders={order: NAMES[order] for order in which.orders},
        ways=WAYS,
        jobs=rows_of(visit, worker, found),
        searched=asked.searches,
        sentence=sentence,
        cut=found.cut,
        total=total,
        first=visit.to(which.path, queue=worker.queue_name, **first) if asked.after is not None else None,
        next=visit.to(which.path, queue=worker.queue_name, **first, after=found.next) if found.next else None,
        toolbar=which.path,
    )
