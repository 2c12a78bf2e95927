"""AWS's Signature Version 4, as far as a presigned GET without a body needs it.

Of our own, as botocore would cost a cold start more time than all the rest of a drain function together; a test
compares the two.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final
from urllib.parse import quote, urlencode

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_NO_BODY: Final = sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Keys:
    """Whoever has these may do what their owner may."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Request:
    """What is signed, and where it is sent."""

    host: str
    query: Mapping[str, str]
    region: str
    service: str


def presigned(request: Request, keys: Keys, *, at: float, lifetime: int) -> str:
    """`host/?…`, the request's URL without its scheme that is good from `at` (unix seconds) for `lifetime` seconds."""
    stamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")
    day = stamp.partition("T")[0]
    credential = f"{day}/{request.region}/{request.service}/aws4_request"
    signed = {
        **request.query,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access_key}/{credential}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(lifetime),
        "X-Amz-SignedHeaders": "host",
    }
    if keys.session_token:
        signed["X-Amz-Security-Token"] = keys.session_token
    text = urlencode(sorted(signed.items()), quote_via=quote, safe="")
    canonical = f"GET\n/\n{text}\nhost:{request.host}\n\nhost\n{_NO_BODY}"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{credential}\n{sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{keys.secret_key}".encode()
    for step in (day, request.region, request.service, "aws4_request"):
        key = _hmac(key, step)
    return f"{request.host}/?{text}&X-Amz-Signature={_hmac(key, to_sign).hex()}"


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
