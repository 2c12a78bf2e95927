"""Stateless sessions: a signed cookie holds the account and the end of the session.

The account's key signs it, so a new password ends all sessions of the account. Signing out deletes the cookie, and
keeps the session's id, so that a copy of the cookie changes nothing and is not renewed. A form's token is signed with
the same key and salted per response, against BREACH.
"""

import secrets
from dataclasses import dataclass
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.security.signing import content_of, sign, verified

_SESSION: Final = "session"
_FORM: Final = "form"
_RANDOM: Final = 16
_TAG: Final = 8
LONGEST_NAME: Final = 100
"""Characters of an account's name."""
_LONGEST_COOKIE: Final = 1_024
"""Characters of a session's cookie; one with the longest name has fewer."""


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
    claimed = _decoded(content_of(cookie)) if len(cookie) <= _LONGEST_COOKIE else None
    return None if claimed is None else claimed.account


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
