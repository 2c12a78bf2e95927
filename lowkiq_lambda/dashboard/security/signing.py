"""Signed texts."""

import base64
import binascii
import hmac
from hashlib import sha256


def sign(key: bytes, purpose: str, content: bytes) -> str:
    """The content with a signature that is valid for this purpose only, in characters that a cookie allows."""
    body = _text(content)
    return f"{body}.{_text(_signature(key, purpose, body))}"


def content_of(signed: str) -> bytes | None:
    """The content, unverified, to find its key. None if the text is malformed."""
    body, dot, _ = signed.partition(".")
    return _bytes(body) if dot else None


def verified(key: bytes, purpose: str, signed: str) -> bytes | None:
    """The content; None unless this key has signed it for this purpose."""
    body, _, signature = signed.partition(".")
    digest = _bytes(signature)
    if digest is None or not hmac.compare_digest(digest, _signature(key, purpose, body)):
        return None
    return _bytes(body)


def _signature(key: bytes, purpose: str, body: str) -> bytes:
    return hmac.digest(key, f"{purpose}\0{body}".encode(errors="surrogatepass"), sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
