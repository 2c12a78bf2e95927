"""The address of a request's caller, and the proxy that reported it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

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
    named = any(name in _NAMING for name, _ in scope.get("headers", ()))
    return Caller(address, SOME_PROXY if named else None)


def _host(client: Any) -> str:  # noqa: ANN401 - a pair or None
    return str(client[0] or "") if client else ""
