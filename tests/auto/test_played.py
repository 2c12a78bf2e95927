"""Queues played on a real server: one that needs shards gets a proposal, or the shards, and no other does."""

import pytest

from lowkiq_lambda.engine import visit
from lowkiq_lambda.testing import ManualClock
from tests.auto.sizing import Sized
from tests.kit.apps import MakeApp


@pytest.fixture(autouse=True)
def computes(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Handlers use a processor for half of their time, by the clock that is moved by hand."""
    monkeypatch.setattr(visit, "thread_time", lambda: clock.monotonic() / 2)


@pytest.fixture
def sized(make_app: MakeApp, clock: ManualClock, queue_name: str) -> Sized:
    """A queue of one shard that may act."""
    return Sized(make_app, clock, queue_name)


def test_full_shards_become_more(sized: Sized) -> None:
    """After seven known minutes the queue is moved, and the activity has one line that says why."""
    sized.arrive_late()

    decision = sized.sized(8)

    assert (4, "proposal", "shards", ()) == (sized.shards, decision.answer, decision.cause, decision.bars)
    (line,) = sized.lines
    assert ("auto", "reshard", 4) == (line.who, line.action, line.changed)
    assert line.target.startswith("1 → 4 shards: for 7 of 8 min all were held, slots 98% busy, oldest 18 minutes")


def test_a_proposal_waits_for_a_yes(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """By default nothing moves: the line says what would, and `do` carries it out."""
    sized = Sized(make_app, clock, queue_name, mode="propose")
    sized.arrive_late()
    decision = sized.sized()
    assert (1, 4, ('auto is "propose"',)) == (sized.shards, decision.to, decision.bars)
    assert ["auto"] == [line.action for line in sized.lines]

    auto = sized.app.operate(sized.worker).auto
    auto.do(auto.decide(), lambda *_: None)

    assert 4 == sized.shards
    assert [(1, 4)] == [(move.shards, move.to) for move in sized.state.moves]
