"""The authentication of a dashboard that a process serves itself."""

from collections.abc import Mapping
from typing import NamedTuple

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.dashboard.security.auth import Auth, generated
from lowkiq_lambda.dashboard.security.origin import is_loopback
from lowkiq_lambda.dashboard.security.settings import DashboardSettings


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
        "LOWKIQ_DASHBOARD_PASSWORD, or listen on 127.0.0.1.",
        setting="dashboard_password",
    )
