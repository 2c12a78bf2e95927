"""Workers that fail on demand, and looks at a queue from below."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import redis

from lowkiq_lambda import Batch, JobView, Lowkiq, MorgueJob, Pushed, Worker
from lowkiq_lambda.store.inspect.actions import Actions
from lowkiq_lambda.store.inspect.queries import Queries
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.testing import ManualClock
from tests.properties.observed import State, stored

MakeDesk: TypeAlias = Callable[..., "Desk"]
LATER = 60.0
"""Seconds after which what failed is tried again."""


class Handler:
    """Fails, by name, the ids that are in `failing`; while it runs calls `meanwhile`, once, and `perform`."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.words = "is broken"
        self.batches: list[dict[str, list[object]]] = []
        self.meanwhile: Callable[[], object] | None = None
        self.perform: Callable[[Batch], object] | None = None

    def __call__(self, batch: Batch) -> None:
        """Note the batch, do what is to be done meanwhile, then fail."""
        self.batches.append({job_id: list(payloads) for job_id, payloads in batch.items()})
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        if self.perform:
            self.perform(batch)
        for job_id in self.failing & set(batch):
            batch.fail(job_id, f"{job_id} {self.words}")


def declare(app: Lowkiq, queue_name: str, handler: Handler, **fields: Any) -> type[Worker]:
    """A worker of one shard with batches of ten, which tries again after a minute, unless `fields` say otherwise."""
    body: dict[str, Any] = {
        "queue_name": queue_name,
        "shards_count": 1,
        "batch_size": 10,
        "retry_in": lambda _self, _retry_count: LATER,
        "perform": lambda _self, batch: handler(batch),
        **fields,
    }
    return app.worker(type("Any", (Worker,), body))


@dataclass(frozen=True, slots=True)
class Desk:
    """An operator's desk: a worker, its handler, and what is known of its queue."""

    app: Lowkiq
    clock: ManualClock
    worker: type[Worker]
    handler: Handler
    admin: redis.Redis

    @property
    def queries(self) -> Queries:
        """What there is to see."""
        return self.app.queries(self.worker)

    @property
    def actions(self) -> Actions:
        """What there is to do."""
        return self.app.actions(self.worker)

    def push(self, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
        """Queue jobs."""
        return self.worker.perform_async(jobs)

    def drain(self) -> None:
        """Perform what is due."""
        self.app.drain()

    def fail(self, jobs: Iterable[Mapping[str, Any]]) -> None:
        """Push jobs, and let each fail once."""
        jobs = list(jobs)
        self.push(jobs)
        self.handler.failing = {str(job["id"]) for job in jobs}
        self.drain()
        self.handler.failing = set()

    def bury(self, jobs: Iterable[Mapping[str, Any]]) -> None:
        """Push jobs, and send them to the morgue."""
        self.fail(jobs)
        self.actions.kill_all_failed_jobs()

    def before(self, script: str, do: Callable[[], object], calls: int = 1) -> None:
        """Do something once, at the last moment before a script runs: with `calls`, before its n-th call."""
        backend, left = self.app.backend, [calls]
        run = backend.run

        def run_after(name: str, *args: Any, **options: Any) -> Reply:
            left[0] -= name == script
            if name == script and left[0] == 0:
                do()
            return run(name, *args, **options)

        backend.run = run_after  # type: ignore[method-assign]  # that is the point

    def state(self) -> State:
        """The worker's only shard as it lies in Redis; AssertionError where its keys contradict each other."""
        (shard,) = self.app.queue_of(self.worker).shards
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


def ids_of(jobs: Iterable[JobView | MorgueJob]) -> list[str]:
    """Their ids."""
    return [job.id for job in jobs]


def pairs(job: JobView | MorgueJob) -> list[tuple[object, float]]:
    """Its payloads and scores, as plain tuples."""
    return [(payload, score) for payload, score in job.payloads]
