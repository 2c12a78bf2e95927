"""The settings that only the functions have: a frozen value, checked when it is made, read from the environment.

The settings of an app in any process (`LOWKIQ_REDIS_URL`, `LOWKIQ_LEASE_TTL` …) are in `lowkiq_lambda.settings.config`.
"""

from functools import cache
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.config import EnvSettings

Name = Annotated[str, Meta(min_length=1, max_length=2_048)]
Names = Annotated[str, Meta(pattern=r"^[^,]+(,[^,]+)*$")]
"""Names with commas between them."""
_LEFT_OUT: Final = "-"
"""What stands before the name of a queue that a function leaves to others."""

Idle = Literal["end", "stay", "linger", "start", "punctual"]
STAY: Final = 2.0
"""Seconds, at most, that a drain waits for what becomes due within them, unless it ends at once."""

STACK_VERSION: Final = 1
"""Of template.yaml: a change that the functions rely on, and an older template does not have, raises it in both."""


class RedisIam(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user that signs in to a cache with tokens of IAM in place of a password."""

    user: Name
    """The name of the user."""
    cache: Name
    """The name of the cache, the replication group or the cluster, which the tokens are for; no host."""
    service: Literal["elasticache", "memorydb"] = "elasticache"
    """The service of the cache."""
    serverless: bool = False
    """Whether it is an ElastiCache Serverless one."""


class Settings(EnvSettings, frozen=True, kw_only=True):
    """The settings of a function."""

    app: Name | None = None
    """`module:app`, with the workers; the daemon and the command line read it, too."""

    redis_secret_arn: Name | None = None
    """The secret whose text is the URL of Redis, in place of `LOWKIQ_REDIS_URL`."""
    redis_iam: RedisIam | None = None
    """The user and the cache for tokens of IAM in place of a password; None signs in as the URL says."""

    stack_version: Annotated[int, Meta(ge=0)] | None = None
    """The version that the template is of; None for one of your own, whose fit is yours to know."""
    metrics: Literal["none", "summary", "queues"] = "summary"
    """What is published as metrics in CloudWatch: two of the app, or those of each queue and of each settling, too."""
    metrics_namespace: Annotated[str, Meta(pattern=r"^[0-9A-Za-z.\-_/#:]{1,255}$")] = "lowkiq"
    """The namespace of the metrics in CloudWatch."""

    scaling: bool = False
    """Whether `wanted_holders` is published in CloudWatch, for those who scale containers by it; one metric more."""

    queues: Names | None = None
    """The queues that this function drains unless an event names another, after commas; all but those in `-a,-b`."""
    reserve: Annotated[float, Meta(ge=0, le=600)] = 3.0
    """Seconds of an invocation that are kept back, for what its end takes."""
    idle: Idle = "stay"
    """What an invocation does that finds nothing due, and about due work that it cannot do: docs/waking.md."""

    scheduled_shards: Annotated[str, Meta(pattern=r"^[0-9]+(,[0-9]+)*$")] | None = None
    """The shard indexes that have a schedule each, after commas; None if no shard has its own schedule."""

    auto_schedules: Name | None = None
    """The prefix of schedules by `lowkiq stack schedules`, which a queue with `shards_count = "auto"` may change."""

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
        if self.named_queues and self._left_out:
            raise ConfigError(
                f"LOWKIQ_QUEUES={self.queues!r} is refused: give names of queues that the function drains, or names "
                f"with {_LEFT_OUT} before each of queues that it leaves out.",
                setting="queues",
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
        """The names in `queues` of those that the function drains; none if it drains all, or all others."""
        return frozenset(name for name in _listed(self.queues or "") if not name.startswith(_LEFT_OUT))

    @property
    def _left_out(self) -> frozenset[str]:
        names = _listed(self.queues or "") - self.named_queues
        return frozenset(name.removeprefix(_LEFT_OUT).strip() for name in names)

    @property
    def shards_with_schedules(self) -> frozenset[int]:
        """The indexes in `scheduled_shards`."""
        return frozenset(map(int, _listed(self.scheduled_shards or "")))

    def drains(self, queue_name: str) -> bool:
        """Whether an event that names no queue is for this one, too."""
        return queue_name in self.named_queues if self.named_queues else queue_name not in self._left_out


@cache
def _listed(names: str) -> frozenset[str]:
    return frozenset(name.strip() for name in names.split(",") if name.strip())
