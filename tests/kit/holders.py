"""Holders that a test plays itself, call by call."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.push.checking import Checker
from lowkiq_lambda.settings.protocols import MorgueLimits
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.chunks import waves_of
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards, only
from lowkiq_lambda.store.shard.lease_replies import Acquired, NotAcquired, StoredClaim
from lowkiq_lambda.store.shard.nodes import NodeTime, ServerTime
from lowkiq_lambda.store.shard.pushing import Pusher
from lowkiq_lambda.store.shard.session import (
    ClaimLimits,
    LeaseSession,
    LeaseSettings,
    Next,
    OutcomeRecord,
    Settlement,
)

RETRY_FOR: Final = 5.0
LIMITS: Final = ClaimLimits(10, 100, 10_000)


class Holder(LeaseSession):
    """One who may take the shard. Each call is tried for some seconds."""

    @property
    def nonce_prefix(self) -> str:
        """What its nonce begins with, and no other's."""
        return self._nonce[:16]

    def take(self) -> Acquired | NotAcquired:
        """Try to acquire."""
        return self.acquire("somebody", LIMITS, RETRY_FOR)

    def write(self, outcomes: Sequence[OutcomeRecord] = (), next_step: Next = "claim") -> StoredClaim | None:
        """Settle."""
        return self.settle(Settlement(outcomes, next_step, "0 0 0 0", 0), LIMITS, retry_for=RETRY_FOR)

    def write_more(
        self, left: Mapping[str, float], *outcomes: OutcomeRecord, limits: ClaimLimits = LIMITS
    ) -> StoredClaim | None:
        """Settle, and claim beside what is left in flight."""
        return self.settle(Settlement(outcomes, "more", "0 0 0 0", 0, left), limits, retry_for=RETRY_FOR)

    def forget_the_reply(self) -> None:
        """That of the last numbered call was lost: the next one is sent in its place."""
        self._calls -= 1

    def give_back(self, ids: Iterable[str]) -> None:
        """Release, with these ids as they were."""
        self.write([(job_id, "returned") for job_id in ids], "release")


class Holders:
    """Makes holders of one shard; all share one client.

    `new_time` tells what time they go by, `wait` what they do before they try a call again.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by keyword, few of them at a time
        self,
        url: str,
        shard: ShardRef,
        *,
        ttl: float = 0.5,
        timeout: float = RETRY_FOR,
        clock: Clock | None = None,
        new_time: Callable[[Clock], NodeTime] = ServerTime,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self._client = connect(url, max_connections=8, timeout=timeout, pool_timeout=5.0)
        self.backend = Backend(self._client, clock, partial(new_time, clock), wait or clock.sleep, Random(0))
        self._shard = shard
        self.ttl = ttl
        self._terms = LeaseSettings(ttl, "min", MorgueLimits(100, 100_000, 1_000.0), b"crashed")

    def new(self) -> Holder:
        """One more."""
        return Holder(self.backend, self._shard, uuid4().hex, self._terms)

    def push(self, jobs: Sequence[Mapping[str, Any]]) -> list[Pushed]:
        """Push to the shard, the only one of its queue."""
        checker = Checker(1, None, 100_000, now=lambda: self.backend.now(self._shard))
        pusher = Pusher(self.backend, self._shard.queue_name, self._terms.merge, RETRY_FOR, declare=self._open)
        checked = checker.check_all(jobs)
        return pusher.push(waves_of([self._shard], checked.by_shard, checked.features), len(jobs))

    def _open(self) -> QueueShards:
        self.backend.run("open", self._shard, [1, self._terms.merge], retry_for=RETRY_FOR)
        return only(self._shard)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()
