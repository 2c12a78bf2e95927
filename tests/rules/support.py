"""Workers that note what they were given, looks at what waits, and holders that die."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, MorgueJob, Worker
from lowkiq_lambda.engine.survivors import Survivors
from lowkiq_lambda.job import shard_for
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock

Then: TypeAlias = Callable[[Batch], object]


class Broken(Exception):
    """What handlers raise in tests."""


class Notes:
    """A handler that notes what it was given and then does what the test says."""

    def __init__(self, then: Then | None = None) -> None:
        self.then = then
        self.batches: list[dict[str, list[Any]]] = []
        self.jobs: list[list[BatchJob]] = []
        self.exhausted: list[list[MorgueJob]] = []

    def __call__(self, batch: Batch) -> object:
        """Note the batch, then go on."""
        self.batches.append({job_id: list(payloads) for job_id, payloads in batch.items()})
        self.jobs.append([batch.job(job_id) for job_id in batch])
        return self.then(batch) if self.then else None

    @property
    def last(self) -> BatchJob:
        """The only job of the latest batch."""
        (job,) = self.jobs[-1]
        return job

    @property
    def ids(self) -> list[list[str]]:
        """The ids of each batch."""
        return [list(batch) for batch in self.batches]

    @property
    def buried(self) -> list[MorgueJob]:
        """What went to the morgue, in order."""
        return [job for jobs in self.exhausted for job in jobs]

    def clear(self) -> None:
        """Forget what was noted."""
        self.batches, self.jobs, self.exhausted = [], [], []


def declare(app: Lowkiq, queue_name: str, handler: Then, **fields: Any) -> type[Worker]:
    """A worker of one shard, with retries after 10, 20, 30 ... seconds, unless `fields` say otherwise."""
    body: dict[str, Any] = {
        "queue_name": queue_name,
        "shards_count": 1,
        "retry_in": lambda _self, retry_count: 10 * (retry_count + 1),
        "perform": lambda _self, batch: handler(batch),
        **fields,
    }
    if isinstance(handler, Notes):
        body.setdefault("retries_exhausted", lambda _self, jobs: handler.exhausted.append(list(jobs)))
    if "perform_job" in fields:
        del body["perform"]
    return app.worker(type("Noting", (Worker,), body))


def raising(error: BaseException | None = None) -> Then:
    """Raises in each batch."""

    def then(_batch: Batch) -> None:
        raise error or Broken("broken")

    return then


def failing(*ids: str) -> Then:
    """Fails these ids by name, where they are in the batch."""

    def then(batch: Batch) -> None:
        for job_id in ids:
            if job_id in batch:
                batch.fail(job_id, f"{job_id} is broken")

    return then


def raising_with(*ids: str) -> Then:
    """Raises, naming nobody, where one of these ids is in the batch."""

    def then(batch: Batch) -> None:
        found = [job_id for job_id in ids if job_id in batch]
        if found:
            raise Broken(f"{found[0]} is broken")

    return then


def jobs_of(ids: str | Sequence[str], **fields: Any) -> list[dict[str, Any]]:
    """One job for each id (each letter, or each word of several)."""
    return [{"id": job_id, **fields} for job_id in ids]


class Look(NamedTuple):
    """A job that waits, as the server has it; payloads with their scores."""

    payloads: list[tuple[object, float]]
    perform_in: float
    retry_count: float
    error: str | None


def look(app: Lowkiq, worker: type[Worker], job_id: str) -> Look | None:
    """The job, where it waits."""
    found = app.queries(worker).fetch([job_id])
    if not found:
        return None
    (job,) = found
    return Look([(payload, score) for payload, score in job.payloads], job.perform_in, job.retry_count, job.error)


def shard_of(app: Lowkiq, worker: type[Worker], job_id: str) -> ShardRef:
    """The shard that the id lives in."""
    return app.queue_of(worker).shards[shard_for(job_id, worker.shards_count)]


def left_behind(app: Lowkiq, worker: type[Worker]) -> dict[str, int]:
    """How many entries each key has in which jobs, or what is known of them, still lie."""
    kept = ("due", "jobs", "flight", "retry", "errors", "trouble", "suspects", "groups", "since")
    client, sizes = app.backend.client, dict[str, int]()
    for shard in app.queue_of(worker).shards:
        for name in (*kept, "box", "seen"):
            key = shard.key(name)
            size = client.zcard(key) if client.type(key) == b"zset" else client.hlen(key)
            sizes[name] = sizes.get(name, 0) + int(str(size))
    return {name: size for name, size in sizes.items() if size}


def counters(app: Lowkiq, worker: type[Worker]) -> Mapping[str, int]:
    """What the shards of the worker have counted."""
    total: dict[str, int] = {}
    for shard in app.queue_of(worker).shards:
        meta: dict[bytes, bytes] = app.backend.client.hgetall(shard.key("meta"))  # type: ignore[assignment]  # no future here
        for field, value in meta.items():
            if re.fullmatch(rb"[0-9]+", value):
                total[field.decode()] = total.get(field.decode(), 0) + int(value)
    return total


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """Makes the drains of an app die: then nothing of them reaches the server any more."""

    def __init__(self, app: Lowkiq) -> None:
        self._app = app
        self._backend = app.drainer._backend
        self._run = self._backend.run
        self._dead = False
        self.dies_before: Callable[[str], bool] = _never
        """Asked at each call of a script, which does not reach the server any more where the answer is yes."""
        self._backend.run = self._run_if_alive  # type: ignore[method-assign]  # that is the point

    def die(self, *_arguments: object) -> None:
        """From now on."""
        self._dead = True

    def die_before(self, call: str) -> None:
        """At the next call of that script."""
        self.dies_before = lambda name: name == call

    def drain(self) -> dict[str, int] | None:
        """What the drain counted, or None where it died; the lease of a dead one stays, and so do its jobs."""
        try:
            return self._app.drain()
        except Died:
            # A process that is gone does not say later that it lives.
            self._app.drainer._survivors = Survivors()
            return None
        finally:
            self._dead, self.dies_before = False, _never

    def _run_if_alive(self, name: str, *args: Any, **options: Any) -> Any:
        self._dead = self._dead or self.dies_before(name)
        if self._dead:
            raise Died
        return self._run(name, *args, **options)


def _never(_call: str) -> bool:
    return False


def outlive(app: Lowkiq, clock: ManualClock, *workers: type[Worker]) -> None:
    """Let the leases of dead holders end, on the server too."""
    clock.advance(app.config.lease_ttl + 1)
    for worker in workers:
        for shard in app.queue_of(worker).shards:
            app.backend.client.delete(shard.key("lease"))


def stop_renewing(app: Lowkiq, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the thread that renews leases stand still, as it does in a process that is frozen."""
    monkeypatch.setattr(app.drainer._renewer, "beat", lambda: 3_600.0)
