"""Pushes that go nowhere: checked and encoded as in production, and kept in a list."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.declare.payloads import loader, plain_jobs
from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import Worker, worker_of
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.push.checking import NO_PAYLOAD, checker_of
from lowkiq_lambda.settings.protocols import Jobs
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.codec import dump_json, load_json
from lowkiq_lambda.testing.assertions import JobId
from lowkiq_lambda.testing.clock import ManualClock

_NOWHERE: Final = "redis://lowkiq-fake.invalid"


@dataclass(frozen=True, slots=True)
class FakePush:
    """A job that was pushed: the payload as its handler would get it, times in Unix seconds, the rest as given."""

    worker: type[Worker[Any]]
    id: str
    payload: Any
    score: float
    due_at: float
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    expires_at: float | None = None


class FakeApp:
    """What the fixture `lowkiq_fake` is: `pushes` has what was pushed, in order. Nothing merges, and nothing runs."""

    def __init__(self, app: Lowkiq, clock: ManualClock) -> None:
        self.app = app
        self.clock = clock
        self.pushes: list[FakePush] = []

    def pushed(self, worker: AnyWorker, *, id: JobId | None = None) -> list[FakePush]:
        """The pushes to the worker's queue, of this id if one is given, in order."""
        worker_class = worker_of(worker)
        return [one for one in self.pushes if one.worker is worker_class and (id is None or str(id) == one.id)]

    def clear(self) -> None:
        """Forget the pushes."""
        self.pushes.clear()

    def assert_pushed(self, worker: AnyWorker, *, id: JobId | None = None, count: int | None = None) -> None:
        """Jobs were pushed to the queue, of this id if one is given; exactly `count` of them if that is given."""
        pushes = len(self.pushed(worker, id=id))
        if pushes == 0 if count is None else pushes != count:
            where = worker_of(worker).queue_name if id is None else f"{worker_of(worker).queue_name}, id {id!r}"
            expected = "a push" if count is None else f"{count} push{'' if count == 1 else 'es'}"
            found_all = ", ".join(f"{one.worker.queue_name} {one.id!r}: {one.payload!r}" for one in self.pushes)
            raise AssertionError(f"{where}: expected {expected}, found {found_all or 'nothing'}")

    def assert_not_pushed(self, worker: AnyWorker, *, id: JobId | None = None) -> None:
        """Nothing was pushed to the queue, or under this id if one is given."""
        self.assert_pushed(worker, id=id, count=0)

    def __call__(self, worker: type[Worker[Any]], jobs: Jobs, _call_next: Callable[..., Any]) -> list[Pushed]:
        """The innermost client middleware, without a server behind it."""
        config = self.app.config
        plain = list(jobs) if worker.payload is None else plain_jobs(worker.payload, jobs)
        checker = checker_of(config, self.app.core.queues.of(worker).shards, self.clock.time, worker)
        load, dump = config.load_payload or load_json, config.dump_payload or dump_json
        if worker.payload is not None:
            load = loader(worker.payload, load)
        results: dict[int, Pushed] = {}
        expiries: dict[int, float | None] = {}
        for number, shard_jobs in checker.check_all(plain).by_shard.items():
            for new in shard_jobs:
                at = self.clock.time() if new.due_at is None else new.due_at
                results[new.position] = Pushed(new.id, number, merged=False, due_at=at)
                expiries[new.position] = new.expires_at
        for position, job in enumerate(plain):
            pushed = results[position]
            self.pushes.append(
                FakePush(
                    worker,
                    pushed.id,
                    load(dump(job.get("payload", NO_PAYLOAD))),
                    job.get("score", self.clock.time()),
                    pushed.due_at,
                    job.get("key"),
                    job.get("headers", {}),
                    expiries[position],
                )
            )
        return [results[position] for position in range(len(plain))]


@contextmanager
def fake_app(app: Lowkiq) -> Iterator[FakeApp]:
    """The app with no server, until the block ends: whatever needs more than to push raises ConfigError."""
    clock = ManualClock()
    config = app.config.evolve(redis_url=_NOWHERE, redis=None, credentials=None, wake_function=None)
    fake = FakeApp(app, clock)
    with app.core.rebound(config, clock, new_backend=_no_backend):
        app.client_middlewares.append(fake)
        try:
            yield fake
        finally:
            app.client_middlewares.remove(fake)


def _no_backend(*_args: object) -> Backend:
    raise ConfigError("With lowkiq_fake jobs can only be pushed: take the fixture lowkiq, which has a server.")
