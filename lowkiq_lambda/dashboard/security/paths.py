"""The path of a request within the dashboard, and the page to return to after signing in."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

_OURS: Final = re.compile(r"([a-z][a-z0-9/-]*)?(\?[!-~]*)?", re.ASCII)
"""A relative path of the dashboard: without scheme, host or `..`."""
_DEEPER: Final = re.compile(r"/(actions/(?:ask|done|queue))$")
"""Pages in the folder of actions; all others are in the overview's folder."""


def path_of(scope: Mapping[str, Any]) -> str:
    """The path without the mount's root path; it begins with a slash."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def checked(path: str) -> str:
    """The path and query relative to the overview; empty, for the overview itself, if it is not a page."""
    return path if _OURS.fullmatch(path) and "//" not in path.partition("?")[0] else ""


def return_path(scope: Scope) -> str:
    """The requested page; for an action or a fragment, the page that sent the request."""
    headers = Headers(scope=scope)
    is_page = scope["method"] in {"GET", "HEAD"} and headers.get("hx-request") != "true"
    if is_page:
        path, query = path_of(scope).removeprefix("/"), scope["query_string"].decode("latin-1")
    else:
        path, query = _page_at(headers.get("hx-current-url") or headers.get("referer") or "")
    return checked(f"{path}?{query}" if query else path)


def _page_at(address: str) -> tuple[str, str]:
    """The path within the dashboard, wherever it is mounted, and the query."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "", ""
    deeper = _DEEPER.search(parts.path)
    return deeper[1] if deeper else parts.path.rpartition("/")[2], parts.query
