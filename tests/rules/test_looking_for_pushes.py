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

    def __init__(self, app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch, *, concurrency: int = 2) -> None:
        self.app = app
        self.settled = 0
        self.may_end = threading.Event()
        self.first_may_end = threading.Event()
        self.crowd = Crowd(lambda batch: wait_for(self.first_may_end if "a" in batch else self.may_end))
        self.worker: type[Worker] = declare_threads(app, queue_name, self.crowd, concurrency=concurrency)
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
                self.has_looked()
            yield
        finally:
            self.first_may_end.set()
            self.may_end.set()
            thread.join()

    def has_looked(self) -> None:
        """The visit has looked for more in vain."""
        eventually(lambda: self._visit._empty_looks > 0)

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


def test_a_push_that_no_slot_was_free_for_begins_in_the_first_that_becomes_free(
    visited: Visited, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No outcome is due, and no later push rings, as the first one waits: the look comes of what was heard before."""
    # As of a server that takes its time: more is asked for before a slot is free.
    monkeypatch.setattr("lowkiq_lambda.engine.side_by_side.low_mark", lambda *_: 1)
    with visited.with_running("ab"):
        visited.has_looked()
        visited.worker.push_many(jobs_of("c"))
        visited.ring()
        visited.first_may_end.set()
        clock.advance(SOONEST_LOOK)
        eventually(lambda: ["c"] == visited.crowd.begun[2:])

        assert ["a"] == visited.crowd.ended


def test_a_claim_that_leaves_nothing_due_is_the_last_look_before_a_push(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    """A push costs one command of the visit, with a slot free behind it."""
    visited = Visited(app, queue_name, monkeypatch, concurrency=3)
    with visited.with_running("a"):
        before = visited.settled
        visited.worker.push_many(jobs_of("b"))
        visited.ring()
        clock.advance(SOONEST_LOOK)
        eventually(lambda: ["a", "b"] == visited.crowd.begun)
        # It is taken note of behind all that the claim has led to.
        visited.ring()

        assert before + 1 == visited.settled
