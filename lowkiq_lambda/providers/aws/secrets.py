"""The values of secrets in AWS Secrets Manager: texts, and the URL of Redis, whose password may be rotated."""

import logging
import os
from collections.abc import Callable
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Final

import msgspec

from lowkiq_lambda.base.address import without_login
from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.errors import ConfigError

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.parameters import SecretsProvider

logger = logging.getLogger(__name__)

TIMEOUT: Final = 5.0
"""Seconds that connecting may take, and an answer: a function in a VPC without a way out would wait for minutes."""
REST: Final = 5.0
"""Seconds, at least, between two searches for a rotated password."""


def secret_text(arn: str, setting: str, *, max_age: int = 0) -> str:
    """The text of the secret, as it was at most `max_age` seconds ago; `setting` is what named it. Calls AWS.

    Raises ConfigError if it cannot be had.
    """
    from aws_lambda_powertools.utilities.parameters import GetParameterError  # noqa: PLC0415 - as in `provider`
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - as above

    try:
        text = provider(_region(arn)).get(arn, max_age=max_age, force_fetch=max_age <= 0)
    except (BotoCoreError, GetParameterError) as error:
        raise _refused(setting, f"the secret {arn} cannot be read: {error}") from error
    if not isinstance(text, str) or not text.strip():
        raise _refused(setting, f"the secret {arn} holds no text")
    return text.strip()


class _Login(msgspec.Struct):
    """A secret as the console and the managed rotation of ElastiCache users write it; other fields are left alone.

    `host`, `port`: of the server, as rotation functions note them; reached by TLS, as all with users are.
    """

    password: str
    username: str = ""
    host: str = ""
    port: int | str = 6379


class RedisSecret:
    """User and password that the secret holds, for `Config(credentials=...)`. Usable from any thread.

    It is the URL of the server, or JSON with `username` and `password`; the server is then that of the URL `server`,
    or `host` and `port` of the secret. Raises ConfigError if the secret cannot be read, or is neither.
    """

    def __init__(
        self, arn: str, read_secret: Callable[[], str] | None = None, clock: Clock | None = None, *, server: str = ""
    ) -> None:
        self._arn = arn
        self._server = server
        self._read = read_secret or partial(secret_text, arn, "redis_secret_arn")
        # The wall clock, as the monotonic one stands still while an environment is frozen.
        self._now = (clock or SystemClock()).time
        self._lock = Lock()
        self._searched_at = float("-inf")
        self.url, self.login = self._parsed(self._read())
        """The URL without user and password, and these; None if it has no password."""

    def __call__(self) -> tuple[str, str]:
        """As the secret said when it was read last."""
        return self.login or ("", "")

    def renew(self, refused: tuple[str, str]) -> bool:
        """Read the secret again, unless that was just done; whether it has another password than the refused one."""
        with self._lock:
            now = self._now()
            if refused == self.login and not 0 <= now - self._searched_at < REST:
                self._searched_at = now
                self._search()
            return refused != self.login

    def _parsed(self, text: str) -> tuple[str, tuple[str, str] | None]:
        if not text.startswith("{"):
            return without_login(text)
        try:
            login = msgspec.json.decode(text, type=_Login)
        except (msgspec.DecodeError, RecursionError):
            # Neither the text nor what is wrong with it: both may hold the password.
            why = f"the secret {self._arn} is JSON without the texts username and password"
            raise _refused("redis_secret_arn", why) from None
        server = self._server or (f"rediss://{login.host}:{login.port}" if login.host else "")
        if not server:
            why = f"the secret {self._arn} has a login and names no server: set LOWKIQ_REDIS_URL beside it"
            raise _refused("redis_secret_arn", why)
        url, of_url = without_login(server)
        if of_url:
            raise _refused("redis_secret_arn", "LOWKIQ_REDIS_URL has a password, too: leave it out there")
        return url, (login.username, login.password)

    def _search(self) -> None:
        try:
            url, login = self._parsed(self._read())
        except ConfigError as error:
            logger.warning("Redis refuses the password, and there is no newer one: %s", error)
            return
        if url != self.url:
            logger.error("the secret %s names another server now, which counts in new environments only", self._arn)
        elif login and login != self.login:
            self.login = login
            logger.info("Redis refused the password: the secret has a newer one", extra={"secret": self._arn})


@cache
def provider(region: str | None) -> "SecretsProvider":
    """Reads secrets of a region, and keeps them for as long as a reader asks for. Raises BotoCoreError."""
    # Only where a secret is named: slow to import.
    from aws_lambda_powertools.utilities.parameters import SecretsProvider  # noqa: PLC0415 - as said above
    from botocore.config import Config as BotoConfig  # noqa: PLC0415 - as said above

    return SecretsProvider(
        boto_config=BotoConfig(
            region_name=region,
            connect_timeout=TIMEOUT,
            read_timeout=TIMEOUT,
            retries={"total_max_attempts": 2},
        )
    )


def _region(arn: str) -> str | None:
    """The region that an ARN names; for a plain name AWS_REGION, or None, which leaves it to boto3."""
    parts = arn.split(":")
    return parts[3] if parts[0] == "arn" and parts[3:] else os.environ.get("AWS_REGION") or None


def _refused(setting: str, why: str) -> ConfigError:
    return ConfigError(f"LOWKIQ_{setting.upper()} does not help: {why}.", setting=setting)
