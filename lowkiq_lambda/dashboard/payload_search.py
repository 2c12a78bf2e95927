"""Whether a visitor may search payloads for a text."""

from typing import Final

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.operate.inspect.payload_query import payload_query

_OWN_MASK: Final = (
    "This dashboard has a mask of its own, so it cannot search payloads. With the mask as `Config.mask` a search sees "
    "payloads as the pages show them."
)


def check_payload_search(context: RequestContext, text: str) -> None:
    """Raises ValueError, with a sentence, for an unreadable search, and where one would tell what is hidden."""
    if not text:
        return
    payload_query(text)
    site_mask = context.site.mask
    if site_mask is not None and site_mask is not context.app.config.mask:
        raise ValueError(_OWN_MASK)
