"""The settings that only the functions have: a frozen value, checked when it is made, read from the environment.

What an app has in any process (`LOWKIQ_REDIS_URL`, `LOWKIQ_LEASE_TTL` …) stands in `lowkiq_lambda.config`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from lowkiq_lambda.config import checked_setting, read_settings
from lowkiq_lambda.errors import ConfigError

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
Name = Annotated[str, Meta(min_length=1, max_length=2_048)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment of a function says. A `ConfigError` names what cannot work."""

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
    continuations: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """How many drains, at most, may start one another in a row; 0: none does."""

    dashboard_secret_arn: Name | None = None
    """The secret whose text is the password of those who may act, in place of `LOWKIQ_DASHBOARD_PASSWORD`."""

    def __post_init__(self) -> None:
        """Check each setting, then those that depend on one another."""
        for name, kind in _kinds().items():
            msgspec.structs.force_setattr(self, name, checked_setting(name, getattr(self, name), kind))
        if (self.redis_iam_user is None) != (self.redis_iam_cache is None):
            given, missing = ("user", "cache") if self.redis_iam_user else ("cache", "user")
            raise ConfigError(
                f"LOWKIQ_REDIS_IAM_{given.upper()} is given without LOWKIQ_REDIS_IAM_{missing.upper()}: "
                "a token is for a user and a cache.",
                setting=f"redis_iam_{missing}",
            )

    def __repr__(self) -> str:
        """The settings that differ from their defaults; without the password."""
        fields = [field for field in msgspec.structs.fields(self) if getattr(self, field.name) != field.default]
        shown = {one.name: "***" if "password" in one.name else getattr(self, one.name) for one in fields}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Settings":
        """The settings of `LOWKIQ_…` variables; an empty variable is unset. Raises ConfigError.

        >>> Settings.from_env({"LOWKIQ_RESERVE": "5"}).reserve
        5.0
        """
        level = environ.get("LOWKIQ_LOG_LEVEL", "").upper()
        return cls(**read_settings(_kinds(), {**environ, "LOWKIQ_LOG_LEVEL": level}))


def _kinds() -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(Settings)}
