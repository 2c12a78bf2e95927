"""The jobs in a queue's morgue."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.lists import JobList, show_list
from lowkiq_lambda.operate.inspect.queries import Queries

MORGUE: Final = JobList(
    "morgue",
    {"updated_at": Queries.morgue_range_by_updated_at, "id": Queries.morgue_range_by_id},
    "desc",
    Queries.morgue_search,
)


def show(context: RequestContext) -> Response:
    """The page."""
    return show_list(context, MORGUE)
