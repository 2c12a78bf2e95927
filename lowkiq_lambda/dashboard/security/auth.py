"""Who may come in: accounts with passwords, tokens for programs, callers that somebody else has checked."""

import hashlib
import hmac
import math
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.dashboard.security import passwords
from lowkiq_lambda.dashboard.security.claims import TrustedClaims
from lowkiq_lambda.dashboard.security.cookies import Cookie, name_of
from lowkiq_lambda.dashboard.security.sessions import SignedIn, account_of, as_cookie, new_session, session_of
from lowkiq_lambda.errors import ConfigError

Role: TypeAlias = Literal["operator", "reader"]
Scope: TypeAlias = Mapping[str, Any]

SESSION_LIFETIME: Final = 3_600.0
"""Seconds without a look at a page, after which one has to sign in again."""
LONGEST_SESSION: Final = 12 * 3_600.0
"""Seconds after which one has to, however much one looks; a lifetime that is longer counts alone."""
_SHORTEST_TOKEN: Final = 16
_BEARER: Final = "bearer"
_HASHED: Final = "sha256:"


class Account(msgspec.Struct, frozen=True):
    """Somebody who signs in by a password, plain or as the line that `hashed` makes of it."""

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
    """Somebody who was let in. `signed_in` where a browser's cookie says so; then forms need its token."""

    name: str
    role: Role
    signed_in: SignedIn | None = field(default=None, repr=False)

    @property
    def may_act(self) -> bool:
        """Whether they may change anything."""
        return self.role == "operator"

    def form_token(self) -> str:
        """What a form must give back; empty where none is asked for."""
        return self.signed_in.form_token() if self.signed_in else ""


class Auth:
    """Who may come in, and by what. Raises ConfigError where that is nobody.

    `trust` is asked last, with the ASGI scope, and returns a `Visitor` or None: for an app that knows its users
    already. `session_lifetime`: seconds without a look at a page, after which one has to sign in again.
    `loopback_only`: callers from another machine are refused, whatever they know.
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
    ) -> None:
        if not (accounts or tokens or claims or trust):
            raise ConfigError(
                "The dashboard has no authentication, so it serves nobody: set LOWKIQ_DASHBOARD_PASSWORD, "
                "or give it an auth."
            )
        self.accounts: Mapping[str, Account] = {account.name: account for account in accounts}
        self.session_lifetime = session_lifetime
        self.loopback_only = loopback_only
        self._tokens = [(_token_digest(token), token) for token in tokens]
        self._claims = claims
        self._trust = trust
        self._keys: dict[str, bytes] = {}
        self._lock = threading.Lock()
        _check([*accounts], [*tokens], session_lifetime)

    def visitor(self, scope: Scope, cookies: Sequence[Cookie], authorization: str | None, now: float) -> Visitor | None:
        """Who sends the request; None where nobody knows."""
        if authorization is not None and (visitor := self._by_token(authorization)):
            return visitor
        for account, signed_in in self._sessions(scope, cookies, now):
            return Visitor(account.name, account.role, signed_in)
        if self._claims is not None and (found := self._claims.role_and_name(scope.get("aws.event"))):
            role, name = found
            return Visitor(name, role)
        return self._trust(scope) if self._trust else None

    def came_before_as(self, scope: Scope, cookies: Sequence[Cookie]) -> str | None:
        """The account that the browser has signed in to before, though the session may have ended; None for others."""
        return next((account.name for account, _ in self._sessions(scope, cookies, -math.inf)), None)

    def sign_in(self, scope: Scope, password: str, now: float) -> tuple[str, Cookie] | None:
        """The account whose password it is, and a cookie of a session; None where nobody has it."""
        # All are compared, so that the time it takes tells nothing.
        found = [one for one in self.accounts.values() if passwords.matches(password, one.password)]
        if not found:
            return None
        account = found[0].name
        key = self._key(account)
        session = new_session(account, now, now + self.session_lifetime)
        return account, Cookie(name_of(key, scope), as_cookie(session, key))

    def renewed(self, visitor: Visitor, now: float) -> Cookie | None:
        """A cookie that lasts longer than the visitor's; None where theirs does, or can be no longer."""
        if visitor.signed_in is None:
            return None
        session = visitor.signed_in.session
        last = session.began_at + max(LONGEST_SESSION, self.session_lifetime)
        ends_at = min(now + self.session_lifetime, last)
        # Not with each of the many answers to a page that refreshes itself.
        if ends_at - session.ends_at < self.session_lifetime / 10:
            return None
        value = as_cookie(msgspec.structs.replace(session, ends_at=ends_at), visitor.signed_in.key)
        return Cookie(visitor.signed_in.cookie, value)

    def _by_token(self, authorization: str) -> Visitor | None:
        scheme, _, secret = authorization.partition(" ")
        given = hashlib.sha256(secret.strip().encode(errors="surrogatepass")).digest()
        found = [token for digest, token in self._tokens if hmac.compare_digest(digest, given)]
        return Visitor(found[0].name, found[0].role) if found and scheme.lower() == _BEARER else None

    def _sessions(self, scope: Scope, cookies: Sequence[Cookie], now: float) -> Iterator[tuple[Account, SignedIn]]:
        """The sessions that the cookies keep."""
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


def generated() -> tuple[Auth, str]:
    """For a machine of one's own, where no password is set: an auth for callers from it, and the one password."""
    password = secrets.token_urlsafe(12)
    return Auth([Account("operator", password, "operator")], loopback_only=True), password


def _check(accounts: Sequence[Account], tokens: Sequence[Token], session_lifetime: float) -> None:
    for account in accounts:
        passwords.check(account.password, f"The password of {account.name!r}")
    names = [*(account.name for account in accounts), *(token.name for token in tokens)]
    if len({*names}) < len(names):
        raise ConfigError(f"Two accounts or tokens of the dashboard have one name: {', '.join(sorted(names))}.")
    if not (session_lifetime > 0 and math.isfinite(session_lifetime)):
        raise ConfigError(f"session_lifetime={session_lifetime!r} is refused: expected seconds above 0.")


def _token_digest(token: Token) -> bytes:
    if token.secret.startswith(_HASHED):
        try:
            digest = bytes.fromhex(token.secret.removeprefix(_HASHED))
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise ConfigError(f"The secret of token {token.name!r} is no SHA-256 digest in hexadecimal.")
        return digest
    if len(token.secret) < _SHORTEST_TOKEN:
        raise ConfigError(f"The secret of token {token.name!r} has less than {_SHORTEST_TOKEN} characters.")
    return hashlib.sha256(token.secret.encode()).digest()
