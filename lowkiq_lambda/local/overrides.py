"""What the command line sets in place of the app."""

from typing import Final, Literal

import msgspec

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.local.schedulers import SeqScheduler

_SCHEDULERS: Final = {"lag": None, "seq": SeqScheduler}
"""None: the board goes by lag itself, and need not look at all shards for it."""


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an app; None leaves one as it is."""

    threads: int | None = None
    redis_url: str | None = None
    scheduler: Literal["lag", "seq"] | None = None

    def apply(self, app: Lowkiq) -> None:
        """Set what is given, and nothing else."""
        changes: dict[str, object] = {}
        if self.threads is not None:
            changes["threads_per_node"] = self.threads
        if self.redis_url is not None:
            changes["redis_url"] = self.redis_url
        if self.scheduler is not None:
            changes["build_scheduler"] = _SCHEDULERS[self.scheduler]
        if changes:
            app.core.configure(**changes)
