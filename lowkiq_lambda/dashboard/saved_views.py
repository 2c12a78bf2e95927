"""Saved views: pages with their filters, by names, for all visitors.

An address is checked when it is saved, and again when it is read: other writers to Redis must not lead visitors
elsewhere.
"""

from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import MAIN, NO_QUEUE, OF_QUEUE, VIEWED, RequestContext
from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE
from lowkiq_lambda.operate.inspect.saved_views import MOST, delete_view, read_views, save_view
from lowkiq_lambda.operate.presentation.formatting import visible

LONGEST_NAME: Final = 60
LONGEST_QUERY: Final = 2_000

_NAMES: Final = {"search": "Search", **MAIN, **OF_QUEUE}
_OF_ALL: Final = frozenset({"search", "errors", "activity"})
"""Pages that need no queue."""

_NO_NAME: Final = f"The name of a view has 1 to {LONGEST_NAME} characters, all of which can be seen."
_NO_PAGE: Final = f"A view is one of these pages with its filter: {', '.join(VIEWED)}."
_TOO_LONG: Final = f"The filter has more than {LONGEST_QUERY:,} characters."
_FULL: Final = f"There are {MOST} saved views, and no more are kept: delete one first."
_MASKED: Final = (
    "The app has a mask, and Redis would keep what this view searches for in payloads as it was typed. "
    "Save the view without the search in payloads."
)


class SavedView(msgspec.Struct, frozen=True, kw_only=True):
    """A view. `address`: path and query below the dashboard; null if it cannot be opened here.

    That is so for the view of a queue that the app does not have, and for a search in payloads if the app has a mask.
    """

    name: str
    address: str | None
    page: str | None = None
    queue: str | None = None


def saved_views(context: RequestContext) -> list[SavedView]:
    """All of them, by name."""
    views = read_views(context.app.core.backend, context.app.config.redis_retry_for)
    return [_readable(context, name, views[name]) for name in sorted(views, key=lambda name: (name.casefold(), name))]


def save(context: RequestContext, name: str, address: str) -> SavedView:
    """Save the address by the name, in place of one of that name. Raises ValueError, with a sentence."""
    view = _checked(context, name.strip(), address)
    if not save_view(context.app.core.backend, context.app.config.redis_retry_for, view.name, view.address or ""):
        raise ValueError(_FULL)
    activity.note(context, "save view", view.queue or OF_NO_QUEUE, f"{view.name!r} {view.address}", 1)
    return view


def delete(context: RequestContext, name: str) -> bool:
    """Delete the view; False if there is none of that name."""
    is_deleted = delete_view(context.app.core.backend, context.app.config.redis_retry_for, name)
    activity.note(context, "delete view", OF_NO_QUEUE, repr(name), int(is_deleted))
    return is_deleted


def _readable(context: RequestContext, name: str, address: str) -> SavedView:
    try:
        return _checked(context, name, address)
    except ValueError:
        return SavedView(name=name, address=None)


def _checked(context: RequestContext, name: str, address: str) -> SavedView:
    """The view, whose address is built anew of what the page knows, from the first page of its list on."""
    if not 1 <= len(name) <= LONGEST_NAME or visible(name) != name:
        raise ValueError(_NO_NAME)
    page, _, query = address.partition("?")
    pairs = parse_qsl(query, errors="replace")
    fields = dict(pairs)
    if page not in VIEWED or len(fields) < len(pairs) or fields.keys() - {*VIEWED[page].split()}:
        raise ValueError(_NO_PAGE)
    queue = fields.get("queue")
    if (queue is not None or page not in _OF_ALL) and context.worker_named(queue or "") is None:
        raise ValueError(NO_QUEUE)
    if "payload" in fields and context.mask is not None:
        raise ValueError(_MASKED)
    rebuilt = urlencode({field: value for field, value in fields.items() if field != "after"}, errors="replace")
    if len(rebuilt) > LONGEST_QUERY:
        raise ValueError(_TOO_LONG)
    return SavedView(name=name, address=f"{page}?{rebuilt}" if rebuilt else page, page=_NAMES[page], queue=queue)
