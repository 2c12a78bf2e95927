"""The dashboard's settings in the environment, and the auth made from them."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.dashboard.security import passwords
from lowkiq_lambda.dashboard.security.auth import SESSION_LIFETIME, Account, Auth, Role, Token, generated
from lowkiq_lambda.dashboard.security.caller import is_loopback
from lowkiq_lambda.dashboard.security.claims import TrustedClaims
from lowkiq_lambda.settings.config import EnvSettings, variable_of

_ROLES: Final[Mapping[str, Role]] = {"operator": "operator", "reader": "reader", "editor": "operator"}
"""The word for an account or a token, and its role: an editor is an operator who may edit payloads."""


class DashboardSettings(EnvSettings, frozen=True, kw_only=True):
    """The variables `LOWKIQ_DASHBOARD_…`. Passwords are plain, or results of `hashed`."""

    dashboard_accounts: str | None = None
    """A password for each person: `name:role:password`, separated by commas; activity names who did what."""
    dashboard_password: str | None = None
    """The password that all operators share, so that activity names nobody."""
    dashboard_reader_password: str | None = None
    """The password that all readers share."""
    dashboard_tokens: str | None = None
    """Tokens of programs: `name:role:secret` of a reader, operator or editor, separated by commas."""
    dashboard_claims: Literal["jwt", "iam"] | None = None
    """The kind of API Gateway's authorizer whose claims are trusted; `…_operators` and `…_readers` have the rules."""
    dashboard_operators: str | None = None
    """Rules `claim=value`, or `a=b&c=d` where both must hold, separated by commas, on the claims of operators."""
    dashboard_readers: str | None = None
    """The same on those of readers."""
    dashboard_session_lifetime: Annotated[float, Meta(ge=60, le=30 * 86_400)] = SESSION_LIFETIME
    """Seconds without a request for a page, after which a session ends."""
    dashboard_trusted_proxies: str = ""
    """The proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` the daemon's port trusts: addresses and networks,
    separated by commas."""
    dashboard_lag_limit: Annotated[float, Meta(gt=0)] = 300.0
    """Seconds of lag from which pages show a lag in red."""
    dashboard_base_path: str = ""
    """The path in front of the dashboard's paths, if the server does not strip it."""

    def __post_init__(self) -> None:
        """Checks each setting. Raises ConfigError."""
        super().__post_init__()
        for name in ("dashboard_password", "dashboard_reader_password"):
            if password := getattr(self, name):
                passwords.check(password, variable_of(name), name)
        if self.dashboard_password and self.dashboard_password == self.dashboard_reader_password:
            raise ConfigError(
                "LOWKIQ_DASHBOARD_PASSWORD and LOWKIQ_DASHBOARD_READER_PASSWORD are the same, so readers could change "
                "everything: choose another one for readers.",
                setting="dashboard_reader_password",
            )
        self.trusted_proxies()

    def auth(self) -> Auth:
        """The auth of these settings. Raises ConfigError if they have none."""
        people: tuple[tuple[str, str | None, Role], ...] = (
            ("operator", self.dashboard_password, "operator"),
            ("reader", self.dashboard_reader_password, "reader"),
        )
        return Auth(
            [*self._accounts(), *(Account(name, password, role) for name, password, role in people if password)],
            tokens=[*_tokens(self.dashboard_tokens or "")],
            claims=self._trusted_claims(),
            session_lifetime=self.dashboard_session_lifetime,
            editors=[*self._editors()],
        )

    def trusted_proxies(self) -> list[str]:
        """The networks of the trusted proxies. Raises ConfigError."""
        return [_network(text) for text in _listed(self.dashboard_trusted_proxies)]

    def has_auth(self) -> bool:
        """Whether the settings configure any authentication."""
        return bool(
            self.dashboard_accounts
            or self.dashboard_password
            or self.dashboard_reader_password
            or self.dashboard_tokens
            or self.dashboard_claims
        )

    def _accounts(self) -> Iterator[Account]:
        for name, word, password in _people(self.dashboard_accounts or "", "dashboard_accounts", "password"):
            if name in {"operator", "reader"}:
                raise ConfigError(
                    f"{variable_of('dashboard_accounts')} names an account {name!r}: that is the one of the shared "
                    "password. Give each person their own name.",
                    setting="dashboard_accounts",
                )
            yield Account(name, password, _ROLES[word])

    def _editors(self) -> Iterator[str]:
        for setting in ("dashboard_accounts", "dashboard_tokens"):
            yield from (
                name for name, word, _ in _people(getattr(self, setting) or "", setting, "") if word == "editor"
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
    # If every address is trusted, callers can claim any address.
    if network is None or not network.prefixlen:
        raise ConfigError(
            f"{variable_of('dashboard_trusted_proxies')} is refused at {text!r}: expected addresses or networks of "
            "proxies, for example 127.0.0.1 or 10.1.0.0/16, separated by commas.",
            setting="dashboard_trusted_proxies",
        )
    return str(network)


def _tokens(text: str) -> Iterator[Token]:
    for name, word, secret in _people(text, "dashboard_tokens", "secret"):
        yield Token(name, secret, _ROLES[word])


def _people(text: str, setting: str, secret: str) -> Iterator[tuple[str, str, str]]:
    """Name, word and secret of each; a secret may have colons. Raises ConfigError, which has no secret."""
    names: set[str] = set()
    for line in _listed(text):
        name, _, rest = line.partition(":")
        word, _, own = rest.partition(":")
        if word not in _ROLES or not (name and own):
            raise ConfigError(
                f"{variable_of(setting)} is refused: expected name:operator:{secret}, name:reader:{secret} or "
                f"name:editor:{secret}, separated by commas.",
                setting=setting,
            )
        if name in names and setting == "dashboard_accounts":
            raise ConfigError(f"{variable_of(setting)} has two accounts {name!r}.", setting=setting)
        names.add(name)
        yield name, word, own


class Entry(NamedTuple):
    """The auth and the trusted proxies. `password`: generated for this run; None if one is configured."""

    auth: Auth
    password: str | None
    proxies: list[str]


def entry_for(host: str, environ: Mapping[str, str]) -> Entry:
    """The auth of a dashboard that listens on `host`.

    If the environment configures no authentication, a loopback host gets a generated password, for local callers
    only. Any other host is a ConfigError.
    """
    settings = DashboardSettings.from_env(environ)
    if settings.has_auth():
        return Entry(settings.auth(), None, settings.trusted_proxies())
    if is_loopback(host):
        return Entry(*generated(), settings.trusted_proxies())
    raise ConfigError(
        f"The dashboard would listen on {host}, which other machines can reach, without authentication: set "
        "LOWKIQ_DASHBOARD_ACCOUNTS=name:operator:password, or listen on 127.0.0.1.",
        setting="dashboard_accounts",
    )
