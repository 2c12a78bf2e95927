"""The page that somebody is led back to when they have signed in: one of ours, whatever an address claims."""

import re
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from lowkiq_lambda.dashboard.security.paths import path_of

_OURS: Final = re.compile(r"([a-z][a-z0-9/-]*)?(\?[!-~]*)?", re.ASCII)
"""A path of ours, as it stands in a link: no scheme, no host, no way out of the folder."""
_DEEPER: Final = re.compile(r"/(actions/(?:ask|done|queue))$")
"""Pages in a folder of their own; all others are beside the overview."""


def checked(way: str) -> str:
    """The path, with its query, relative to the overview; the overview's own, which is empty, where it is none."""
    return way if _OURS.fullmatch(way) and "//" not in way.partition("?")[0] else ""


def way_back(scope: Scope) -> str:
    """The page that is asked for; where an action or a part of a page is, the page that it is asked from."""
    headers = Headers(scope=scope)
    is_page = scope["method"] in {"GET", "HEAD"} and headers.get("hx-request") != "true"
    if is_page:
        path, query = path_of(scope).removeprefix("/"), scope["query_string"].decode("latin-1")
    else:
        path, query = _page_at(headers.get("hx-current-url") or headers.get("referer") or "")
    return checked(f"{path}?{query}" if query else path)


def _page_at(address: str) -> tuple[str, str]:
    """The path behind wherever the browser knows us to be mounted, and the query."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "", ""
    deeper = _DEEPER.search(parts.path)
    return deeper[1] if deeper else parts.path.rpartition("/")[2], parts.query
