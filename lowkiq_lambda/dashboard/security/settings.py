"""What the environment says of the dashboard, and the auth that comes of it."""

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Annotated, Literal

from msgspec import Meta

from lowkiq_lambda.config import EnvSettings, variable_of
from lowkiq_lambda.dashboard.security import passwords
from lowkiq_lambda.dashboard.security.auth import SESSION_LIFETIME, Account, Auth, Role, Token
from lowkiq_lambda.dashboard.security.claims import TrustedClaims
from lowkiq_lambda.errors import ConfigError


class DashboardSettings(EnvSettings, frozen=True, kw_only=True):
    """`LOWKIQ_DASHBOARD_…`: who may come in. Passwords are plain, or the lines that `hashed` makes of them."""

    dashboard_password: str | None = None
    """Of those who may act."""
    dashboard_reader_password: str | None = None
    """Of those who may look."""
    dashboard_tokens: str | None = None
    """Programs: `name:role:secret`, several after commas."""
    dashboard_claims: Literal["jwt", "iam"] | None = None
    """Believe API Gateway's authorizer of this kind; `…_operators` and `…_readers` say whom."""
    dashboard_operators: str | None = None
    """Rules `claim=value`, several after commas."""
    dashboard_readers: str | None = None
    dashboard_session_lifetime: Annotated[float, Meta(ge=60, le=30 * 86_400)] = SESSION_LIFETIME
    """Seconds without a look at a page, after which one has to sign in again."""
    dashboard_trusted_proxies: str = ""
    """Addresses and networks, several after commas: the proxies whose `X-Forwarded-For` tells the daemon's port from
    where a request comes, and whose `X-Forwarded-Proto` whether it came over TLS."""
    dashboard_base_path: str = ""
    """The path in front of all of the dashboard's, where nobody takes it off on the way."""

    def __post_init__(self) -> None:
        """Check each setting."""
        super().__post_init__()
        for name in ("dashboard_password", "dashboard_reader_password"):
            if password := getattr(self, name):
                passwords.check(password, variable_of(name), name)
        self.trusted_proxies()

    def auth(self) -> Auth:
        """Who may come in by these settings. Raises ConfigError where that is nobody."""
        people: tuple[tuple[str, str | None, Role], ...] = (
            ("operator", self.dashboard_password, "operator"),
            ("reader", self.dashboard_reader_password, "reader"),
        )
        return Auth(
            [Account(name, password, role) for name, password, role in people if password],
            tokens=[*_tokens(self.dashboard_tokens or "")],
            claims=self._trusted_claims(),
            session_lifetime=self.dashboard_session_lifetime,
        )

    def trusted_proxies(self) -> list[str]:
        """The networks of the proxies that may name a caller. Raises ConfigError."""
        return [_network(text) for text in _listed(self.dashboard_trusted_proxies)]

    def names_anybody(self) -> bool:
        """Whether there is an auth to be had."""
        return bool(
            self.dashboard_password or self.dashboard_reader_password or self.dashboard_tokens or self.dashboard_claims
        )

    def _trusted_claims(self) -> TrustedClaims | None:
        if self.dashboard_claims is None:
            return None
        operators, readers = _listed(self.dashboard_operators or ""), _listed(self.dashboard_readers or "")
        return TrustedClaims(source=self.dashboard_claims, operators=operators, readers=readers)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _network(text: str) -> str:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        network = None
    # With everybody trusted, callers could give any address as their own.
    if network is None or not network.prefixlen:
        raise ConfigError(
            f"{variable_of('dashboard_trusted_proxies')} is refused at {text!r}: expected the address or the network "
            "of a proxy, as in 127.0.0.1 or 10.1.0.0/16, several after commas.",
            setting="dashboard_trusted_proxies",
        )
    return str(network)


def _tokens(text: str) -> Iterator[Token]:
    for line in _listed(text):
        name, _, rest = line.partition(":")
        role, _, secret = rest.partition(":")
        if role == "operator" and name and secret:
            yield Token(name, secret, "operator")
        elif role == "reader" and name and secret:
            yield Token(name, secret, "reader")
        else:
            raise ConfigError(
                "LOWKIQ_DASHBOARD_TOKENS is refused: expected name:operator:secret or name:reader:secret, "
                "several after commas.",
                setting="dashboard_tokens",
            )
