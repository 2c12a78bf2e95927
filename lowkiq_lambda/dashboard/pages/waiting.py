"""The jobs of a queue that wait."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.pages.filters import Filter
from lowkiq_lambda.dashboard.pages.lists import List, show_list
from lowkiq_lambda.dashboard.pages.queue import PAGE
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.job import JobView
from lowkiq_lambda.store.queries import Queries
from lowkiq_lambda.views import Page


def show(visit: Visit) -> Response:
    """The page."""
    return show_list(visit, _WAITING)


def _read(queries: Queries, asked: Filter) -> Page[JobView]:
    if asked.searches:
        return queries.search(asked.find, asked.text, PAGE, after=asked.after)
    if asked.by == "id":
        least, most = asked.bounds("-", "+")
        return queries.range_by_id(str(least), str(most), PAGE, reverse=asked.reverse, after=asked.after)
    least, most = asked.bounds("-inf", "+inf")
    query = queries.range_by_retry_count if asked.by == "retry_count" else queries.range_by_perform_in
    return query(least, most, PAGE, reverse=asked.reverse, after=asked.after)


_WAITING: Final = List("waiting", ("perform_in", "retry_count", "id"), "asc", _read)
