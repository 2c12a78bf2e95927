"""Pages of a list of jobs: a range or a search."""

from collections.abc import Callable, Mapping

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.formatting import unescaped, visible
from lowkiq_lambda.dashboard.pages.filters import NAMES, WAYS, ListQuery, Way, list_query
from lowkiq_lambda.dashboard.pages.queue import PAGE, chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.rows import rows_of
from lowkiq_lambda.job import JobView, MorgueJob
from lowkiq_lambda.store.inspect.queries import Queries
from lowkiq_lambda.views import Page

JobPage = Page[JobView] | Page[MorgueJob]


class JobList(msgspec.Struct, frozen=True):
    """A list: its path, the query of each order, the default direction, and the search."""

    path: str
    by: Mapping[str, Callable[..., JobPage]]
    way: Way
    search: Callable[..., JobPage]


def show_list(context: RequestContext, which: JobList) -> Response:
    """One page of a list."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    query, sentence = list_query(context.query, [*which.by], which.way), ""
    jobs: JobPage = Page[JobView]([])
    queries = context.app.queries(worker)
    typed = query
    try:
        jobs = _read(queries.glimpse(), which, query)
        if not jobs and jobs.next is None and typed.after is None:
            jobs, query = _meant(queries.glimpse(), which, query)
    except ValueError as error:
        sentence = str(error)
    shards = queries.shards()
    total = sum(shard.morgue_length if which.path == "morgue" else shard.length for shard in shards)
    first = query.fields()
    return context.render(
        f"{which.path}.html",
        400 if sentence else 200,
        queue=worker.queue_name,
        filter=query,
        orders={order: NAMES[order] for order in which.by},
        ways=WAYS,
        jobs=rows_of(context, worker, jobs),
        searched=query.searches,
        typed=visible(typed.find) if query.find != typed.find else "",
        narrowed=query.searches or bool(query.range in {"gte", "lte"} and query.value),
        sentence=sentence,
        cut=jobs.cut,
        shards=shards,
        total=total,
        first=context.link(which.path, queue=worker.queue_name, **first) if query.after is not None else None,
        next=context.link(which.path, queue=worker.queue_name, **first, after=jobs.next) if jobs.next else None,
        toolbar=which.path,
    )


def _meant(queries: Queries, which: JobList, query: ListQuery) -> tuple[JobPage, ListQuery]:
    """The jobs whose ids begin with the text that the pages show in the typed form, if that is another text."""
    other = msgspec.structs.replace(query, find=unescaped(query.find))
    if other != query and (jobs := _read(queries, which, other)):
        return jobs, other
    return Page[JobView]([]), query


def _read(queries: Queries, which: JobList, query: ListQuery) -> JobPage:
    if query.searches:
        return which.search(queries, query.find, query.text, PAGE, after=query.after)
    least, most = query.bounds("-", "+")
    return which.by[query.by](queries, least, most, PAGE, reverse=query.reverse, after=query.after)
