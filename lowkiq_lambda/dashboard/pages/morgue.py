"""The jobs of a queue whose retries are used up."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.pages.filters import Filter
from lowkiq_lambda.dashboard.pages.lists import List, show_list
from lowkiq_lambda.dashboard.pages.queue import PAGE
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.job import MorgueJob
from lowkiq_lambda.store.queries import Queries
from lowkiq_lambda.views import Page


def show(visit: Visit) -> Response:
    """The page."""
    return show_list(visit, _MORGUE)


def _read(queries: Queries, asked: Filter) -> Page[MorgueJob]:
    if asked.searches:
        return queries.morgue_search(asked.find, asked.text, PAGE, after=asked.after)
    if asked.by == "id":
        least, most = asked.bounds("-", "+")
        return queries.morgue_range_by_id(str(least), str(most), PAGE, reverse=asked.reverse, after=asked.after)
    least, most = asked.bounds("-inf", "+inf")
    return queries.morgue_range_by_updated_at(least, most, PAGE, reverse=asked.reverse, after=asked.after)


_MORGUE: Final = List("morgue", ("updated_at", "id"), "desc", _read)
