"""Stateless sessions: a signed cookie holds the account and the end of the session.

The account's key signs it, so a new password ends all sessions of the account. Signing out deletes the cookie, and
keeps the session's id, so that a copy of the cookie changes nothing and is not renewed. A form's token is signed with
the same key and salted per response, against BREACH.

A browser sends a host's cookies to all its ports, and a folder's cookies to all folders below. So the name of a cookie
identifies the dashboard by port, path and password; if a name comes twice, each value is checked.
"""

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
from starlette.datastructures import Headers, MutableHeaders

_SESSION: Final = "session"
_FORM: Final = "form"
_RANDOM: Final = 16
_TAG: Final = 8
LONGEST_NAME: Final = 100
"""Characters of an account's name."""
_LONGEST_COOKIE: Final = 1_024
"""Characters of a session's cookie; one with the longest name has fewer."""

PREFIX: Final = "lowkiq_session_"
_PORT: Final = re.compile(r":([0-9]+)$")
_SHORT: Final = 12
"""Letters of the name's suffix."""


class Session(msgspec.Struct, frozen=True, array_like=True):
    """An account with the begin and the end of its session, in Unix seconds."""

    account: str
    id: str
    began_at: float
    ends_at: float

    @property
    def tag(self) -> str:
        """The begin of the id, which tells sessions apart in a log."""
        return self.id[:_TAG]


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A verified session, its key, and the name of its cookie."""

    session: Session
    key: bytes
    cookie: str

    def form_token(self) -> str:
        """A token that proves that a form came from a page of this session."""
        return sign(self.key, _FORM, secrets.token_bytes(_RANDOM) + self.session.id.encode())

    def accepts(self, token: str) -> bool:
        """Whether the token belongs to this session."""
        content = verified(self.key, _FORM, token)
        return content is not None and content[_RANDOM:] == self.session.id.encode()


def new_session(account: str, began_at: float, ends_at: float) -> Session:
    """A session with a random id."""
    return Session(account, secrets.token_urlsafe(_RANDOM), began_at, ends_at)


def as_cookie(session: Session, key: bytes) -> str:
    """The cookie's value."""
    return sign(key, _SESSION, msgspec.json.encode(session))


def account_of(cookie: str) -> str | None:
    """The account that the cookie claims, unverified."""
    content = _decoded(content_of(cookie)) if len(cookie) <= _LONGEST_COOKIE else None
    return None if content is None else content.account


def session_of(cookie: str, key: bytes, now: float) -> Session | None:
    """The session; None if the signature is wrong or the session has ended."""
    session = _decoded(verified(key, _SESSION, cookie))
    return None if session is None or now >= session.ends_at else session


def _decoded(content: bytes | None) -> Session | None:
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=Session)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A stranger's cookie is decoded to find the key that would verify it.
        return None


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


class Cookie(NamedTuple):
    """A cookie of a request or a response; an empty value deletes it."""

    name: str
    value: str

    def set_on(self, headers: MutableHeaders, scheme: str) -> None:
        """Adds the cookie to a response.

        It has no path, so browsers use the folder of the requested address: all responses that set it must belong to
        the same folder.
        """
        secure, expiry = "; Secure" * (scheme == "https"), "; Max-Age=0" * (not self.value)
        headers.append("set-cookie", f"{self.name}={self.value}; HttpOnly; SameSite=lax{secure}{expiry}")


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
