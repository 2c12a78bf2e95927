"""Handlers that record their batches and then do as the test says."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from lowkiq_lambda import Batch, BatchJob, MorgueJob


class Broken(Exception):
    """The error that handlers of tests raise."""


Then: TypeAlias = Callable[[Batch], object]


class Notes:
    """A handler that records its batches and then does as the test says."""

    fields: ClassVar[Mapping[str, Any]] = {}
    """Attributes of its worker, unless the test says otherwise."""

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
    def dead(self) -> list[MorgueJob]:
        """The jobs that went to the morgue, in order."""
        return [job for jobs in self.exhausted for job in jobs]

    def clear(self) -> None:
        """Forget all records."""
        self.batches, self.jobs, self.exhausted = [], [], []


def raising(error: BaseException | None = None) -> Then:
    """Raises in each batch."""

    def then(_batch: Batch) -> None:
        raise error or Broken("broken")

    return then


def failing(*ids: str) -> Then:
    """Fails these ids by name, if they are in the batch."""

    def then(batch: Batch) -> None:
        for job_id in ids:
            if job_id in batch:
                batch.fail(job_id, f"{job_id} is broken")

    return then


def raising_with(*ids: str) -> Then:
    """Raises, without naming an id, if one of these ids is in the batch."""

    def then(batch: Batch) -> None:
        found = [job_id for job_id in ids if job_id in batch]
        if found:
            raise Broken(f"{found[0]} is broken")

    return then


LATER = 60.0
"""Seconds from a failure to its retry."""


class FailingHandler(Notes):
    """Fails, by name, the ids that are in `failing`; before that it calls `meanwhile`, once, while it runs."""

    fields: ClassVar[Mapping[str, Any]] = {"batch_size": 10, "retry_in": lambda _self, _retry_count: LATER}

    def __init__(self) -> None:
        super().__init__()
        self.failing: set[str] = set()
        self.words = "is broken"
        self.meanwhile: Callable[[], object] | None = None

    def __call__(self, batch: Batch) -> None:
        """Record the batch, call `meanwhile`, then fail."""
        super().__call__(batch)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        for job_id in self.failing & set(batch):
            batch.fail(job_id, f"{job_id} {self.words}")
