"""Queues played on a real server: one that needs shards gets a proposal, or the shards, and no other does."""

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest
from msgspec.structs import replace

from lowkiq_lambda import Auto, BackendError, DeclarationError, LowkiqError, QueueMismatch, Rate
from lowkiq_lambda.engine import visit
from lowkiq_lambda.operate.auto import duty as duties
from lowkiq_lambda.operate.auto.kept import KeptAuto, read_kept
from lowkiq_lambda.operate.lateness.samples import Sample
from lowkiq_lambda.reshard.duty import STANDS_STILL, ReshardDuty
from lowkiq_lambda.reshard.group import GroupMove, Postponed
from lowkiq_lambda.reshard.resharding import Resharding
from lowkiq_lambda.stack.advice.loads import HOUR
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.testing import ManualClock
from tests.auto.sizing import MANY, WAITED, NotedSchedules, Sized, ignore
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.months import hours_before, keep_hours
from tests.kit.playing import MINUTE
from tests.kit.workers import declare

SAMPLE: Final = Sample(3_600.0, "1 1 0 0", 10, 0, 0, 10, 10, 5.0, 1.0, 9.0, 0, 0, 0.0, 0.5, 1.0, 5, ())


class DutyKilled(BaseException):
    """The process is gone."""


ARROWS: Final = {
    "before the move": (Resharding, "begin", False),
    "after its begin": (Resharding, "begin", True),
    "before its line": (duties, "record_action", False),
    "in a group": (GroupMove, "_carry", True),
    "at its end": (Resharding, "_arrive", False),
}
"""Where a duty dies, before or after the call."""


def killing(call: Any, *, is_after: bool) -> Callable[..., None]:
    """The call, in which the process dies."""

    def killed(*args: Any, **more: Any) -> None:
        if is_after:
            call(*args, **more)
        raise DutyKilled

    return killed


