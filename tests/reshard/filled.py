"""A queue that holds some of all that a queue can hold."""

from collections.abc import Callable
from functools import reduce
from operator import or_
from random import Random
from typing import Any, TypeAlias

import redis

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.reshard.resharding import Resharding
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken
from tests.kit.started import Starter
from tests.kit.stored import State
from tests.kit.tracking import TaskOfTests
from tests.kit.workers import declare
from tests.reshard.held import held

IDS = [f"id {number}" for number in range(30)]
BEGUN = [f"begun {number}" for number in range(4)]
FAR = 5_000.0


class Trouble:
    """A handler that does with an id as its name and the turn say."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def __call__(self, batch: Batch) -> None:
        """Some fail by name, some batches as a whole."""
        for job_id in batch:
            if self._rng.random() < 0.4:
                batch.fail(job_id, "broken" + "\nas ever" * self._rng.choice([0, 30]))
        if self._rng.random() < 0.2:
            raise Broken("in company")


Fill: TypeAlias = Callable[..., "FilledQueue"]


class FilledQueue:
    """A queue of so many shards, with jobs in all states."""

    def __init__(
        self, app: Lowkiq, queue_name: str, clock: ManualClock, admin: redis.Redis, shards_count: int, **fields: Any
    ) -> None:
        self.app = app
        self.clock = clock
        self.admin = admin
        self._rng = Random(queue_name)
        self.worker: type[Worker] = declare(
            app,
            queue_name,
            Trouble(self._rng),
            shards_count=shards_count,
            max_retry_count=2,
            batch_size=4,
            **fields,
        )

        self.task = TaskOfTests(self.worker, admin)
        self._pushed = 0

    @property
    def resharding(self) -> Resharding:
        """Its moves."""
        return self.app.operate(self.worker).resharding()

    def shards(self, count: int) -> list[ShardRef]:
        """Those that it has, or would have, with so many."""
        return [ShardRef(self.worker.queue_name, count, index) for index in range(count)]

    def held(self, count: int | None = None) -> State:
        """What lies in them; without a count, in those that code declares."""
        return held(self.admin, self.shards(count or count_of(self.worker)))

    def fill(self, rounds: int) -> None:
        """Jobs start, come, fail and are dead."""
        self.start()
        for _ in range(rounds):
            self.push()
            self.clock.advance(self._rng.choice([1.0, 15.0]))
            self.app.drain()
        self.push()

    def push(self, *, plain: bool = False) -> None:
        """A payload or several for some of the ids; unless they are `plain`, some are items of a task or have a key."""
        self.worker.push_many([self._job(plain=plain) for _ in range(40)])

    def _job(self, *, plain: bool) -> dict[str, Any]:
        rng, at = self._rng, self.clock.time()
        self._pushed += 1
        more: list[dict[str, Any]] = [
            {"score": rng.choice([1.0, 2.0, -5.0])},
            {"due_at": at + rng.choice([0.0, 50.0])},
            {"headers": {"trace": str(self._pushed)}},
            {"expires_in": rng.choice([5_000.0, 9_000.0])},
        ]
        if not plain:
            more.append(
                {"item": self.task.ref(str(self._pushed))} if rng.random() < 0.5 else {"key": str(rng.random())}
            )
        return reduce(
            or_,
            (one for one in more if rng.random() < 0.3),
            {"id": rng.choice([*IDS, *BEGUN]), "payload": rng.choice([1, 2, 3, "x" * 60])},
        )

    def start(self) -> None:
        """Some ids save progress, and wait to go on; one of them has been handed two payloads, and one has failed."""
        for number, job_id in enumerate(BEGUN):
            payloads = [1, 2] if number == 0 else [1]
            self.worker.push_many([{"id": job_id, "payload": payload} for payload in payloads])
            starter = Starter(self.app, self.worker, job_id, b"so far")
            if number == 1:
                starter.fail(self.clock.time() + FAR)
            else:
                starter.put_off(self.clock.time() + FAR)
