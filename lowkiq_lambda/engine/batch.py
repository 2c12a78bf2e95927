"""What a handler is given: its ids with their payloads, and how to say what became of each.

What was claimed is divided into such batches here.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from lowkiq_lambda.errors import BatchClosed
from lowkiq_lambda.job import Delivery, ScoredPayload, score_of


class HandlerContext(Protocol):
    """What a drain lets a handler know about its time and its lease."""

    @property
    def token(self) -> int:
        """The fencing token of the lease."""
        ...

    def remaining(self) -> float:
        """Seconds that are left."""
        ...

    def stopping(self) -> bool:
        """Whether to come to an end."""
        ...


@dataclass(frozen=True, slots=True)
class BatchJob:
    """One id of a batch. Scores and payloads are in order, oldest first.

    `repeated`: an earlier delivery of it may have run, wholly or in part, before its process died.
    `cursor` is where a checkpointed job goes on; None for one that starts.
    """

    id: str
    payloads: Sequence[Any]
    scores: Sequence[float]
    perform_in: float
    retry_count: float
    error: str | None
    repeated: bool
    context: HandlerContext = field(repr=False)
    cursor: Any = None

    @property
    def token(self) -> int:
        """As `Batch.token`."""
        return self.context.token

    @property
    def remaining(self) -> float:
        """As `Batch.remaining`."""
        return self.context.remaining()

    @property
    def stopping(self) -> bool:
        """As `Batch.stopping`."""
        return self.context.stopping()

    @property
    def scored_payloads(self) -> list[ScoredPayload]:
        """The payloads with their scores."""
        return [ScoredPayload(*pair) for pair in zip(self.payloads, self.scores, strict=True)]


class Batch(Mapping[str, list[Any]]):
    """A mapping of id to payloads, by score from old to new; with marks for what is done and what failed.

    When the handler returns, ids that were not failed are done. When it raises, marked ids keep their marks.
    """

    def __init__(
        self,
        payloads: dict[str, list[Any]],
        deliveries: Mapping[str, Delivery],
        context: HandlerContext,
        read_error: Callable[[bytes], str],
    ) -> None:
        self._payloads = payloads
        self._deliveries = deliveries
        self._context = context
        self._read_error = read_error
        self._marks: dict[str, BaseException | str | None] = {}
        self._returned: tuple[str, ...] = ()
        self._closed = False
        self._lock = Lock()

    def __getitem__(self, job_id: str) -> list[Any]:
        return self._payloads[job_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._payloads)

    def __len__(self) -> int:
        return len(self._payloads)

    def __repr__(self) -> str:
        return f"Batch({self._payloads!r})"

    @property
    def token(self) -> int:
        """The lease's fencing token: larger than that of every holder before, so a database can refuse the older."""
        return self._context.token

    @property
    def remaining(self) -> float:
        """Seconds until the drain wants to end."""
        return self._context.remaining()

    @property
    def stopping(self) -> bool:
        """Whether the handler should come to an end: the process stops, the lease is lost, or the queue is paused.

        A pause that comes while a batch runs is seen within a third of `lease_ttl`, when the lease is renewed.
        """
        return self._context.stopping()

    def job(self, job_id: str) -> BatchJob:
        """All that is known of one id of the batch. Raises KeyError for another."""
        delivery = self._deliveries[job_id]
        return BatchJob(
            id=job_id,
            payloads=copy.copy(self._payloads[job_id]),
            scores=[score_of(entry) for entry in delivery.entries],
            perform_in=delivery.perform_in,
            retry_count=delivery.retry_count,
            error=None if delivery.error is None else self._read_error(delivery.error),
            repeated=delivery.repeated,
            context=self._context,
        )

    def done(self, job_id: str) -> None:
        """The id was performed to its end, whatever happens to the rest. Again is no error."""
        self._mark(job_id, None)

    def fail(self, job_id: str, error: BaseException | str) -> None:
        """The id failed, and it alone; the others go on."""
        # Whatever is passed, even None, it is no success.
        reason: object = error
        self._mark(job_id, reason if isinstance(reason, BaseException | str) else repr(reason))

    def give_back(self, job_ids: Iterable[str]) -> None:
        """These ids, and no others, have not been performed to their end: they are returned as they were."""
        self._returned = tuple(job_ids)

    def close(self) -> tuple[dict[str, BaseException | str | None], tuple[str, ...]]:
        """End the batch: the marks, None for done, and what is returned. Later marks raise BatchClosed."""
        with self._lock:
            self._closed = True
            return self._marks, self._returned

    def _mark(self, job_id: str, mark: BaseException | str | None) -> None:
        if job_id not in self._deliveries:
            raise KeyError(f"{job_id!r} is not in this batch")
        with self._lock:
            if self._closed:
                raise BatchClosed
            if job_id in self._marks and (mark is None) != (self._marks[job_id] is None):
                before = "done" if self._marks[job_id] is None else "failed"
                raise ValueError(f"{job_id!r} is marked {before} already")
            self._marks.setdefault(job_id, mark)


def batches_of(deliveries: Sequence[Delivery], batch_size: int) -> list[list[Delivery]]:
    """Batches of at most `batch_size`, by the time of their first job.

    Fresh jobs and jobs in retry don't meet in a batch, and an id whose last failure was its own is alone in its
    batch: it would only take others down with it. One that exited comes last, too.
    """
    if all(delivery.retry_count < 0 and delivery.exit_count is None for delivery in deliveries):
        return list(_cut(deliveries, batch_size))
    others = [delivery for delivery in deliveries if delivery.exit_count is None]
    fresh = [delivery for delivery in others if delivery.retry_count < 0]
    failed = [delivery for delivery in others if delivery.retry_count >= 0 and not delivery.blamed]
    blamed = [delivery for delivery in others if delivery.retry_count >= 0 and delivery.blamed]
    batches = [*_cut(fresh, batch_size), *_cut(failed, batch_size), *_cut(blamed, 1)]
    exited = [delivery for delivery in deliveries if delivery.exit_count is not None]
    return [
        *sorted(batches, key=lambda batch: batch[0].perform_in),
        *_cut(sorted(exited, key=lambda delivery: delivery.exit_count or 0), 1),
    ]


def parted(deliveries: Sequence[Delivery], ids: Collection[str]) -> tuple[Sequence[Delivery], Sequence[Delivery]]:
    """Those of other ids, and those of these."""
    these = [delivery for delivery in deliveries if delivery.id in ids] if ids else []
    return [delivery for delivery in deliveries if delivery.id not in ids] if these else deliveries, these


def _cut(deliveries: Sequence[Delivery], size: int) -> Iterable[list[Delivery]]:
    return (list(deliveries[at : at + size]) for at in range(0, len(deliveries), size))
