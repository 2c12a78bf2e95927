"""The waiting jobs of a queue."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.lists import JobList, show_list
from lowkiq_lambda.operate.inspect.queries import Queries

WAITING: Final = JobList(
    "waiting",
    {
        "perform_in": Queries.range_by_perform_in,
        "retry_count": Queries.range_by_retry_count,
        "id": Queries.range_by_id,
    },
    "asc",
    Queries.search,
)


def show(context: RequestContext) -> Response:
    """The page."""
    return show_list(context, WAITING)
