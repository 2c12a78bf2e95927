"""Handlers that note what they were given and then do what the test says."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias
import pytest
from lowkiq_lambda import Batch, BatchJob, Lowkiq, MorgueJob, Worker
from lowkiq_lambda.engine.survivors import Survivors
from lowkiq_lambda.job import shard_for
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
import redis
from lowkiq_lambda import Batch, JobView, Lowkiq, MorgueJob, Pushed, Worker
from lowkiq_lambda.store.inspect.actions import Actions
from lowkiq_lambda.store.inspect.queries import Queries
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.stored import State, stored


class Broken(Exception):
    """What handlers raise in tests."""


Then: TypeAlias = Callable[[Batch], object]


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


LATER = 60.0
"""Seconds after which what failed is tried again."""


class FailingHandler:
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
