"""From where a request comes, and who says so."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

PEER: Final = "lowkiq.peer"
"""In the scope: the address at the other end of the connection, where the server that put it there has also let a
trusted proxy name the `client`."""
SOME_PROXY: Final = "a proxy"
_NAMING: Final = frozenset({b"forwarded", b"x-forwarded-for"})
_LONGEST: Final = 100
"""Characters of an address; what a proxy passes on can be anything."""


class Source(NamedTuple):
    """The address of a caller; `proxy` is the one that has named it, None where nobody had to."""

    address: str
    proxy: str | None = None


def source_of(scope: Mapping[str, Any]) -> Source:
    """The caller's address, as the server knows it.

    The headers themselves are not believed here. The port of the daemon says which proxies may name a caller. API
    Gateway tells the caller's address in the event. Another server, that the dashboard is mounted in, has decided on
    its own whether it believes the headers.
    """
    # A load balancer of AWS gives the whole header; what stands last in it is its own word.
    address = _host(scope.get("client")).rpartition(",")[2].strip()[:_LONGEST]
    if PEER in scope:
        peer = _host(scope[PEER])
        return Source(address, None if peer == address else peer)
    if "aws.event" in scope:
        return Source(address)
    named = any(name in _NAMING for name, _ in scope.get("headers", ()))
    return Source(address, SOME_PROXY if named else None)


def _host(client: Any) -> str:  # noqa: ANN401 - a pair, or nothing
    return str(client[0] or "") if client else ""
