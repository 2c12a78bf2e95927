"""A process that dies between its handler and Redis, played by calls that fail."""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply

CrashPoint: TypeAlias = Literal["before_handler", "after_handler", "after_settle_sent"]
"""Where the process dies: before the handler runs; behind it, so that Redis learns nothing; or when Redis has learned
of the outcomes, and the process has not heard that."""

_OF_A_HOLDER: Final = frozenset({"settle", "checkpoint", "renew", "abandon", "survive"})
"""The scripts by which a holder says that it lives, or what it did."""
_SETTLE: Final = "settle"


class Crashes:
    """Which queues have a process that dies, and where."""

    def __init__(self) -> None:
        self.crashing: dict[str, CrashPoint] = {}

    def backend(self, *args: Any, **options: Any) -> "CrashingBackend":  # noqa: ANN401 - what a Backend takes
        """A backend that has these crashes."""
        backend = CrashingBackend(*args, **options)
        backend.crashes = self
        return backend


class CrashingBackend(Backend):
    """A real one, but for the calls of those who are dead."""

    crashes: Crashes

    def run(
        self, name: str, shard: ShardRef, args: Sequence[Argument], *, retry_for: float, ask_time: bool = False
    ) -> Reply:
        """As `Backend.run`. Raises BackendUnavailable where the caller has died."""
        point = self.crashes.crashing.get(shard.queue_name) if name in _OF_A_HOLDER else None
        if point == "after_settle_sent" and name == _SETTLE:
            super().run(name, shard, args, retry_for=retry_for, ask_time=ask_time)
        if point is not None:
            raise BackendUnavailable(f"{shard.queue_name}: the process died here, as the test wants it.")
        return super().run(name, shard, args, retry_for=retry_for, ask_time=ask_time)
