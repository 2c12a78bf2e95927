"""The filter of a bulk action, from the fields of a list."""

from collections.abc import Mapping
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.pages import filters
from lowkiq_lambda.operate.inspect.id_filter import IdFilter

FIELDS: Final = frozenset({"by", "range", "value", "find", "text", "fingerprint"})
"""The fields of a list in an address."""

_ORDERS: Final = {"waiting": ("perform_in", "retry_count", "id"), "morgue": ("updated_at", "id")}


def wanted_by(fields: Mapping[str, str], listed: str) -> IdFilter:
    """A filter for all jobs on the pages of the list. Raises ValueError, with a sentence, for an invalid value."""
    return filter_of(filters.list_query(fields, _ORDERS[listed], "asc"))


def filter_of(query: filters.ListQuery) -> IdFilter:
    """All conditions of the query. Raises ValueError, with a sentence, for an invalid value."""
    search = IdFilter(prefix=query.find, error=query.text, fingerprint=query.fingerprint)
    if query.by == "id":
        least, most = query.bounds("", "")
        return msgspec.structs.replace(search, least_id=least, most_id=most)
    if query.by == "retry_count":
        least, most = query.bounds("", "")
        return msgspec.structs.replace(search, least_count=least, most_count=most)
    least, most = query.bounds("-inf", "+inf")
    return msgspec.structs.replace(search, least=least, most=most)
