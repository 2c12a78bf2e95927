"""The dashboard's function: requests of API Gateway (or a function URL) in, pages out. It drains nothing.

Nobody is shown anything before signing in, not even why nothing can be shown.
"""

import asyncio
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from mangum import Mangum

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.environment import environment
from lowkiq_lambda.aws.secrets import secret_text
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.aws.sign_in import Credentials, guarded
from lowkiq_lambda.aws.stats_page import stats_pages
from lowkiq_lambda.aws.web import as_asgi

KEPT: Final = 300.0
"""Seconds after which a secret is read again: how long an old password goes on working."""


class Password:
    """The credentials that the settings name; a secret is read when somebody comes, and kept for a while."""

    def __init__(self, settings: Settings, read: Callable[[str], str], now: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._read = read
        # The wall clock, as the monotonic one stands still while an environment is frozen.
        self._now = now
        self._found: str | None = None
        self._read_at = 0.0

    def __call__(self) -> Credentials | None:
        """None where no password is set. Raises LowkiqError where the secret cannot be read."""
        settings = self._settings
        password = settings.dashboard_password
        if settings.dashboard_secret_arn is not None:
            if self._found is None or not 0 <= self._now() - self._read_at < KEPT:
                self._found, self._read_at = self._read(settings.dashboard_secret_arn), self._now()
            password = self._found
        return Credentials(settings.dashboard_user, password) if password else None


def adapter(load: Callable[[], Lowkiq], credentials: Callable[[], Credentials | None]) -> Mangum:
    """Takes events to the pages of the app that `load` gives, for those who sign in."""
    _make_loop()
    # No lifespan: it would run its start and its end around every request.
    return Mangum(as_asgi(guarded(stats_pages(load), credentials)), lifespan="off")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - it is not looked at
    """One request, in any shape that carries HTTP. Raises ConfigError."""
    return _adapter()(event, context)


@cache
def _make_loop() -> None:
    # Mangum takes the thread's own, which Python makes under protest from 3.12 on, and not at all from 3.14.
    asyncio.set_event_loop(asyncio.new_event_loop())


@cache
def _adapter() -> Mangum:
    password = Password(Settings.from_env(os.environ), lambda arn: secret_text(arn, "dashboard_secret_arn"))
    return adapter(lambda: environment().app, password)
