"""Lowkiq's own names of `Queue::Queries` and `Queue::Actions`, for those that come from it. The list is closed.

Each is one call of `app.operate(worker)`, and has no other home: nothing in this library uses them.
"""

from collections.abc import Iterable

from lowkiq_lambda.jobs.job import JobView, MorgueJob
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.views.jobs import Page

_LIMIT = 10
"""Jobs of a list, as in Lowkiq."""


class Queries:
    """The result of `app.operate.queries(worker)`. `rev_` lists begin at the end; their bounds come in that order."""

    def __init__(self, queue: QueueOperations) -> None:
        self._waiting = queue.waiting
        self._morgue = queue.morgue

    def fetch(self, ids: Iterable[object]) -> list[JobView]:
        """`waiting.fetch(ids)`."""
        return self._waiting.fetch(ids)

    def morgue_fetch(self, ids: Iterable[object]) -> list[MorgueJob]:
        """`morgue.fetch(ids)`."""
        return self._morgue.fetch(ids)

    def range_by_id(self, min: str = "-", max: str = "+", *, limit: int = _LIMIT) -> Page[JobView]:  # noqa: A002 - the name in Lowkiq
        """`waiting.list("id", min, max, limit)`."""
        return self._waiting.list("id", min, max, limit)

    def rev_range_by_id(self, max: str = "+", min: str = "-", *, limit: int = _LIMIT) -> Page[JobView]:  # noqa: A002 - as above
        """`waiting.list("id", min, max, limit, reverse=True)`."""
        return self._waiting.list("id", min, max, limit, reverse=True)

    def range_by_perform_in(
        self,
        min: float | str = "-inf",  # noqa: A002 - as above
        max: float | str = "+inf",  # noqa: A002 - as above
        *,
        limit: int = _LIMIT,
    ) -> Page[JobView]:
        """`waiting.list("due_at", min, max, limit)`."""
        return self._waiting.list("due_at", min, max, limit)

    def rev_range_by_perform_in(
        self,
        max: float | str = "+inf",  # noqa: A002 - as above
        min: float | str = "-inf",  # noqa: A002 - as above
        *,
        limit: int = _LIMIT,
    ) -> Page[JobView]:
        """`waiting.list("due_at", min, max, limit, reverse=True)`."""
        return self._waiting.list("due_at", min, max, limit, reverse=True)

    def range_by_retry_count(
        self,
        min: float | str = "-inf",  # noqa: A002 - as above
        max: float | str = "+inf",  # noqa: A002 - as above
        *,
        limit: int = _LIMIT,
    ) -> Page[JobView]:
        """`waiting.list("retry_count", min, max, limit)`."""
        return self._waiting.list("retry_count", min, max, limit)

    def rev_range_by_retry_count(
        self,
        max: float | str = "+inf",  # noqa: A002 - as above
        min: float | str = "-inf",  # noqa: A002 - as above
        *,
        limit: int = _LIMIT,
    ) -> Page[JobView]:
        """`waiting.list("retry_count", min, max, limit, reverse=True)`."""
        return self._waiting.list("retry_count", min, max, limit, reverse=True)

    def morgue_range_by_id(self, min: str = "-", max: str = "+", *, limit: int = _LIMIT) -> Page[MorgueJob]:  # noqa: A002 - as above
        """`morgue.list("id", min, max, limit)`."""
        return self._morgue.list("id", min, max, limit)

    def morgue_rev_range_by_id(self, max: str = "+", min: str = "-", *, limit: int = _LIMIT) -> Page[MorgueJob]:  # noqa: A002 - as above
        """`morgue.list("id", min, max, limit, reverse=True)`."""
        return self._morgue.list("id", min, max, limit, reverse=True)

    def morgue_range_by_updated_at(
        self,
        min: float | str = "-inf",  # noqa: A002 - as above
        max: float | str = "+inf",  # noqa: A002 - as above
        *,
        limit: int = _LIMIT,
    ) -> Page[MorgueJob]:
        """`morgue.list("updated_at", min, max, limit)`."""
        return self._morgue.list("updated_at", min, max, limit)

    def morgue_rev_range_by_updated_at(
        self,
        max: float | str = "+inf",  # noqa: A002 - as above
        min: float | str = "-inf",  # noqa: A002 - as above
        *,
        limit: int = _LIMIT,
    ) -> Page[MorgueJob]:
        """`morgue.list("updated_at", min, max, limit, reverse=True)`."""
        return self._morgue.list("updated_at", min, max, limit, reverse=True)


class Actions:
    """The result of `app.operate.actions(worker)`. Each method returns how many ids it changed."""

    def __init__(self, queue: QueueOperations) -> None:
        self._waiting = queue.waiting
        self._morgue = queue.morgue

    def perform_all_jobs_now(self) -> int:
        """`waiting.run_now(everything=True)`."""
        return self._waiting.run_now(everything=True)

    def kill_all_failed_jobs(self) -> int:
        """`waiting.kill(everything=True)`."""
        return self._waiting.kill(everything=True)

    def delete_all_failed_jobs(self) -> int:
        """`waiting.delete(filter={"least_count": "0"})`."""
        return self._waiting.delete(filter={"least_count": "0"})

    def morgue_queue_up(self, ids: Iterable[object]) -> int:
        """`morgue.requeue(ids)`."""
        return self._morgue.requeue(ids)

    def morgue_queue_up_all_jobs(self) -> int:
        """`morgue.requeue(everything=True)`."""
        return self._morgue.requeue(everything=True)

    def morgue_delete(self, ids: Iterable[object]) -> int:
        """`morgue.delete(ids)`."""
        return self._morgue.delete(ids)

    def morgue_delete_all_jobs(self) -> int:
        """`morgue.delete(everything=True)`."""
        return self._morgue.delete(everything=True)
