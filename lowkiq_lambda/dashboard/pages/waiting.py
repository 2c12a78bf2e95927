"""The jobs of a queue that wait."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.pages.lists import List, show_list
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.inspect.queries import Queries

_WAITING: Final = List(
    "waiting",
    {
        "perform_in": Queries.range_by_perform_in,
        "retry_count": Queries.range_by_retry_count,
        "id": Queries.range_by_id,
    },
    "asc",
    Queries.search,
)


def show(visit: Visit) -> Response:
    """The page."""
    return show_list(visit, _WAITING)
