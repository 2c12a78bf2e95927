"""The duty beside others: people, another app's duty, a move that stands, and schedules that cannot be had."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Auto
from lowkiq_lambda.engine import visit
from lowkiq_lambda.operate.auto import duty as duties
from lowkiq_lambda.operate.auto.duty import AutoDuty
from lowkiq_lambda.operate.auto.kept import KeptAuto, KeptByAnother, KeptChange, read_kept, write_kept
from lowkiq_lambda.operate.auto.memory import Memory
from lowkiq_lambda.reshard.group import GroupMove, Postponed
from lowkiq_lambda.reshard.resharding import Resharding
from lowkiq_lambda.stack.advice.loads import HOUR
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.testing import ManualClock
from tests.auto.sizing import ONE, WAITED, NotedSchedules, Sized, ignore
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.months import hours_before, keep_hours
from tests.kit.playing import MINUTE
from tests.kit.workers import declare

DAY = 86_400.0


@pytest.fixture(autouse=True)
def computes(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Handlers use a processor for half of their time, by the clock that is moved by hand."""
    monkeypatch.setattr(visit, "thread_time", lambda: clock.monotonic() / 2)


@pytest.fixture
def sized(make_app: MakeApp, clock: ManualClock, queue_name: str) -> Sized:
    """A queue of one shard that may act, and would with the next look."""
    sized = Sized(make_app, clock, queue_name)
    sized.arrive_late()
    sized.sized(7)
    sized.minute()
    return sized


