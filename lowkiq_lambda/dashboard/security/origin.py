"""The origin of a request, as far as the browser reveals it."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit


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
