"""What a list shows, as what an action is done to."""

from collections.abc import Mapping
from typing import Final

from lowkiq_lambda.dashboard.pages import filters
from lowkiq_lambda.store.inspect.id_filter import IdFilter

FIELDS: Final = frozenset({"by", "range", "value", "find", "text"})
"""The fields of an address that narrow a list."""

_ORDERS: Final = {"waiting": ("perform_in", "retry_count", "id"), "morgue": ("updated_at", "id")}


def wanted_by(fields: Mapping[str, str], listed: str) -> IdFilter:
    """All that the pages of such a list show together. Raises ValueError, with a sentence, for what is no value."""
    asked = filters.filter_of(fields, _ORDERS[listed], "asc")
    if asked.searches:
        return IdFilter(prefix=asked.find, error=asked.text)
    if asked.by == "id":
        least, most = asked.bounds("", "")
        return IdFilter(least_id=least, most_id=most)
    if asked.by == "retry_count":
        least, most = asked.bounds("", "")
        return IdFilter(least_count=least, most_count=most)
    least, most = asked.bounds("-inf", "+inf")
    return IdFilter(least=least, most=most)
