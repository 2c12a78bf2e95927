"""A visit with a free slot that hears of a push looks at once; where none is free it costs nothing."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.engine.side_by_side import SOONEST_LOOK, ConcurrentVisit
from lowkiq_lambda.store.shard.session import LeaseSession
from lowkiq_lambda.testing import ManualClock
from tests.kit.beside import Crowd, declare_threads, wait_for
from tests.kit.waiting import eventually
from tests.kit.workers import jobs_of


class Visited:
    """A shard that is visited by a thread of its own, whose batches run until they are let go."""

    def __init__(self, app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app = app
        self.settled = 0
        self.may_end = threading.Event()
        self.crowd = Crowd(lambda _: wait_for(self.may_end))
        self.worker: type[Worker] = declare_threads(app, queue_name, self.crowd, concurrency=2)
        settle = LeaseSession.settle

        def counted(session: LeaseSession, *given: Any, **options: Any) -> Any:
            self.settled += 1
            return settle(session, *given, **options)

        monkeypatch.setattr(LeaseSession, "settle", counted)

    @contextmanager
    def with_running(self, ids: str) -> Iterator[None]:
        """While these run, and the visit has looked for more in vain, if it has a slot for that."""
        self.worker.push_many(jobs_of(ids))
        thread = threading.Thread(target=self.app.drain)
        thread.start()
        try:
            eventually(lambda: sorted(ids) == sorted(self.crowd.begun))
            if len(ids) < 2:
                eventually(lambda: self._visit._empty_looks > 0)
            yield
        finally:
            self.may_end.set()
            thread.join()

    def ring(self) -> None:
        """A push is heard of, and the visit has taken note of it."""
        self.app.core.drains.drainer.ring(self.app.core.drains.drainer.shards())
        eventually(lambda: not self._visit._is_rung)

    @property
    def _visit(self) -> ConcurrentVisit:
        (visit,) = self.app.core.drains.drainer._running
        assert isinstance(visit, ConcurrentVisit)
        return visit


@pytest.fixture
def visited(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> Visited:
    """Such a shard."""
    return Visited(app, queue_name, monkeypatch)


def test_a_push_that_is_heard_of_begins_in_a_free_slot(visited: Visited, clock: ManualClock) -> None:
    """Nothing has ended and no look is due, so the push alone brought it: five milliseconds after the last look."""
    with visited.with_running("a"):
        visited.worker.push_many(jobs_of("b"))
        visited.ring()
        clock.advance(SOONEST_LOOK)
        eventually(lambda: ["a", "b"] == visited.crowd.begun)

        assert [] == visited.crowd.ended


def test_however_often_it_rings_a_visit_looks_once_in_five_milliseconds(visited: Visited, clock: ManualClock) -> None:
    """The clock decides: what rings before has its look then, in one command."""
    with visited.with_running("a"):
        before = visited.settled
        for _ in range(5):
            visited.ring()
        assert before == visited.settled
        clock.advance(SOONEST_LOOK)
        eventually(lambda: before < visited.settled)
        visited.ring()

        assert before + 1 == visited.settled


def test_a_push_costs_no_command_where_no_slot_is_free(visited: Visited, clock: ManualClock) -> None:
    """The end of a batch brings a claim with it."""
    with visited.with_running("ab"):
        before = visited.settled
        visited.worker.push_many(jobs_of("c"))
        visited.ring()
        clock.advance(1.0)
        visited.ring()

        assert before == visited.settled
    assert ["c"] == visited.crowd.begun[2:]
