"""The store's calls as the state machine makes them: with a clock by hand, and able to send one again."""

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from types import MappingProxyType
from uuid import uuid4

import msgspec

from lowkiq_lambda import Config, Lowkiq, MorgueLimits, Worker
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.jobs.job import ItemRef, Pushed
from lowkiq_lambda.operate.acts.action_scripts import ShardSnapshot
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.server.connection import Client
from lowkiq_lambda.store.shard.backend import Backend, Call
from lowkiq_lambda.store.shard.dead_holders import release_dead
from lowkiq_lambda.store.shard.lease_replies import Checkpoint, StoredClaim
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.store.shard.session import (
    ClaimLimits,
    LeaseSession,
    LeaseSettings,
    Next,
    OutcomeRecord,
    Settlement,
)
from lowkiq_lambda.testing import ManualClock
from tests.kit.operators import operator_of
from tests.properties.model import Limits, NewJob

RETRY_FOR = 5.0
LEAST_OF_EXPIRY = 9
"""Parts of a retry that says no expiry, at most."""
NOTHING: Mapping[str, float] = MappingProxyType({})


class RecordingBackend(Backend):
    """Remembers the calls of the last push, so that they can reach the server once more."""

    pushed: tuple[Sequence[Call], list[Reply | LowkiqError]] = ((), [])

    def run_each(self, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        """As the backend does."""
        replies = super().run_each(calls)
        # A wake goes the same way, and may answer otherwise when somebody has the shard by then.
        if calls[0][0] == "enqueue":
            self.pushed = (calls, replies)
        return replies

    def push_again(self) -> None:
        """The last push reaches the server a second time: it must answer as before."""
        calls, replies = self.pushed
        assert super().run_each(calls) == replies


class Shard:
    """One shard of a queue of its own."""

    def __init__(
        self, client: Client, url: str, merge: str, ttl: float, morgue: MorgueLimits, **fields: object
    ) -> None:
        self.clock = ManualClock()
        self.backend = RecordingBackend(client, self.clock, partial(GivenTime, self.clock), self.clock.sleep, Random(0))
        self._app = Lowkiq(Config(redis_url=url), clock=self.clock)
        self._app.core.connections._backend = self.backend
        fields = {"queue_name": f"queue-{uuid4().hex}", "shards_count": 1, "merge": merge, **fields}
        body = {"perform": lambda _self, _batch: None, **fields}
        self._worker: type[Worker] = self._app.worker(type("Any", (Worker,), body))
        self.ref = self._app.core.queues.agreed(self._worker).shards[0]
        self._terms = LeaseSettings(ttl, merge, morgue, b"crashed")
        self._morgue = (morgue.entries, morgue.bytes, morgue.age)

    def push(self, jobs: Sequence[NewJob], items: Sequence[ItemRef | None] = ()) -> list[Pushed]:
        """What `push_many` returns; payloads are JSON. `items`: of each job, where some are tracked."""
        items = items or [None] * len(jobs)
        return self._worker.push_many(
            [_as_given(job) | ({} if item is None else {"item": item}) for job, item in zip(jobs, items, strict=True)]
        )

    def push_unless(self, jobs: Sequence[tuple[NewJob, str, str]]) -> list[Pushed]:
        """The same for jobs that may ask whether their id has work, each with `unless` and `on_conflict`."""
        return self._worker.push_many(
            [
                _as_given(job) | ({"unless": unless, "on_conflict": on_conflict} if unless else {})
                for job, unless, on_conflict in jobs
            ]
        )

    def operator(self, seen: ShardSnapshot | None = None) -> QueueOperations:
        """What an operator may do, with a look that was taken before."""
        reader = self._app.operate(self._worker).reader
        queue = operator_of(reader, self._terms.merge, self._morgue, reader.retry_for)
        if seen is not None:
            queue.runner.snapshots = lambda shards=None: [seen]  # type: ignore[method-assign]  # noqa: ARG005 - the look of before
        return queue

    def holder(self) -> "RepeatingHolder":
        """Somebody who may acquire the shard."""
        return RepeatingHolder(self.backend, self.ref, uuid4().hex, self._terms)


class RepeatingHolder(LeaseSession):
    """A holder whose last call can be sent again, as a client does that had no answer."""

    @property
    def call(self) -> int:
        """The number of the last call."""
        return self._calls

    def is_dead(self) -> bool:
        """Somebody knows that its process is gone, and releases its lease; whether it had the shard."""
        return bool(release_dead(self._backend, [self.shard], self._nonce[:16], RETRY_FOR))

    def settle_as(
        self,
        call: int,
        outcomes: Sequence[OutcomeRecord],
        next_step: Next,
        limits: Limits,
        left: Mapping[str, float] = NOTHING,
    ) -> StoredClaim | None:
        """Settle with a number of the test's choice."""
        known, self._calls = self._calls, call - 1
        try:
            begins = any(outcome[1] == "retried" and len(outcome) > LEAST_OF_EXPIRY for outcome in outcomes)
            settlement = Settlement(outcomes, next_step, "0.1 0.1 0.1 0.0", 0, left, begins_expiry=begins)
            return self.settle(settlement, ClaimLimits(*limits), retry_for=RETRY_FOR)
        finally:
            self._calls = max(known, self._calls)

    def checkpoint_again(self, job_id: str, progress: bytes) -> Checkpoint:
        """`checkpoint` reaches the server once more, perhaps with another text."""
        self._calls -= 1
        return self.checkpoint(job_id, progress, clears=False, retry_for=RETRY_FOR)

    def checkpoint_late(self, job_id: str, progress: bytes) -> None:
        """A copy of a call before the last one arrives."""
        known, self._calls = self._calls, self._calls - 2
        try:
            self.checkpoint(job_id, progress, clears=False, retry_for=RETRY_FOR)
        finally:
            self._calls = known

    def start_again(self, job_id: str) -> None:
        """`start` reaches the server once more."""
        self._calls -= 1
        self.start(job_id, RETRY_FOR)


def _as_given(job: NewJob) -> dict[str, object]:
    given: dict[str, object] = {"id": job.id, "payload": msgspec.json.decode(job.payload)}
    if job.score is not None:
        given["score"] = job.score
    if job.due_at is not None:
        given["due_at"] = job.due_at
    if job.expires_at is not None:
        given["expires_at"] = job.expires_at
    return given
