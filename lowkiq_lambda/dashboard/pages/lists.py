"""The lists of a queue: what waits, what is in the morgue, and what is in flight."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.filters import NAMES, WAYS, ListQuery, Way, chips_of, filter_of, list_query
from lowkiq_lambda.dashboard.pages.parts import PAGE, Head, chosen_worker, export_links, no_queue
from lowkiq_lambda.dashboard.pages.rows import rows_of
from lowkiq_lambda.dashboard.payload_search import check_payload_search
from lowkiq_lambda.dashboard.scanning import scanning
from lowkiq_lambda.jobs.job import JobView, MorgueJob
from lowkiq_lambda.operate.inspect.id_ranges import SearchableList
from lowkiq_lambda.operate.presentation.formatting import unescaped, visible
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.views.jobs import Page

if TYPE_CHECKING:
    from lowkiq_lambda.operate.morgue import MorgueIds
    from lowkiq_lambda.operate.waiting import WaitingIds

JobPage = Page[JobView] | Page[MorgueJob]


class JobList(msgspec.Struct, frozen=True):
    """A list: its path, its orders, and the default direction."""

    path: SearchableList
    orders: Sequence[str]
    way: Way

    def query(self, fields: Mapping[str, str]) -> ListQuery:
        """The query of an address."""
        return list_query(fields, [*self.orders], self.way)

    def read(self, queue: QueueOperations, query: ListQuery, limit: int) -> JobPage:
        """A page of the list. Raises ValueError, with a sentence, for an invalid value or cursor."""
        listed: WaitingIds | MorgueIds = queue.waiting if self.path == "waiting" else queue.morgue
        reverse, after = query.reverse, query.after
        if query.goes_by_time:
            return listed.list(limit=limit, filter=filter_of(query), reverse=reverse, after=after)
        if query.searches:
            return listed.search(query.text, prefix=query.find, limit=limit, after=after)
        least, most = query.bounds("-", "+")
        # The query has one of the orders.
        by: Any = query.by
        return listed.list(by, least, most, limit, reverse=reverse, after=after)


def show_list(context: RequestContext, which: JobList) -> Response:
    """One page of a list."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    try:
        query, sentence = which.query(context.query), ""
    except ValueError as error:
        return context.refuse(400, str(error))
    jobs: JobPage = Page[JobView]([])
    operated = context.app.operate(worker)
    typed = query
    try:
        check_payload_search(context, query.payload)
        with scanning(is_scan=query.searches or query.by == "id"):
            jobs = which.read(operated.glimpse(), query, PAGE)
            if not jobs and jobs.next is None and typed.after is None:
                jobs, query = _meant(operated.glimpse(), which, query)
    except ValueError as error:
        sentence = str(error)
    shards = operated.shards()
    name, first = worker.queue_name, query.fields()
    return context.render(
        f"{which.path}.html",
        400 if sentence else 200,
        queue=name,
        filter=query,
        orders={order: NAMES[order] for order in which.orders},
        ways=WAYS,
        heads=_heads(context, name, which, query),
        chips=[] if sentence else chips_of(context, name, which.path, query),
        jobs=rows_of(context, worker, jobs),
        searched=query.searches,
        typed=visible(typed.find) if query.find != typed.find else "",
        narrowed=query.searches or query.has_range,
        sentence=sentence,
        cut=jobs.cut,
        ids_read=jobs.read if jobs.next else None,
        shards=shards,
        total=sum(shard.morgue_length if which.path == "morgue" else shard.length for shard in shards),
        at=context.site.now(),
        here=context.link(which.path, queue=name, **first, **({"after": query.after} if query.after else {})),
        exports=export_links(context, name, which.path, **first),
        first=context.link(which.path, queue=name, **first) if query.after is not None else None,
        next=context.link(which.path, queue=name, **first, after=jobs.next) if jobs.next else None,
        toolbar=which.path,
    )


def _meant(queue: QueueOperations, which: JobList, query: ListQuery) -> tuple[JobPage, ListQuery]:
    """The jobs whose ids begin with the text that the pages show in the typed form, if that is another text."""
    other = msgspec.structs.replace(query, find=unescaped(query.find))
    if other != query and (jobs := which.read(queue, other, PAGE)):
        return jobs, other
    return Page[JobView]([]), query


def _heads(context: RequestContext, queue: str, which: JobList, query: ListQuery) -> dict[str, Head]:
    """The heads of columns by which the list can be ordered. A range or a search would be lost: then none is a link."""
    is_free = not (query.searches or query.has_range)
    by = query.by if not query.searches else next(iter(which.orders)) if query.goes_by_time else ""
    heads = dict[str, Head]()
    for order in which.orders:
        way: Way = "desc" if order == by and not query.reverse else "asc"
        link = context.link(which.path, queue=queue, by=order, range=way) if is_free else None
        heads[order] = Head.of(link, is_here=order == by, reverse=query.reverse)
    return heads


WAITING: Final = JobList("waiting", ["due_at", "retry_count", "id"], "asc")


def show_waiting(context: RequestContext) -> Response:
    """The waiting jobs of a queue."""
    return show_list(context, WAITING)


MORGUE: Final = JobList("morgue", ["updated_at", "id"], "desc")


def show_morgue(context: RequestContext) -> Response:
    """The jobs in a queue's morgue."""
    return show_list(context, MORGUE)


def show_in_flight(context: RequestContext) -> Response:
    """The jobs in flight, and the holders of the shards; or the live region of that page."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    after, queue = context.query.get("after"), context.app.operate(worker)
    shards = queue.shards()
    try:
        jobs = queue.glimpse().in_flight.list(PAGE, after=after)
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
