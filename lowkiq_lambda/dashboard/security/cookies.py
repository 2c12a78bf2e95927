"""Session cookies: their names, and how they are set and read.

A browser sends a host's cookies to all its ports, and a folder's cookies to all folders below. So the name identifies
the dashboard by port, path and password; if a name comes twice, each value is checked.
"""

import hmac
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders

PREFIX: Final = "lowkiq_session_"
_PORT: Final = re.compile(r":([0-9]+)$")
_SHORT: Final = 12
"""Letters of the name's suffix."""


class Cookie(NamedTuple):
    """A cookie of a request or a response; an empty value deletes it."""

    name: str
    value: str

    def set_on(self, headers: MutableHeaders, scheme: str) -> None:
        """Adds the cookie to a response.

        It has no path, so browsers use the folder of the requested address: all responses that set it must belong to
        the same folder.
        """
        secure, gone = "; Secure" * (scheme == "https"), "; Max-Age=0" * (not self.value)
        headers.append("set-cookie", f"{self.name}={self.value}; HttpOnly; SameSite=lax{secure}{gone}")


def name_of(key: bytes, scope: Mapping[str, Any]) -> str:
    """The cookie's name for an account with this key at the requested dashboard."""
    port = _PORT.search(Headers(raw=scope["headers"]).get("host", ""))
    place = f"{port[1] if port else ''} {scope.get('root_path', '')}"
    return PREFIX + hmac.digest(key, f"cookie\0{place}".encode(errors="surrogatepass"), "sha256").hex()[:_SHORT]


def cookies_of(headers: Headers) -> Iterator[Cookie]:
    """The session cookies of a request in its order, the nearest folder first."""
    for line in headers.getlist("cookie"):
        for pair in line.split(";"):
            name, _, value = pair.strip().partition("=")
            if name.startswith(PREFIX):
                yield Cookie(name, value)