def before_begin(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Once a duty has decided and is about to begin a move, this happens."""
    begin = Resharding.begin

    def beginning(resharding: Resharding, to: int, **of: Any) -> Layout:
        monkeypatch.setattr(Resharding, "begin", begin)
        act()
        return begin(resharding, to, **of)

    monkeypatch.setattr(Resharding, "begin", beginning)


def moves_of(sized: Sized) -> list[tuple[int, int]]:
    """Those that are remembered."""
    return [(move.shards, move.to) for move in sized.state.moves]


def test_two_duties_at_once_make_one_move(sized: Sized, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have decided before either begins: one lays the way, one line is written, and all ids arrive."""
    before_begin(monkeypatch, lambda: AutoDuty(sized.app.core).run(lambda: MINUTE))
    sized.look()

    assert (4, 1) == (sized.shards, len(sized.lines))
    assert [(1, 4)] == moves_of(sized)
    sized.sized(1)
    assert 1 == len(sized.lines)


def test_a_move_of_somebody_that_has_just_ended_stays(sized: Sized, monkeypatch: pytest.MonkeyPatch) -> None:
    """The duty decided about other shards than there are now: one wins, and it is the person."""
    before_begin(monkeypatch, lambda: sized.app.operate(sized.worker).reshard(to=16, unreplicated=True))

    sized.look()

    assert (16, [], []) == (sized.shards, sized.lines, moves_of(sized))
    sized.sized(1)
    assert ("refusal", "somebody is at it") == (sized.decision.answer, sized.decision.cause)
    assert (16, []) == (sized.shards, moves_of(sized))


def test_a_yes_during_a_look_is_remembered(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """The look has read the memory before, and does not write it back: the move counts."""
    sized = Sized(make_app, clock, queue_name, mode="propose")
    sized.arrive_late()
    sized.sized(8)
    auto = sized.app.operate(sized.worker).auto
    decision = auto.decide()

    def reading(*of: Any) -> KeptAuto:
        kept = read_kept(*of)
        patch.setattr(duties, "read_kept", read_kept)
        auto.do(decision, ignore)
        return kept

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duties, "read_kept", reading)
        sized.minute()
        sized.look()

    assert (4, [(1, 4)]) == (sized.shards, moves_of(sized))
    sized.sized(1)
    kept = read_kept(sized.app.core.backend, queue_name, 1.0)
    assert (1, None) == (len(kept.memory.moves), kept.memory.moved_by_hand)
    assert "proposal" != sized.decision.answer


def test_duties_of_two_apps_make_one_move(
    sized: Sized, make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apps that declare a queue with other bounds have a duty each."""
    other = make_app(namespace=queue_name, auto="act")
    declare(other, queue_name, Notes(), shards_count=Auto(least=1, most=2, unreplicated=True))
    before_begin(monkeypatch, lambda: AutoDuty(other.core).run(lambda: MINUTE))

    sized.look()

    assert [(1, 4)] == moves_of(sized)
    sized.sized(1)
    kept = read_kept(sized.app.core.backend, queue_name, 1.0)
    assert (4, [(1, 4)], None) == (sized.shards, moves_of(sized), kept.memory.moved_by_hand)


def test_a_memory_that_another_has_written_since_is_not_overwritten(sized: Sized, queue_name: str) -> None:
    """A repeat of the same write, as behind a lost reply, is none; of what comes with it nothing is written either."""
    backend = sized.app.core.backend
    read = read_kept(backend, queue_name, 1.0)
    mine, other = Memory(told="mine"), Memory(told="other")
    assert write_kept(backend, queue_name, 1.0, KeptChange(memory=other), read.stored)
    assert write_kept(backend, queue_name, 1.0, KeptChange(memory=other), read.stored)

    with pytest.raises(KeptByAnother, match=f"Another process has just decided about {queue_name}: decide again"):
        write_kept(backend, queue_name, 1.0, KeptChange(memory=mine, answered_at=1.0), read.stored)

    kept = read_kept(backend, queue_name, 1.0)
    assert ("other", 0.0) == (kept.memory.told, kept.answered_at)


def test_a_move_that_stands_keeps_no_other_queue_from_its_look(
    sized: Sized, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch holds the shard of the first, whose move uses all of its time."""
    second = declare(sized.app, f"{queue_name}-second", Notes(), shards_count=ONE)
    second.push_many([{"id": number, "perform_in": clock.time() - WAITED} for number in range(10)])
    monkeypatch.setattr(GroupMove, "run", lambda *_: Postponed(1.0, "its shards are held by batches that run long"))

    for _ in range(3):
        sized.look()
        decision = sized.app.operate(second).auto.state().decision
        assert decision is not None
        assert MINUTE >= clock.time() - decision.at
        sized.minute()
    assert "moving" == sized.decision.answer


def test_schedules_that_cannot_be_made_are_told_with_the_proposal(
    sized: Sized, caplog: pytest.LogCaptureFixture
) -> None:
    """No shard is made that nothing would drain; the reason is kept, said, and logged."""
    schedules = NotedSchedules()
    schedules.fails = True
    sized.duty = AutoDuty(sized.app.core, schedules)

    with caplog.at_level(logging.WARNING):
        sized.look()

    reason = "its schedules could not be made: no rights"
    assert (1, "proposal", (reason,)) == (sized.shards, sized.decision.answer, sized.decision.bars)
    assert [True] == [reason in line.target for line in sized.lines]
    assert reason in caplog.text
    schedules.fails = False
    sized.sized(1)
    assert 4 == sized.shards


def test_schedules_that_are_too_many_are_deleted_when_it_can_be_done(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """However long after the move back, and once."""
    sized = Sized(make_app, clock, queue_name, shards_count=Auto(least=1, back=True, unreplicated=True))
    schedules = NotedSchedules()
    sized.duty = AutoDuty(sized.app.core, schedules)
    sized.worker.push("a")
    sized.app.drain()
    sized.app.operate(sized.worker).reshard(to=2, unreplicated=True)
    clock.advance(8 * DAY)
    now = clock.time()
    keep_hours(sized.app.core.backend, queue_name, hours_before(now // HOUR * HOUR, 26, 1), 1.0)
    auto = sized.app.operate(sized.worker).auto
    auto.do(auto.decide(), ignore, schedules)
    schedules.fails = True
    for _ in range(4):
        clock.advance(MINUTE)
        sized.look()
    assert (1, []) == (sized.shards, schedules.deleted)

    schedules.fails = False
    for _ in range(2):
        clock.advance(MINUTE)
        sized.look()

    assert [(queue_name, {queue_name: 1})] == schedules.deleted
