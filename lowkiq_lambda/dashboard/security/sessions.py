"""Sessions: nothing is kept on the server; a signed cookie says who signed in, and until when that counts.

The account's own key signs, so another password ends all its sessions; signing out only has the browser forget. A
form's token is signed by it too, and differs each time that it is shown: what is compressed together with it tells
nothing of it.
"""

import secrets
from dataclasses import dataclass
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.security.signing import content_of, sign, verified

_SESSION: Final = "session"
_FORM: Final = "form"
_RANDOM: Final = 16


class Session(msgspec.Struct, frozen=True, array_like=True):
    """Who signed in, when, and until when it counts (Unix seconds)."""

    account: str
    id: str
    began_at: float
    ends_at: float


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that was verified, with the key that it was verified by, and the name of the cookie that keeps it."""

    session: Session
    key: bytes
    cookie: str

    def form_token(self) -> str:
        """Proof that a form came from a page of this session."""
        return sign(self.key, _FORM, secrets.token_bytes(_RANDOM) + self.session.id.encode())

    def has_given(self, token: str) -> bool:
        """Whether the token is one of this session's."""
        content = verified(self.key, _FORM, token)
        return content is not None and content[_RANDOM:] == self.session.id.encode()


def new_session(account: str, began_at: float, ends_at: float) -> Session:
    """A session like no other."""
    return Session(account, secrets.token_urlsafe(_RANDOM), began_at, ends_at)


def as_cookie(session: Session, key: bytes) -> str:
    """The cookie's value."""
    return sign(key, _SESSION, msgspec.json.encode(session))


def account_of(cookie: str) -> str | None:
    """The account that the cookie says it is of: not to be believed yet."""
    claimed = _decoded(content_of(cookie))
    return None if claimed is None else claimed.account


def session_of(cookie: str, key: bytes, now: float) -> Session | None:
    """The session, where the key has signed it and it has not ended."""
    session = _decoded(verified(key, _SESSION, cookie))
    return None if session is None or now >= session.ends_at else session


def _decoded(content: bytes | None) -> Session | None:
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=Session)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
