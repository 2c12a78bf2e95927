"""The span of a chart, as an address has it."""

from collections.abc import Mapping
from typing import Final, get_args

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.views.queues import Span

SPANS: Final[Mapping[Span, str]] = {"10m": "10 minutes", "1h": "hour", "6h": "6 hours", "72h": "3 days"}


def span_of(context: RequestContext) -> Span:
    """The span in the address; the shortest by default."""
    wanted = context.query.get("span", "")
    return next((span for span in get_args(Span) if span == wanted), "10m")


def span_links(context: RequestContext, path: str, **query: object) -> dict[str, str]:
    """Links to the same page with each span."""
    return {span: context.link(path, **query, span=span) for span in SPANS}
