"""What tests claim of the queues of an app; a claim that does not hold says what there is."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import worker_of
from lowkiq_lambda.jobs.job import JobView, MorgueJob, ScoredPayload

JobId: TypeAlias = str | int
_PAGE: Final = 1_000
_SHOWN: Final = 10


class Assertions:
    """Claims of what waits, and what is in the morgue, on the server that the app is bound to."""

    def __init__(self, app: Lowkiq) -> None:
        self.app = app

    def assert_pushed(self, worker: AnyWorker, *, id: JobId | None = None, count: int | None = None) -> None:
        """Payloads wait in the queue, of this id if one is given; exactly `count` of them if that is given.

        Equal payloads of an id have merged into one.
        """
        jobs = self._waiting(worker, id)
        payloads = sum(len(job.payloads) + job.more_payloads for job in jobs)
        if payloads == 0 if count is None else payloads != count:
            expected = "a waiting payload" if count is None else f"{count} waiting payload{'' if count == 1 else 's'}"
            raise AssertionError(f"{self._where(worker, id)}: expected {expected}, found {_told(jobs)}")

    def assert_not_pushed(self, worker: AnyWorker, *, id: JobId | None = None) -> None:
        """Nothing waits in the queue, or under this id if one is given."""
        self.assert_pushed(worker, id=id, count=0)

    def assert_empty(self, *workers: AnyWorker) -> None:
        """Nothing waits in these queues (or in any of the app), nothing is in flight, and nothing is in the morgue."""
        for worker in workers or self.app.workers:
            self.assert_pushed(worker, count=0)
            queue = self.app.operate(worker)
            if running := queue.in_flight.list():
                raise AssertionError(f"{self._where(worker, None)}: expected nothing in flight, found {_told(running)}")
            if dead := self._dead(worker, None):
                raise AssertionError(f"{self._where(worker, None)}: expected an empty morgue, found {_told(dead)}")

    def assert_dead(self, worker: AnyWorker, *, id: JobId | None = None, error: str | None = None) -> None:
        """A job is in the morgue, of this id if one is given, with an error that has this text if one is given."""
        dead = self._dead(worker, id)
        if not any(error is None or error in (job.error or "") for job in dead):
            expected = "a job in the morgue" if error is None else f"a job in the morgue with {error!r}"
            instead = _told(dead) if dead else f"none there; what waits: {_told(self._waiting(worker, id))}"
            raise AssertionError(f"{self._where(worker, id)}: expected {expected}, found {instead}")

    def assert_order(self, worker: AnyWorker, id: JobId, payloads: Iterable[Any]) -> None:
        """Exactly these payloads wait under the id, in this order. They are compared as the handler would get them."""
        expected = list(payloads)
        jobs = self._waiting(worker, id)
        order = [self._as_given(worker, one) for job in jobs for one in job.payloads]
        if expected != order:
            raise AssertionError(f"{self._where(worker, id)}: expected {expected!r}, found {order!r}")

    def _as_given(self, worker: AnyWorker, payload: ScoredPayload) -> object:
        kind = worker_of(worker).payload
        if kind is None:
            return payload.payload
        from lowkiq_lambda.declare.payloads import payload_type  # noqa: PLC0415 - only where a type is declared

        return payload_type(kind).load(payload.payload)

    def _waiting(self, worker: AnyWorker, id: JobId | None) -> list[JobView]:
        queue = self.app.operate(worker)
        if id is not None:
            return queue.waiting.fetch([id])
        page = queue.waiting.list("id", limit=_PAGE)
        jobs = [*page]
        while page.next:
            page = queue.waiting.list("id", limit=_PAGE, after=page.next)
            jobs += page
        return jobs

    def _dead(self, worker: AnyWorker, id: JobId | None) -> list[MorgueJob]:
        queue = self.app.operate(worker)
        return [*queue.morgue.list("id", limit=_PAGE)] if id is None else queue.morgue.fetch([id])

    def _where(self, worker: AnyWorker, id: JobId | None) -> str:
        name = worker_of(worker).queue_name
        return name if id is None else f"{name}, id {id!r}"


def _told(jobs: Iterable[JobView | MorgueJob]) -> str:
    listed = [f"{job.id!r}: {[payload for payload, _ in job.payloads]!r}" for job in jobs]
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return f"{', '.join(listed[:_SHOWN])}{more}" if listed else "nothing"
