"""Lists of a queue's jobs, filtered or searched, page by page."""

from collections.abc import Callable, Mapping

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.formatting import unescaped, visible
from lowkiq_lambda.dashboard.pages.filters import NAMES, WAYS, Filter, Way, filter_of
from lowkiq_lambda.dashboard.pages.queue import PAGE, chosen, no_queue
from lowkiq_lambda.dashboard.pages.rows import rows_of
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.job import JobView, MorgueJob
from lowkiq_lambda.store.inspect.queries import Queries
from lowkiq_lambda.views import Page

Found = Page[JobView] | Page[MorgueJob]


class List(msgspec.Struct, frozen=True):
    """One of the lists: its path and template; what reads it by which order, at first `way`; what searches it."""

    path: str
    by: Mapping[str, Callable[..., Found]]
    way: Way
    search: Callable[..., Found]


def show_list(visit: Visit, which: List) -> Response:
    """The page of a list."""
    worker = chosen(visit)
    if worker is None:
        return no_queue(visit)
    asked, sentence = filter_of(visit.query, [*which.by], which.way), ""
    found: Found = Page[JobView]([])
    queries = visit.app.queries(worker)
    typed = asked
    try:
        found = _read(queries.glimpse(), which, asked)
        if not found and found.next is None and typed.after is None:
            found, asked = _meant(queries.glimpse(), which, asked)
    except ValueError as error:
        sentence = str(error)
    shards = queries.shards()
    total = sum(shard.morgue_length if which.path == "morgue" else shard.length for shard in shards)
    first = asked.fields()
    return visit.page(
        f"{which.path}.html",
        400 if sentence else 200,
        queue=worker.queue_name,
        filter=asked,
        orders={order: NAMES[order] for order in which.by},
        ways=WAYS,
        jobs=rows_of(visit, worker, found),
        searched=asked.searches,
        asked=visible(typed.find) if asked.find != typed.find else "",
        narrowed=asked.searches or bool(asked.range in {"gte", "lte"} and asked.value),
        sentence=sentence,
        cut=found.cut,
        shards=shards,
        total=total,
        first=visit.to(which.path, queue=worker.queue_name, **first) if asked.after is not None else None,
        next=visit.to(which.path, queue=worker.queue_name, **first, after=found.next) if found.next else None,
        toolbar=which.path,
    )


def _meant(queries: Queries, which: List, asked: Filter) -> tuple[Found, Filter]:
    """What is found by the beginning of an id that pages show like the one that was typed, where that is another."""
    other = msgspec.structs.replace(asked, find=unescaped(asked.find))
    if other != asked and (found := _read(queries, which, other)):
        return found, other
    return Page[JobView]([]), asked


def _read(queries: Queries, which: List, asked: Filter) -> Found:
    if asked.searches:
        return which.search(queries, asked.find, asked.text, PAGE, after=asked.after)
    least, most = asked.bounds("-", "+")
    return which.by[asked.by](queries, least, most, PAGE, reverse=asked.reverse, after=asked.after)