@pytest.fixture(autouse=True)
def computes(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Handlers use a processor for half of their time, by the clock that is moved by hand."""
    monkeypatch.setattr(visit, "thread_time", lambda: clock.monotonic() / 2)


@pytest.fixture
def sized(make_app: MakeApp, clock: ManualClock, queue_name: str) -> Sized:
    """A queue of one shard that may act."""
    return Sized(make_app, clock, queue_name)


@pytest.mark.parametrize("has_forecasts", [True, False])
def test_full_shards_become_more(sized: Sized, monkeypatch: pytest.MonkeyPatch, *, has_forecasts: bool) -> None:
    """After seven known minutes the queue is moved, and one line says why; also in a function, without a simulation."""
    if not has_forecasts:
        monkeypatch.setitem(sys.modules, "lowkiq_lambda.operate.auto.forecast", None)
    sized.arrive_late()

    decision = sized.sized(8)

    assert (4, "proposal", "shards", ()) == (sized.shards, decision.answer, decision.cause, decision.bars)
    (line,) = sized.lines
    assert ("auto", "reshard", 4) == (line.who, line.action, line.changed)
    assert line.target.startswith(
        "1 → 4 shards: for 7 of 7 min late shards were full, 1 of 1 in the last, slots 95% busy, oldest 18 minutes"
    )


def test_what_is_switched_off_says_so(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """The command line still tells what a queue needs."""
    sized = Sized(make_app, clock, queue_name, mode="off")
    sized.arrive_late()
    for _ in range(8):
        sized.minute()

    assert 'auto is "off"' == sized.app.operate(sized.worker).auto.decide().bars[0]


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


def test_waits_that_contradict_the_queue_are_not_told(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Nobody drained for half an hour: by its pushes the queue would keep its target, so they do not tell its waits."""
    bounds = Auto(least=1, lag=120.0, unreplicated=True)
    sized = Sized(make_app, clock, queue_name, shards_count=bounds)
    for number in range(45):
        sized.push(range(10 * number, 10 * number + 10))
        sized.minute(drains=number >= 30)

    decision = sized.sized(1)

    forecasts = dict(read_kept(sized.app.core.backend, queue_name, 1.0).memory.forecasts)
    assert ("proposal", "shards") == (decision.answer, decision.cause)
    assert 1 in forecasts
    assert max(forecasts.values()) < bounds.lag < sized.state.moves[0].lag_before
    assert (None, False) == (decision.expected, "expected" in decision.says)


PLAYED: Final[dict[str, Callable[[Sized], None]]] = {
    "failures": lambda sized: setattr(sized, "failing", lambda job_id: job_id.endswith("7")),
    "limits": lambda sized: sized.app.operate(sized.worker).limits.set(rate=Rate(10, per=60)),
    "processor": lambda sized: setattr(sized, "cpu", 0.97),
    "compute": lambda sized: setattr(sized, "threads", 0),
    "hot ids": lambda sized: sized.push(["hot"], payloads=9_000, waited=WAITED - 1),
}
"""What is done to a queue that needs shards, for another cause that stands before it."""


@pytest.mark.parametrize("cause", [pytest.param(cause, id=cause) for cause in PLAYED])
def test_another_cause_leaves_the_shards_alone(sized: Sized, cause: str) -> None:
    """The queue is as late, and as full where anybody drains; the activity has one line that says why it stays."""
    sized.arrive_late()
    PLAYED[cause](sized)

    decision = sized.sized(9, drains=cause != "compute")

    assert (1, "refusal", cause) == (sized.shards, decision.answer, decision.cause)
    (line,) = sized.lines
    assert ("auto", 0) == (line.action, line.changed)
    assert " and stays at 1: " in line.target


def test_slots_come_before_shards(sized: Sized, monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers wait, and their holders may let more of them run at once: that needs no move."""
    monkeypatch.setattr(visit, "thread_time", lambda: 0.0)
    sized.arrive_late()
    sized.minutes(9)
    monkeypatch.setattr(sized.worker, "concurrency", Auto(least=1, most=2))
    sized.look()

    assert (1, "refusal", "slots") == (sized.shards, sized.decision.answer, sized.decision.cause)


def test_where_code_fixes_the_slots_shards_are_made(sized: Sized, monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers wait, and nobody but a person can let more of them run at once: the line says that this is cheaper."""
    monkeypatch.setattr(visit, "thread_time", lambda: 0.0)
    sized.arrive_late()

    sized.sized()

    assert 4 == sized.shards
    (line,) = sized.lines
    assert line.target.endswith("; its calls wait, and with a higher concurrency no move is needed")


def test_slow_handlers_come_before_shards(sized: Sized) -> None:
    """For hours a call took a second, and now it takes three: a sick service gets no more calls."""
    sized.seconds = 1.0
    for _ in range(5):
        sized.push(range(30))
        sized.minute()
        sized.clock.advance(3_600 - 60)
    sized.seconds *= 3
    sized.arrive_late()

    decision = sized.sized()

    assert (1, "refusal", "slow handlers") == (sized.shards, decision.answer, decision.cause)


def test_of_two_causes_nothing_moves(sized: Sized) -> None:
    """A limit, and one id that has most of the work: the limit is told."""
    sized.arrive_late()
    PLAYED["hot ids"](sized)
    PLAYED["limits"](sized)

    assert (1, "limits") == (sized.sized().shards, sized.decision.cause)


def test_a_pause_of_somebody_is_theirs(sized: Sized) -> None:
    """No line is written of what the activity has already."""
    sized.arrive_late()
    sized.sized(5)
    sized.app.operate(sized.worker).pause()

    assert "somebody is at it" == sized.sized(4).cause
    assert ([], 1) == (sized.lines, sized.shards)


def test_a_refusal_is_told_once_an_hour(sized: Sized) -> None:
    """However long it lasts."""
    sized.arrive_late()
    sized.threads = 0

    sized.sized(70, drains=False)

    assert 2 == len(sized.lines)


def test_the_lag_is_back_under_its_target(sized: Sized) -> None:
    """The queue was late for want of shards: with them the backlog is gone, and the move counts as one that helped."""
    sized.arrive_late(range(250))
    sized.sized(8)
    assert 4 == sized.shards

    # The shards take turns here, as one thread plays all.
    sized.seconds /= 4
    sized.sized(33)

    assert "nothing" == sized.decision.answer
    (move,) = sized.state.moves
    assert move.lag_after is not None
    assert move.lag_after < move.lag_before / 2


def test_a_hot_id_has_its_measured_share(sized: Sized) -> None:
    """In the line of the activity, without its name."""
    sized.push(MANY, waited=WAITED)
    sized.push(["hot"], payloads=9_000, waited=WAITED - 1)

    says = sized.sized(9).says

    assert re.search("stays at 1: one id has [0-9]+% of the jobs in its shard", says)
    assert "hot" not in says


def test_a_hold_stops_it_and_a_release_ends_that(sized: Sized) -> None:
    """Nothing moves meanwhile, and the state says who has stopped it."""
    sized.arrive_late()
    auto = sized.app.operate(sized.worker).auto
    until = auto.hold(7 * 86_400, by="ann")
    decision = sized.sized(9)
    assert (1, "refusal") == (sized.shards, decision.answer)
    assert decision.says.endswith("stays at 1: somebody has stopped it here")
    assert (until, "ann") == (sized.state.held_until, sized.state.held_by)

    auto.release()

    assert (4, None) == (sized.sized(1).to, sized.state.held_until)
    assert 4 == sized.shards


def test_a_move_that_stands_is_turned_round(sized: Sized, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch holds the shard for more than ten minutes: the ids stay where they were, and the queue rests."""
    sized.arrive_late()
    sized.sized(7)
    with monkeypatch.context() as patch:
        patch.setattr(GroupMove, "run", lambda *_: Postponed(1.0, "its shards are held by batches that run long"))
        sized.minute()
        sized.look(2.0)
        assert sized.app.operate(sized.worker).resharding().layout.is_moving
        sized.clock.advance(590.0)
        sized.look(2.0)
        assert "moving" == sized.decision.answer
        assert 4 == sized.shards
        sized.clock.advance(10.0)
        sized.look(2.0)
    sized.look()

    assert (1, False) == (sized.shards, sized.app.operate(sized.worker).resharding().layout.is_moving)
    assert [True] == [move.is_turned for move in sized.state.moves]
    assert "was turned round" in sized.lines[0].target
    sized.clock.advance(3_600)
    assert "its last move had to be turned round, so it rests" in sized.sized(9).says


@pytest.mark.parametrize("arrow", ["before the move", "after its begin", "before its line", "in a group", "at its end"])
def test_a_duty_may_die_at_each_arrow(sized: Sized, monkeypatch: pytest.MonkeyPatch, arrow: str) -> None:
    """The next one finds its own move: it is made once and told once, nothing is lost, and it is nobody else's."""
    owner, name, is_after = ARROWS[arrow]
    sized.arrive_late()
    sized.sized(7)
    sized.minute()
    with monkeypatch.context() as patch, suppress(DutyKilled):
        patch.setattr(owner, name, killing(getattr(owner, name), is_after=is_after))
        sized.look()

    sized.clock.advance(STANDS_STILL)
    ReshardDuty(sized.app.core).run(lambda: MINUTE)
    sized.look()
    sized.sized(2)

    assert (4, [(1, 4)]) == (sized.shards, [(move.shards, move.to) for move in sized.state.moves])
    (line,) = sized.lines
    assert ("reshard", 4, True) == (line.action, line.changed, line.target.startswith("1 → 4 shards: for "))
    assert None is read_kept(sized.app.core.backend, sized.worker.queue_name, 1.0).memory.moved_by_hand
    assert sized.done == len(MANY) - sized.length


def test_a_count_in_code_is_accepted_beside_auto(sized: Sized, make_app: MakeApp) -> None:
    """Two releases: the older code declares a number that the queue never had, and pushes where the ids are."""
    name = sized.worker.queue_name
    sized.arrive_late()
    sized.sized(8)
    older = declare(make_app(namespace=name), name, Notes(), shards_count=7)

    older.push_many([{"id": 1}, {"id": "new"}])

    assert 4 == sized.app.operate(sized.worker).resharding().layout.after
    assert 1 == sum(job.id == "1" for job in sized.app.operate(sized.worker).waiting.fetch(["1"]))


def test_code_and_a_command_with_the_same_number_end_the_count_of_the_queue(
    sized: Sized, make_app: MakeApp, queue_name: str
) -> None:
    """From then on code with another number is refused again, as for each queue that declares one."""
    app = make_app(namespace=queue_name)
    worker = declare(app, queue_name, Notes(), shards_count=2)
    sized.worker.push_many([{"id": n} for n in range(5)])
    worker.push_many([{"id": "beside"}])
    app.operate(worker).reshard(to=2, unreplicated=True)
    other = declare(make_app(namespace=queue_name), queue_name, Notes(), shards_count=7)

    with pytest.raises(QueueMismatch):
        other.push_many([{"id": 1}])
    assert 6 == app.operate.stats()["by_worker"][queue_name]["length"]


def test_a_yes_counts_for_the_shards_that_it_was_asked_about(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """A queue that has moved since is left alone; before a move its schedules are made, and none without them."""
    sized = Sized(make_app, clock, queue_name, mode="propose")
    sized.arrive_late()
    sized.sized(8)
    auto, schedules = sized.app.operate(sized.worker).auto, NotedSchedules()
    decision = auto.decide()
    with pytest.raises(LowkiqError, match="1 shards, not 2: decide again"):
        auto.do(replace(decision, shards=2), ignore)
    schedules.fails = True
    with pytest.raises(LowkiqError, match="no rights"):
        auto.do(decision, ignore, schedules)
    assert (1, ()) == (sized.shards, sized.state.moves)

    schedules.fails = False
    auto.do(decision, ignore, schedules)

    assert (4, [(queue_name, 4)]) == (sized.shards, schedules.made)


def test_a_move_that_breaks_off_is_gone_on_with(sized: Sized, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line is written all the same, and the duty of moves ends it."""
    sized.arrive_late()
    with monkeypatch.context() as patch:

        def break_off(*_: object) -> bool:
            raise BackendError("one slot is away")

        patch.setattr(Resharding, "go_on", break_off)
        sized.sized(9)
    assert (["reshard"], "moving") == ([line.action for line in sized.lines], sized.decision.answer)

    sized.clock.advance(STANDS_STILL)
    ReshardDuty(sized.app.core).run(lambda: MINUTE)

    assert (4, False) == (sized.shards, sized.app.operate(sized.worker).resharding().layout.is_moving)


def test_a_queue_that_cannot_be_looked_at_keeps_no_other_from_it(
    sized: Sized, monkeypatch: pytest.MonkeyPatch, queue_name: str
) -> None:
    """The error of the first is raised when all have had their look."""
    declare(sized.app, f"{queue_name}-other", Notes(), shards_count=Auto(least=1))
    names: list[str] = []

    def reading(backend: Backend, name: str, retry_for: float) -> KeptAuto:
        names.append(name)
        if name == queue_name:
            raise BackendError("one slot is away")
        return read_kept(backend, name, retry_for)

    monkeypatch.setattr(duties, "read_kept", reading)
    with pytest.raises(BackendError, match="one slot is away"):
        sized.look()

    assert [queue_name, f"{queue_name}-other"] == names


def test_a_way_back_keeps_away_from_what_somebody_does(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Half the shards would do since a day, and a pause is the work of somebody."""
    sized = Sized(make_app, clock, queue_name, shards_count=Auto(least=1, back=True, unreplicated=True))
    auto = sized.app.operate(sized.worker).auto
    sized.worker.push("a")
    sized.app.drain()
    sized.app.operate(sized.worker).reshard(to=2, unreplicated=True)
    clock.advance(3_600.0)
    backend, now = sized.app.core.backend, clock.time()
    keep_hours(backend, queue_name, hours_before(now // HOUR * HOUR, 26, 1), 1.0)
    assert 1 == auto.decide().to

    sized.app.operate(sized.worker).pause()

    assert "nothing" == auto.decide().answer


def test_a_new_queue_has_the_least(make_app: MakeApp, queue_name: str) -> None:
    """Until it is moved; and code that says "auto" finds a queue of any count as it is."""
    first = declare(make_app(namespace=queue_name), queue_name, Notes(), shards_count=3)
    first.push_many([{"id": 1}])
    app = make_app(namespace=queue_name)
    second = declare(app, queue_name, Notes(), shards_count="auto")
    other = declare(app, f"{queue_name}-new", Notes(), shards_count=Auto(least=2))

    second.push_many([{"id": 2}])
    other.push_many([{"id": 2}])

    assert (3, 2) == (len(app.core.queues.agreed(second).shards), len(app.core.queues.agreed(other).shards))


def test_a_word_that_is_nearly_auto_is_told(make_app: MakeApp, queue_name: str) -> None:
    """The error names the word that may stand there."""
    with pytest.raises(
        DeclarationError, match=r"shards_count must be a whole number from 1 to 100,000 or \"auto\", not"
    ):
        declare(make_app(), queue_name, Notes(), shards_count="atuo")
