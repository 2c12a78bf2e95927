"""Authentication: accounts with passwords, tokens for programs, and callers that a gateway or the app has checked."""

import hashlib
import hmac
import math
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.dashboard.security import passwords
from lowkiq_lambda.dashboard.security.claims import TrustedClaims
from lowkiq_lambda.dashboard.security.sessions import (
    LONGEST_NAME,
    Cookie,
    Session,
    SignedIn,
    account_of,
    as_cookie,
    name_of,
    new_session,
    session_of,
)

Role: TypeAlias = Literal["operator", "reader"]
Scope: TypeAlias = Mapping[str, Any]

SESSION_LIFETIME: Final = 3_600.0
"""Seconds without a request for a page, after which a session ends."""
LONGEST_SESSION: Final = 12 * 3_600.0
"""The longest session in seconds; a configured lifetime that is longer wins."""
_SHORTEST_TOKEN: Final = 16
_BEARER: Final = "bearer"
_HASHED: Final = "sha256:"


class Account(msgspec.Struct, frozen=True):
    """A person who signs in by password. The password is plain, or the result of `hashed`."""

    name: str
    password: str
    role: Role = "reader"

    def __repr__(self) -> str:
        """Without the password."""
        return f"Account({self.name!r}, role={self.role!r})"


class Token(msgspec.Struct, frozen=True):
    """A program that sends `Authorization: Bearer SECRET`; the secret may be given as `sha256:` and its digest."""

    name: str
    secret: str
    role: Role = "reader"

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Token({self.name!r}, role={self.role!r})"


@dataclass(frozen=True, slots=True)
class Visitor:
    """An authenticated caller. `signed_in`: the session of a browser, whose forms need its token."""

    name: str
    role: Role
    signed_in: SignedIn | None = field(default=None, repr=False)
    may_edit: bool = False
    """Whether they may edit payloads, which operators may not by default."""

    @property
    def may_act(self) -> bool:
        """Whether they may change anything."""
        return self.role == "operator"

    def form_token(self) -> str:
        """The token for a form; empty without a session."""
        return self.signed_in.form_token() if self.signed_in else ""


class Auth:
    """The authentication of a dashboard. Raises ConfigError without any.

    `trust` is called last, with the ASGI scope, and returns a `Visitor` or None: for an app that authenticates
    its users itself. `session_lifetime`: seconds without a request for a page, after which a session ends.
    `loopback_only`: callers from other machines are rejected, even with a password. `editors`: the names of operators
    who may edit payloads, of accounts, tokens or callers.
    """

    def __init__(  # noqa: PLR0913 - all but the first by keyword
        self,
        accounts: Sequence[Account] = (),
        *,
        tokens: Sequence[Token] = (),
        claims: TrustedClaims | None = None,
        trust: Callable[[Scope], Visitor | None] | None = None,
        session_lifetime: float = SESSION_LIFETIME,
        loopback_only: bool = False,
        editors: Iterable[str] = (),
    ) -> None:
        if not (accounts or tokens or claims or trust):
            raise ConfigError("The dashboard has no authentication: set LOWKIQ_DASHBOARD_ACCOUNTS, or pass an auth.")
        self.accounts: Mapping[str, Account] = {account.name: account for account in accounts}
        self.session_lifetime = session_lifetime
        self.loopback_only = loopback_only
        self._tokens = [(_token_digest(token), token) for token in tokens]
        self._claims = claims
        self._trust = trust
        self._editors = frozenset(editors)
        self._keys: dict[str, bytes] = {}
        self._lock = threading.Lock()
        _check([*accounts], [*tokens], session_lifetime)

    def visitor(self, scope: Scope, cookies: Sequence[Cookie], authorization: str | None, now: float) -> Visitor | None:
        """The authenticated caller; None for strangers."""
        visitor = self._visitor(scope, cookies, authorization, now)
        if visitor is None or not visitor.may_act or visitor.name not in self._editors:
            return visitor
        return replace(visitor, may_edit=True)

    def _visitor(
        self, scope: Scope, cookies: Sequence[Cookie], authorization: str | None, now: float
    ) -> Visitor | None:
        if authorization is not None and (visitor := self._by_token(authorization)):
            return visitor
        for account, signed_in in self._sessions(scope, cookies, now):
            return Visitor(account.name, account.role, signed_in)
        if self._claims is not None and (identity := self._claims.role_and_name(scope.get("aws.event"))):
            role, name = identity
            return Visitor(name, role)
        return self._trust(scope) if self._trust else None

    def is_guess(self, visitor: Visitor | None) -> bool:
        """Whether a bearer token that came with a request of this visitor was a wrong one.

        A cookie lets its browser in beside any token, so a reader could otherwise try tokens of operators for ever.
        """
        return visitor is None or (visitor.signed_in is not None and bool(self._tokens))

    def known_session(self, scope: Scope, cookies: Sequence[Cookie]) -> Session | None:
        """The session of the browser's cookie, even if it has ended; None for other browsers."""
        return next((signed_in.session for _, signed_in in self._sessions(scope, cookies, -math.inf)), None)

    def sign_in(self, scope: Scope, password: str, now: float) -> tuple[Session, Cookie] | None:
        """A new session of the account with this password, and its cookie; None for a wrong password.

        Raises ConfigError if several accounts have it.
        """
        # All passwords are compared, so that the time reveals nothing.
        matching = [account for account in self.accounts.values() if passwords.matches(password, account.password)]
        if not matching:
            return None
        if len(matching) > 1:
            raise _same_password(*matching[:2])
        account = matching[0].name
        key = self._key(account)
        session = new_session(account, now, now + self.session_lifetime)
        return session, Cookie(name_of(key, scope), as_cookie(session, key))

    def renewed(self, visitor: Visitor, now: float) -> Cookie | None:
        """A renewed cookie; None if the session cannot be longer, or is long enough."""
        if visitor.signed_in is None:
            return None
        session = visitor.signed_in.session
        ends_at = min(now + self.session_lifetime, self.last_end(session))
        # Pages refresh often; not each response needs a new cookie.
        if ends_at - session.ends_at < self.session_lifetime / 10:
            return None
        value = as_cookie(msgspec.structs.replace(session, ends_at=ends_at), visitor.signed_in.key)
        return Cookie(visitor.signed_in.cookie, value)

    def last_end(self, session: Session) -> float:
        """When the session ends however often it is renewed, in Unix seconds."""
        return session.began_at + max(LONGEST_SESSION, self.session_lifetime)

    def _by_token(self, authorization: str) -> Visitor | None:
        scheme, _, secret = authorization.partition(" ")
        digest_of_secret = hashlib.sha256(secret.strip().encode(errors="surrogatepass")).digest()
        matching = [token for digest, token in self._tokens if hmac.compare_digest(digest, digest_of_secret)]
        return Visitor(matching[0].name, matching[0].role) if matching and scheme.lower() == _BEARER else None

    def _sessions(self, scope: Scope, cookies: Sequence[Cookie], now: float) -> Iterator[tuple[Account, SignedIn]]:
        """The valid sessions of the cookies."""
        for cookie in cookies:
            account = self.accounts.get(account_of(cookie.value) or "")
            if account is None:
                continue
            key = self._key(account.name)
            session = session_of(cookie.value, key, now) if cookie.name == name_of(key, scope) else None
            if session is not None:
                yield account, SignedIn(session, key, cookie.name)

    def _key(self, account: str) -> bytes:
        with self._lock:
            if account not in self._keys:
                self._keys[account] = passwords.signing_key(self.accounts[account].password)
            return self._keys[account]


