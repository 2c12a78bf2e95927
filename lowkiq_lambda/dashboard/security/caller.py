"""Where a request comes from: its caller's address, the proxy that reported it, and the site as browsers reveal it."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

PEER: Final = "lowkiq.peer"
"""In the scope: the address of the connection, if a trusted proxy reported the `client`."""
SOME_PROXY: Final = "a proxy"
_NAMING: Final = frozenset({b"forwarded", b"x-forwarded-for"})
_LONGEST: Final = 100
"""Characters of an address; a proxy may pass on any text."""


class Caller(NamedTuple):
    """The address of a caller. `proxy`: the proxy that reported it; None for a direct connection."""

    address: str
    proxy: str | None = None


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """The caller's address according to the server.

    This function does not trust headers. The daemon's port knows its trusted proxies, API Gateway reports the address
    in the event, and any other server decides itself whether it trusts the headers.
    """
    # A load balancer of AWS passes the whole header on; only its last entry is its own.
    address = _host(scope.get("client")).rpartition(",")[2].strip()[:_LONGEST]
    if PEER in scope:
        peer = _host(scope[PEER])
        return Caller(address, None if peer == address else peer)
    if "aws.event" in scope:
        return Caller(address)
    has_address = any(name in _NAMING for name, _ in scope.get("headers", ()))
    return Caller(address, SOME_PROXY if has_address else None)


def _host(client: Any) -> str:  # noqa: ANN401 - a pair or None
    return str(client[0] or "") if client else ""


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that another site sent the request. Other programs say nothing."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site != "same-origin"
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    except ValueError:
        # For example half an IPv6 address.
        return True


def is_loopback(host: str) -> bool:
    """Whether a host, with or without a port, is a loopback address."""
    name = host.lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name == "localhost":
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
