"""The settings that only the functions have: a frozen value, checked when it is made, read from the environment.

What an app has in any process (`LOWKIQ_REDIS_URL`, `LOWKIQ_LEASE_TTL` …) stands in `lowkiq_lambda.config`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from msgspec import Meta

from lowkiq_lambda.config import EnvSettings
from lowkiq_lambda.errors import ConfigError

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
Name = Annotated[str, Meta(min_length=1, max_length=2_048)]


class Settings(EnvSettings, frozen=True, kw_only=True):
    """The settings of a function."""

    app: Name | None = None
    """`module:app`, with the workers."""

    redis_secret_arn: Name | None = None
    """The secret whose text is the URL of Redis, in place of `LOWKIQ_REDIS_URL`."""
    redis_iam_user: Name | None = None
    """The user to sign in as with tokens of IAM instead of a password."""
    redis_iam_cache: Name | None = None
    """The name of the cache or cluster that the tokens are for."""
    redis_iam_service: Literal["elasticache", "memorydb"] = "elasticache"
    redis_iam_serverless: bool = False
    """Whether the cache is an ElastiCache Serverless one."""

    log_level: LogLevel = "INFO"
    metrics_namespace: Annotated[str, Meta(pattern=r"^[0-9A-Za-z.\-_/#:]{1,255}$")] = "lowkiq"

    reserve: Annotated[float, Meta(ge=0, le=600)] = 3.0
    """Seconds of an invocation that are kept back, for what its end takes."""
    stay: Annotated[float, Meta(ge=0, le=60)] = 2.0
    """Seconds, at most, that a drain waits for what becomes due within them."""
    linger: bool = False
    """Whether a drain listens for pushes until its time is over."""

    drain_function: Name | None = None
    """Name or ARN of the drain function, for the functions that start drains."""
    fan_out: bool = False
    """Whether the dispatcher starts a drain for each free shard with work."""
    punctual: bool = False
    """Whether the dispatcher stays for planned times of schedule entries that come before its time is over."""
    continuations: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """How many drains, at most, may start one another in a row; 0: none does."""

    dashboard_secret_arn: Name | None = None
    """The secret whose text is the password of those who may act, in place of `LOWKIQ_DASHBOARD_PASSWORD`."""

    def __post_init__(self) -> None:
        """Check each setting, then those that depend on one another."""
        super().__post_init__()
        if (self.redis_iam_user is None) != (self.redis_iam_cache is None):
            given, missing = ("user", "cache") if self.redis_iam_user else ("cache", "user")
            raise ConfigError(
                f"LOWKIQ_REDIS_IAM_{given.upper()} is given without LOWKIQ_REDIS_IAM_{missing.upper()}: "
                "a token is for a user and a cache.",
                setting=f"redis_iam_{missing}",
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **overrides: Any) -> Self:  # noqa: ANN401 - any setting
        """The settings of `LOWKIQ_…` variables; a log level may be in small letters.

        >>> Settings.from_env({"LOWKIQ_RESERVE": "5"}).reserve
        5.0
        """
        level = environ.get("LOWKIQ_LOG_LEVEL", "").upper()
        return super().from_env({**environ, "LOWKIQ_LOG_LEVEL": level}, **overrides)