def generated(password: str = "") -> tuple[Auth, str]:
    """An auth for local callers with this password, or else a generated one, and the password."""
    password = password or secrets.token_urlsafe(12)
    return Auth([Account("operator", password, "operator")], loopback_only=True), password


def _check(accounts: Sequence[Account], tokens: Sequence[Token], session_lifetime: float) -> None:
    for account in accounts:
        passwords.check(account.password, f"The password of {account.name!r}")
        if len(account.name) > LONGEST_NAME:
            raise ConfigError(f"The account's name {account.name[:20]!r}… has more than {LONGEST_NAME} characters.")
    names = [*(account.name for account in accounts), *(token.name for token in tokens)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"Two accounts or tokens of the dashboard have the same name: {', '.join(sorted(twice))}.")
    for one, other in combinations(accounts, 2):
        if passwords.are_same(one.password, other.password):
            raise _same_password(one, other)
    for token, same in combinations(tokens, 2):
        if _token_digest(token) == _token_digest(same):
            raise ConfigError(
                f"The tokens {token.name!r} and {same.name!r} of the dashboard have the same secret: a secret alone "
                "says which program calls, so each token needs its own."
            )
    if not (session_lifetime > 0 and math.isfinite(session_lifetime)):
        raise ConfigError(f"session_lifetime={session_lifetime!r} is refused: expected seconds above 0.")


def _same_password(one: Account, other: Account) -> ConfigError:
    return ConfigError(
        f"The accounts {one.name!r} and {other.name!r} of the dashboard have the same password: a password alone says "
        "who signs in, so each account needs its own."
    )


def _token_digest(token: Token) -> bytes:
    if token.secret.startswith(_HASHED):
        try:
            digest = bytes.fromhex(token.secret.removeprefix(_HASHED))
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise ConfigError(f"The secret of token {token.name!r} is not a SHA-256 digest in hexadecimal.")
        return digest
    if len(token.secret) < _SHORTEST_TOKEN:
        raise ConfigError(f"The secret of token {token.name!r} has fewer than {_SHORTEST_TOKEN} characters.")
    return hashlib.sha256(token.secret.encode()).digest()
