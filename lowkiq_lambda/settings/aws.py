"""The settings that only the functions have: a frozen value, checked when it is made, read from the environment.

The settings of an app in any process (`LOWKIQ_REDIS_URL`, `LOWKIQ_LEASE_TTL` …) are in `lowkiq_lambda.settings.config`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Meta

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.config import EnvSettings

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
Name = Annotated[str, Meta(min_length=1, max_length=2_048)]
Names = Annotated[str, Meta(pattern=r"^[^,]+(,[^,]+)*$")]
"""Names with commas between them."""

Idle = Literal["end", "stay", "linger", "start", "punctual"]
STAY: Final = 2.0
"""Seconds, at most, that a drain waits for what becomes due within them, unless it ends at once."""

STACK_VERSION: Final = 1
"""Of template.yaml: a change that the functions rely on, and an older template does not have, raises it in both."""


class Settings(EnvSettings, frozen=True, kw_only=True):
    """The settings of a function."""

    app: Name | None = None
    """`module:app`, with the workers; the daemon and the command line read it, too."""

    redis_secret_arn: Name | None = None
    """The secret whose text is the URL of Redis, in place of `LOWKIQ_REDIS_URL`."""
    redis_iam_user: Name | None = None
    """The user to sign in as with tokens of IAM instead of a password."""
    redis_iam_cache: Name | None = None
    """The name of the cache or cluster that the tokens are for."""
    redis_iam_service: Literal["elasticache", "memorydb"] = "elasticache"
    """Whose the cache is."""
    redis_iam_serverless: bool = False
    """Whether the cache is an ElastiCache Serverless one."""

    stack_version: Annotated[int, Meta(ge=0)] | None = None
    """The version that the template is of; None for one of your own, whose fit is yours to know."""
    log_level: LogLevel = "INFO"
    """From which level on the function and the library log."""
    metrics: Literal["none", "summary", "queues"] = "summary"
    """What is published as metrics in CloudWatch: two of the app, or those of each queue and of each settling, too."""
    metrics_namespace: Annotated[str, Meta(pattern=r"^[0-9A-Za-z.\-_/#:]{1,255}$")] = "lowkiq"
    """The namespace of the metrics in CloudWatch."""

    dual_stack: bool = False
    """Whether AWS's APIs are called at those of their endpoints that have IPv6 as well."""

    queues: Names | None = None
    """The queues that this function drains, after commas, unless an event names another; None is all."""
    other_queues: Names | None = None
    """Queues that functions of their own drain: this one leaves them out, unless an event names them."""
    reserve: Annotated[float, Meta(ge=0, le=600)] = 3.0
    """Seconds of an invocation that are kept back, for what its end takes."""
    idle: Idle = "stay"
    """What an invocation does that finds nothing due, and about due work that it cannot do: docs/waking.md."""

    drain_function: Name | None = None
    """Name or ARN of the function that drains are started of; by default the function's own."""
    scheduled_shards: Annotated[str, Meta(pattern=r"^[0-9]+(,[0-9]+)*$")] | None = None
    """The shard indexes that have a schedule each, after commas; None if no shard has its own schedule."""

    inbox_arn: Name | None = None
    """The queue of the stack's inbox, whose messages may name any queue of the app."""

    dashboard_secret_arn: Name | None = None
    """The secret whose text is the password of those who may act, in place of `LOWKIQ_DASHBOARD_PASSWORD`."""

    def __post_init__(self) -> None:
        """Check each setting, then those that depend on one another."""
        super().__post_init__()
        if self.stack_version is not None and self.stack_version < STACK_VERSION:
            raise ConfigError(
                f"The template is of stack version {self.stack_version}, and this lowkiq_lambda needs {STACK_VERSION}: "
                "run `lowkiq upgrade` in the project's folder, and deploy again.",
                setting="stack_version",
            )
        if (self.redis_iam_user is None) != (self.redis_iam_cache is None):
            present, missing = ("user", "cache") if self.redis_iam_user else ("cache", "user")
            raise ConfigError(
                f"LOWKIQ_REDIS_IAM_{present.upper()} is given without LOWKIQ_REDIS_IAM_{missing.upper()}: "
                "a token is for a user and a cache.",
                setting=f"redis_iam_{missing}",
            )
        if self.queues and self.other_queues:
            raise ConfigError(
                "LOWKIQ_QUEUES and LOWKIQ_OTHER_QUEUES are given together: one says what the function drains, the "
                "other what it leaves out.",
                setting="other_queues",
            )

    @property
    def stay(self) -> float:
        """For how many seconds, at most, a drain waits for what becomes due within them."""
        return 0.0 if self.idle == "end" else STAY

    @property
    def lingers(self) -> bool:
        """Whether a drain listens for pushes until its time is over."""
        return self.idle == "linger"

    @property
    def starts_drains(self) -> bool:
        """Whether housekeeping runs and drains start drains for due work that they have no time or no place for."""
        return self.idle in {"start", "punctual"}

    @property
    def is_punctual(self) -> bool:
        """Whether a housekeeping run alone stays for planned times of schedule entries that come within its minute."""
        return self.idle in {"linger", "punctual"}

    @property
    def named_queues(self) -> frozenset[str]:
        """The names in `queues`."""
        return _listed(self.queues or "")

    @property
    def shards_with_schedules(self) -> frozenset[int]:
        """The indexes in `scheduled_shards`."""
        return frozenset(map(int, _listed(self.scheduled_shards or "")))

    def drains(self, queue_name: str) -> bool:
        """Whether an event that names no queue is for this one, too."""
        if self.queues:
            return queue_name in self.named_queues
        return queue_name not in _listed(self.other_queues or "")

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **overrides: Any) -> Self:  # noqa: ANN401 - any setting
        """The settings of `LOWKIQ_…` variables; a log level may be in small letters.

        >>> Settings.from_env({"LOWKIQ_RESERVE": "5"}).reserve
        5.0
        """
        level = environ.get("LOWKIQ_LOG_LEVEL", "").upper()
        return super().from_env({**environ, "LOWKIQ_LOG_LEVEL": level}, **overrides)


@cache
def _listed(names: str) -> frozenset[str]:
    return frozenset(name.strip() for name in names.split(",") if name.strip())
