"""What a process that serves the dashboard itself must know first: whether it may."""

from collections.abc import Mapping
from typing import NamedTuple

from lowkiq_lambda.dashboard.security.auth import Auth, generated
from lowkiq_lambda.dashboard.security.origin import is_loopback
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.errors import ConfigError


class Entry(NamedTuple):
    """Who may come in, and which proxies may name them; `password` was made up for this run, for whoever started it."""

    auth: Auth
    password: str | None
    proxies: list[str]


def entry_for(host: str, environ: Mapping[str, str]) -> Entry:
    """The auth of a dashboard that listens on `host`.

    Where the environment names nobody, a machine of one's own gets a password of its own, for callers from it alone;
    anything else is a ConfigError.
    """
    settings = DashboardSettings.from_env(environ)
    if settings.names_anybody():
        return Entry(settings.auth(), None, settings.trusted_proxies())
    if is_loopback(host):
        return Entry(*generated(), settings.trusted_proxies())
    raise ConfigError(
        f"The dashboard would listen on {host}, where others can reach it, and has no authentication: set "
        "LOWKIQ_DASHBOARD_PASSWORD, or listen on 127.0.0.1.",
        setting="dashboard_password",
    )
