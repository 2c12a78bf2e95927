"""An operator's desk: a worker, its handler, and the queue as it lies in Redis."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import redis

from lowkiq_lambda import Lowkiq, Pushed, Worker
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import FailingHandler
from tests.kit.stored import State, stored

MakeDesk: TypeAlias = Callable[..., "Desk"]


@dataclass(frozen=True, slots=True)
class Desk:
    """A worker, its handler, and what an operator does to the queue."""

    app: Lowkiq
    clock: ManualClock
    worker: type[Worker]
    handler: FailingHandler
    admin: redis.Redis

    @property
    def queue(self) -> QueueOperations:
        """The queue, for an operator."""
        return self.app.operate(self.worker)

    def push(self, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
        """Queue jobs."""
        return self.worker.push_many(jobs)

    def drain(self) -> None:
        """Perform the jobs that are due."""
        self.app.drain()

    def fail(self, jobs: Iterable[Mapping[str, Any]]) -> None:
        """Push jobs, and let each fail once."""
        jobs = list(jobs)
        self.push(jobs)
        self.handler.failing = {str(job["id"]) for job in jobs}
        self.drain()
        self.handler.failing = set()

    def kill(self, jobs: Iterable[Mapping[str, Any]]) -> None:
        """Push jobs, and send them to the morgue."""
        self.fail(jobs)
        self.queue.waiting.kill(everything=True)

    def before(self, script: str, do: Callable[[], object], calls: int = 1) -> None:
        """Do something once, at the last moment before a script runs: with `calls`, before its n-th call."""
        backend, left = self.app.core.backend, [calls]
        run = backend.run

        def run_after(name: str, *args: Any, **options: Any) -> Reply:
            left[0] -= name == script
            if name == script and left[0] == 0:
                do()
            return run(name, *args, **options)

        backend.run = run_after  # type: ignore[method-assign]  # that is the point

    def renew_leases(self) -> None:
        """Renew those that are due, as the thread does that renews them."""
        (shard,) = self.app.core.queues.agreed(self.worker).shards
        self.app.core.drains.drainer._renewers.of(shard).renew_due()

    def state(self) -> State:
        """The worker's only shard as it lies in Redis; AssertionError if its keys contradict each other."""
        (shard,) = self.app.core.queues.agreed(self.worker).shards
        found = stored(self.admin, shard)
        known = found["waiting"].keys() | found["flight"].keys()
        for name in ("errors", "trouble", "suspects"):
            assert found[name].keys() <= known, f"{name} of ids that are not there: {found[name].keys() - known}"
        assert found["failures"].keys() <= found["errors"].keys() | found["morgue"].keys()
        assert found["suspects"] or not found["groups"]
        return found

    def is_empty(self) -> bool:
        """Whether the shard holds nothing but its morgue and its counters."""
        names = ("waiting", "flight", "errors", "trouble", "suspects", "groups")
        found = self.state()
        return not any(found[name] for name in names)
