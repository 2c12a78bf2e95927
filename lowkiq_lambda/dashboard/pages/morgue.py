"""The jobs of a queue whose retries are used up."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.pages.lists import List, show_list
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.inspect.queries import Queries

_MORGUE: Final = List(
    "morgue",
    {"updated_at": Queries.morgue_range_by_updated_at, "id": Queries.morgue_range_by_id},
    "desc",
    Queries.morgue_search,
)


def show(visit: Visit) -> Response:
    """The page."""
    return show_list(visit, _MORGUE)
