"""The cookies that keep sessions: what each is called, how it is given, and which of them a request brings.

A browser sends a host's cookies to each of its ports, and those of a folder to all the folders in it. So the name tells
the dashboards of a host apart, by port, path and password; and where a name comes twice each value is looked at.
"""

import hmac
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders

PREFIX: Final = "lowkiq_session_"
_PORT: Final = re.compile(r":([0-9]+)$")
_SHORT: Final = 12
"""Letters of the name that are its own."""


class Cookie(NamedTuple):
    """A cookie as a request brings it, or an answer gives it; with an empty value it is forgotten."""

    name: str
    value: str

    def give(self, headers: MutableHeaders, scheme: str) -> None:
        """Put it on an answer.

        Without a path it is good for the folder of the address that is answered, wherever that is mounted: so all
        answers that give it must be of the same folder.
        """
        secure, gone = "; Secure" * (scheme == "https"), "; Max-Age=0" * (not self.value)
        headers.append("set-cookie", f"{self.name}={self.value}; HttpOnly; SameSite=lax{secure}{gone}")


def name_of(key: bytes, scope: Mapping[str, Any]) -> str:
    """What the cookie of an account with this key is called by the dashboard that is asked."""
    port = _PORT.search(Headers(raw=scope["headers"]).get("host", ""))
    place = f"{port[1] if port else ''} {scope.get('root_path', '')}"
    return PREFIX + hmac.digest(key, f"cookie\0{place}".encode(errors="surrogatepass"), "sha256").hex()[:_SHORT]


def brought_by(headers: Headers) -> Iterator[Cookie]:
    """Those of a request that may be ours, in its order: the nearest folder's come first."""
    for line in headers.getlist("cookie"):
        for pair in line.split(";"):
            name, _, value = pair.strip().partition("=")
            if name.startswith(PREFIX):
                yield Cookie(name, value)
