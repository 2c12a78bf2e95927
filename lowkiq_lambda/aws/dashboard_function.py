"""The dashboard's function: requests of API Gateway (or a function URL) in, pages out. It drains nothing."""

import asyncio
import logging
import os
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from mangum import Mangum

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.environment import DASHBOARD, environment
from lowkiq_lambda.aws.logs import Context, logged
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.dashboard.security import passwords
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.declare.misspelling import unknown_variables
from lowkiq_lambda.providers.aws.secrets import secret_text
from lowkiq_lambda.settings.aws import Settings

if TYPE_CHECKING:
    from mangum.types import ASGI

logger = logging.getLogger(__name__)

KEPT: Final = 300
"""Seconds after which a secret is read again: how long an old password goes on working."""


class Entrance:
    """Takes events to the dashboard of the app that `load` gives, for those whom `environ` lets in.

    `read` is asked for the secret's text at each request; with another password in it everybody has to sign in anew.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        load: Callable[[], Lowkiq],
        read_secret: Callable[[str], str],
    ) -> None:
        self._settings = DashboardSettings.from_env(environ)
        self._secret = Settings.from_env(environ).dashboard_secret_arn
        self._load = load
        self._read = read_secret
        self._password: str | None = None
        self._served: Mangum | None = None

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - not looked at
        """One request, in any shape that carries HTTP."""
        try:
            served = self._current()
        except LowkiqError:
            # More is told only to those who have signed in.
            logger.exception("the dashboard is shut")
            return _SHUT
        answer: dict[str, Any] = served(event, context)
        return answer

    def _current(self) -> Mangum:
        if self._secret is not None and (password := self._read(self._secret)) != self._password:
            self._password, self._served = password, None
        if self._served is None:
            settings = self._settings
            if self._password is not None:
                name = "The text of the secret of LOWKIQ_DASHBOARD_SECRET_ARN"
                passwords.check(self._password, name, "dashboard_secret_arn")
                settings = msgspec.structs.replace(settings, dashboard_password=self._password)
            pages = dashboard(self._load, auth=settings.auth(), base_path=settings.dashboard_base_path)
            _ensure_loop()
            # No lifespan: it would run its start and its end around every request.
            self._served = Mangum(cast("ASGI", pages), lifespan="off")
        return self._served


@logged
def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """One request. Raises ConfigError where a setting cannot work."""
    return _entrance()(event, context)


_SHUT: Final[dict[str, Any]] = {
    "statusCode": 503,
    "headers": {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"},
    "body": "The dashboard is shut: it has no account (LOWKIQ_DASHBOARD_ACCOUNTS, LOWKIQ_DASHBOARD_SECRET_ARN), "
    "a weak password, or cannot read it. The function's log says why.\n",
    "isBase64Encoded": False,
}


@cache
def _ensure_loop() -> None:
    # Mangum takes the thread's own, which Python makes under protest from 3.12 on, and not at all from 3.14.
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            asyncio.get_event_loop()
        except (DeprecationWarning, RuntimeError):
            asyncio.set_event_loop(asyncio.new_event_loop())


@cache
def _entrance() -> Entrance:
    names = [name for name in os.environ if name.startswith(DASHBOARD)]
    for sentence in unknown_variables(names, Settings, DashboardSettings):
        logger.warning(sentence)
    return Entrance(
        os.environ, lambda: environment().app, lambda arn: secret_text(arn, "dashboard_secret_arn", max_age=KEPT)
    )
