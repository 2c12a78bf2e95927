"""Whether a request that changes something comes from our own pages, as far as the browser tells."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that another site's page sends it. A program that is no browser says nothing."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site != "same-origin"
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    except ValueError:
        # Such as half an IPv6 address.
        return True


def is_loopback(host: str) -> bool:
    """Whether an address or a name is that of this machine for itself, with a port or without."""
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
