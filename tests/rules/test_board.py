"""What a board knows about its shards: which news counts, who is woken by it, and that threads may share one."""

import threading
from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

import pytest
from msgspec.structs import replace

from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.errors import BackendError, BackendUnavailable, QueueMismatch
from lowkiq_lambda.engine.board import UNCHOSEN, ShardBoard
from lowkiq_lambda.engine.budget import VisitResult
from lowkiq_lambda.engine.shard_queue import Rests
from lowkiq_lambda.local.overrides import LagScheduler, SeqScheduler
from lowkiq_lambda.settings.protocols import Scheduler, State
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult
from lowkiq_lambda.testing import ManualClock
from tests.kit.waiting import eventually

A, B = (ShardRef("queue", 2, index) for index in range(2))


SETTLED = VisitResult("empty", token=1)
"""A visit like most."""


def board_of(clock: Clock, *shards: ShardRef) -> ShardBoard:
    """A board with the rests of a daemon that polls each second, and without chance."""
    return ShardBoard(shards, clock, 1.0, Rests.of_daemon(1.0))


def probed(shard: ShardRef, ready_in: float | None, *, risky: bool = False) -> ProbeResult:
    """What a probe brings."""
    lag = max(0.0, -(ready_in or 0.0))
    has_work = ready_in is not None and ready_in <= 0
    obstacle: Literal["empty"] | None = None if has_work else "empty"
    return ProbeResult(shard, has_work, lag, None, ready_in, obstacle, is_open=True, risky=risky)


@pytest.fixture
def clock() -> ManualClock:
    """The time."""
    return ManualClock()


@pytest.fixture
def board(clock: ManualClock) -> ShardBoard:
    """Two shards of which nothing is known."""
    return board_of(clock, A, B)


def lags(board: ShardBoard) -> dict[ShardRef, float | None]:
    """The shards with work, and how long it has waited."""
    return {view.ref: view.lag for view in board.views() if view.has_work}


@pytest.mark.parametrize(("other", "woken"), [(None, 0), (10.0, 1)])
def test_a_thread_that_takes_the_only_work_wakes_no_other(
    board: ShardBoard, monkeypatch: pytest.MonkeyPatch, other: float | None, woken: int
) -> None:
    """One is enough for a push; a second one is needed only to watch the clock for what comes later."""
    board.update([probed(B, other)], board.events)
    board.notify([A])
    notified: list[int] = []
    monkeypatch.setattr(board._changed, "notify", lambda count=1: notified.append(count))

    assert A == board.next()

    assert woken == len(notified)


def test_nothing_has_work_before_somebody_says_so(board: ShardBoard) -> None:
    """A thread starts with a probe's word, not with a visit to each shard."""
    assert {} == lags(board)
    assert not board.others_have_work()
    assert board.next() is None


def test_a_probe_says_since_when_and_from_when_on(board: ShardBoard, clock: ManualClock) -> None:
    """What is due has its lag, what is not becomes due by the clock alone."""
    board.update([probed(A, -3.0), probed(B, 2.0)], board.events)

    assert {A: 3.0} == lags(board)
    clock.advance(2.0)
    assert {A: 5.0, B: 0.0} == lags(board)


def test_a_notification_counts_more_than_a_probe_that_was_asked_before(board: ShardBoard, clock: ManualClock) -> None:
    """A probe may have been answered before the push: its older word must not silence the shard."""
    asked = board.events
    clock.advance(0.01)
    board.notify([A])
    clock.advance(0.01)
    board.update([probed(A, None), probed(B, None)], asked)

    assert [A] == list(lags(board))
    clock.advance(0.01)
    board.update([probed(A, None)], board.events)
    assert {} == lags(board)


def test_a_notification_during_a_visit_brings_another_visit(board: ShardBoard) -> None:
    """The visit's last claim may have come before the push."""
    board.notify([A])
    assert A == board.next()
    board.notify([A])
    assert board.next() is None
    board.visited(A, SETTLED, None)

    assert A == board.next()
    board.visited(A, SETTLED, None)
    assert {} == lags(board)


def test_a_visit_that_claims_after_a_notification_brings_no_other(board: ShardBoard) -> None:
    """Its claim has found the push; one that comes after the claim brings another visit."""
    board.notify([A])
    assert A == board.next()
    board.notify([A])
    board.note_claim(A)
    board.visited(A, SETTLED, None)

    assert board.next() is None
    board.notify([A])
    assert A == board.next()
    board.note_claim(A)
    board.notify([A])
    board.visited(A, SETTLED, None)
    assert A == board.next()


def test_a_claim_whose_reply_was_lost_has_found_nothing(board: ShardBoard) -> None:
    """With the lease lost the visit does not know what its claim has brought."""
    board.notify([A])
    assert A == board.next()
    board.notify([A])
    board.note_claim(A)
    board.visited(A, VisitResult("lease lost", token=1), None)

    assert A == board.next()


def test_a_notification_does_not_shorten_the_lag(board: ShardBoard) -> None:
    """A shard that has waited keeps its place before those that have not."""
    board.update([probed(A, -3.0)], board.events)
    board.notify([A])

    assert {A: 3.0} == lags(board)


def test_a_shard_that_failed_rests_whoever_pushes(board: ShardBoard, clock: ManualClock) -> None:
    """What goes wrong each time is no busy loop."""
    board.notify([A])
    board.failed(A, BackendError())
    board.notify([A])
    clock.advance(0.05)
    board.update([probed(A, -9.0)], board.events)

    assert {} == lags(board)
    assert board.is_resting(A)
    clock.advance(0.06)
    assert [A] == list(lags(board))


@pytest.mark.parametrize(
    ("error", "rests"),
    [
        (BackendError(), [0.1, 0.2, 0.4]),
        (ZeroDivisionError(), [0.1, 0.2, 0.4]),
        (BackendUnavailable(), [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]),
        (QueueMismatch(), [60.0, 60.0]),
    ],
)
def test_a_shard_rests_twice_as_long_each_time_until_a_visit_succeeds(
    board: ShardBoard, clock: ManualClock, error: Exception, rests: list[float]
) -> None:
    """An outage is to be noticed soon when it is over; another declaration stays for long."""
    for rest in rests:
        board.failed(A, error)
        now = clock.monotonic()
        assert rest == pytest.approx(board.wait_until() - now)
        clock.advance(rest)
    board.visited(A, SETTLED, 0.0)
    assert not board.is_resting(A)
    board.failed(A, error)
    assert rests[0] == pytest.approx(board.wait_until() - clock.monotonic())


def test_a_shard_that_failed_comes_behind_those_that_have_not(board: ShardBoard, clock: ManualClock) -> None:
    """P6: however late it is, and whatever a probe says of it, a shard that waited meanwhile has its turn first."""
    board.update([probed(A, -100.0), probed(B, 0.05)], board.events)
    board.failed(A, BackendError())
    clock.advance(0.15)
    board.update([probed(A, -101.5), probed(B, -0.1)], board.events)

    assert B == board.next()
    board.visited(B, SETTLED, 0.1)
    clock.advance(0.5)
    assert A == board.next()
    board.visited(A, SETTLED, -100.0)
    assert A == board.next()


def test_a_shard_whose_handler_exits_waits_behind_the_others(board: ShardBoard, clock: ManualClock) -> None:
    """P6: two shards that exit at each visit do not starve a third; after its turn one has waited enough."""
    board.update([probed(A, -100.0), probed(B, -1.0)], board.events)
    exited = SystemExit(3)
    assert A == board.next()
    board.visited(A, VisitResult("exited", token=1, exit=exited), -100.0)
    assert board.is_resting(A)
    clock.advance(0.2)
    assert B == board.next()
    board.visited(B, VisitResult("turn over", token=1, exit=exited), -1.0)
    assert not board.is_resting(B)
    assert A == board.next()


def test_a_shard_that_may_end_the_process_comes_behind_what_has_work_by_then(
    board: ShardBoard, clock: ManualClock
) -> None:
    """P6: from the moment that it is known to be risky it queues up anew, once; so it has its turn all the same."""
    taken = []
    for _ in range(3):
        board.update([probed(A, -100.0, risky=True), probed(B, -3.0)], board.events)
        shard = board.next()
        assert shard is not None
        taken.append(shard)
        clock.advance(2.0)
        board.visited(shard, SETTLED, -3.0)

    assert [B, B, A] == taken


def test_a_turn_ends_only_where_another_shard_waits(board: ShardBoard, clock: ManualClock) -> None:
    """Its own work is no reason for a thread to leave a shard, nor is what another thread visits."""
    board.notify([A])
    assert A == board.next()
    is_over = board.turn()
    clock.advance(0.3)
    board.notify([A])

    assert not is_over()
    board.notify([B])
    assert is_over()
    clock.advance(-0.1)
    assert not is_over()
    clock.advance(0.1)
    assert B == board.next()
    assert not is_over()


def test_e100_turns_alternate_between_two_shards_that_never_end(board: ShardBoard, clock: ManualClock) -> None:
    """E-100: after a visit the shard's lag starts anew from what is still due there, so the other has its turn."""
    board.update([probed(A, -9.0), probed(B, -1.0)], board.events)
    taken = []
    for _ in range(4):
        shard = board.next()
        assert shard is not None
        taken.append(shard)
        clock.advance(0.25)
        board.visited(shard, SETTLED, -0.1)

    assert [A, B, A, B] == taken


class Waiting(threading.Thread):
    """A thread that takes shards until the board is closed."""

    def __init__(self, board: ShardBoard, scheduler: Scheduler | None) -> None:
        super().__init__(daemon=True)
        self.taken: list[ShardRef] = []
        self._board = board
        self._scheduler = scheduler
        self.start()

    def run(self) -> None:
        """Take, and find each empty."""
        while (shard := self._board.take(self._scheduler)) is not None:
            self.taken.append(shard)
            self._board.visited(shard, SETTLED, None)


@pytest.mark.parametrize("scheduler", [None, LagScheduler()])
def test_a_thread_that_waits_is_woken_by_notification_probe_and_end(
    board: ShardBoard, clock: ManualClock, scheduler: Scheduler | None
) -> None:
    """Nothing is polled here: each kind of news reaches the thread."""
    waiting = Waiting(board, scheduler)
    board.notify([A])
    eventually(lambda: waiting.taken == [A])
    clock.advance(1)
    board.update([probed(B, 0.0)], board.events)
    eventually(lambda: waiting.taken == [A, B])
    board.close()
    waiting.join(10)

    assert not waiting.is_alive()


@pytest.mark.parametrize("ready_in", [1e9, 3e11, 1e300])
def test_a_thread_waits_for_what_is_due_in_a_far_year(ready_in: float) -> None:
    """No platform waits for so long at once, and the thread must neither die of it nor miss a notification."""
    board = board_of(SystemClock(), A, B)
    board.update([probed(A, ready_in), probed(B, None)], board.events)
    waiting = Waiting(board, None)
    eventually(lambda: board._changed._waiters)  # type: ignore[attr-defined]  # of the standard library

    board.notify([B])
    eventually(lambda: waiting.taken == [B])
    board.close()
    waiting.join(10)
    assert not waiting.is_alive()


class Choosy(LagScheduler):
    """A scheduler that chooses only at its third question."""

    def __init__(self) -> None:
        self.asked = 0

    def next(self, states: Sequence[State]) -> State | None:
        """None, None, then the most lagging."""
        self.asked += 1
        return super().next(states) if self.asked > 2 else None


def test_a_scheduler_that_chose_nothing_is_asked_again_soon(board: ShardBoard) -> None:
    """L-64: a scheduler of one's own may pass over shards with work; it is asked again, but not in a busy loop."""
    scheduler = Choosy()
    board.notify([A])

    assert A == board.take(scheduler)
    assert 3 == scheduler.asked
    assert 0 < UNCHOSEN < 1


@pytest.fixture
def many(clock: ManualClock) -> Iterator[ShardBoard]:
    """A board of ten shards that all have work."""
    shards = [ShardRef("queue", 10, index) for index in range(10)]
    board = board_of(clock, *shards)
    board.update([probed(shard, 0.0) for shard in shards], board.events)
    yield board
    board.close()


def test_l62_each_shard_has_its_turn(many: ShardBoard) -> None:
    """L-62: the scheduler that goes round sees the shards in the order in which they were dealt."""
    scheduler = SeqScheduler()

    assert many.shards == [many.take(scheduler) for _ in range(10)]


def test_a_board_without_a_scheduler_goes_by_lag(clock: ManualClock) -> None:
    """It comes to what LagScheduler chooses, which looks at all shards."""
    rng = Random(1)
    shards = [ShardRef("queue", 20, index) for index in range(20)]
    own, scheduled = board_of(clock, *shards), board_of(clock, *shards)
    for _ in range(500):
        some = [probed(shard, rng.choice([None, -2.0, -1.0, 0.0, 1.0])) for shard in rng.sample(shards, 3)]
        for board in (own, scheduled):
            board.update(some, board.events)
        shard = own.next()
        assert shard == scheduled.next(LagScheduler())
        if shard is not None:
            error, fails = BackendError("broken"), rng.random() < 0.2
            for board in (own, scheduled):
                board.failed(shard, error) if fails else board.visited(shard, SETTLED, None)
        clock.advance(rng.random())


def test_x33_a_board_goes_by_lag_and_weight(clock: ManualClock) -> None:
    """X-33: with weights, too, it comes to what LagScheduler chooses, at each moment, and risks stay behind."""
    rng = Random(2)
    queues = {"light": 0.25, "plain": 1.0, "heavy": 4.0}
    shards = [ShardRef(name, 5, index) for name in queues for index in range(5)]
    own, scheduled = board_of(clock, *shards), board_of(clock, *shards)
    for board in (own, scheduled):
        board.weigh(queues)
    taken = set()
    for _ in range(500):
        some = [probed(shard, rng.choice([None, -8.0, -2.0, -0.5, 0.0, 1.0])) for shard in rng.sample(shards, 3)]
        for board in (own, scheduled):
            board.update(some, board.events)
        shard = own.next()
        assert shard == scheduled.next(LagScheduler())
        if shard is not None:
            taken.add(shard.queue_name)
            for board in (own, scheduled):
                board.visited(shard, SETTLED, None)
        clock.advance(rng.random())

    assert {*queues} == taken


def test_x33_no_weight_starves_a_shard(clock: ManualClock) -> None:
    """X-33: a shard of the lightest queue is visited in the end, though one of the heaviest always has work."""
    light, heavy = ShardRef("light", 1, 0), ShardRef("heavy", 1, 0)
    board = board_of(clock, heavy, light)
    board.weigh({"light": 0.01, "heavy": 1.0})
    board.update([probed(light, 0.0)], board.events)
    visits = []
    while light not in visits:
        clock.advance(1.0)
        board.update([probed(heavy, -1.0)], board.events)
        visits.append(board.take())
        board.visited(heavy, SETTLED, None)

    assert 101 == len(visits)


def test_x33_a_weight_brings_no_risk_forward(clock: ManualClock) -> None:
    """X-33: what may end the process waits for others, however heavy its queue is."""
    risky, plain = ShardRef("heavy", 1, 0), ShardRef("plain", 1, 0)
    board = board_of(clock, risky, plain)
    board.weigh({"heavy": 1_000.0})
    board.put_off_risk(60.0)
    board.update([probed(risky, -5.0, risky=True), probed(plain, 0.0)], board.events)

    assert [plain, risky] == [board.next(), board.next()]


def test_threads_that_share_a_board_never_have_the_same_shard(clock: ManualClock) -> None:
    """Whichever thread is free takes what has waited longest; what one visits no other takes."""
    shards = [ShardRef("queue", 10, index) for index in range(10)]
    board = board_of(clock, *shards)
    threads = [Waiting(board, scheduler) for scheduler in (None, None, LagScheduler(), SeqScheduler())]
    for count in range(1, 51):
        board.notify(shards)
        eventually(lambda: sum(len(thread.taken) for thread in threads) == 10 * count)  # noqa: B023 - called at once
    board.close()
    for thread in threads:
        thread.join(10)

    assert 50 == min(sum(thread.taken.count(shard) for thread in threads) for shard in shards)


def test_a_thread_that_takes_a_shard_leaves_the_clock_to_another() -> None:
    """Both are due at once, in a while: while one thread is busy with the first, the other takes the second."""
    board = board_of(SystemClock(), A, B)
    threads = [threading.Thread(target=lambda: taken.append(board.take()), daemon=True) for _ in range(2)]
    taken = list[ShardRef | None]()
    for thread in threads:
        thread.start()
    eventually(lambda: len(board._changed._waiters) == 2)  # type: ignore[attr-defined]  # of the standard library
    board.update([probed(A, 0.1), probed(B, 0.1)], board.events)
    for thread in threads:
        thread.join(10)

    assert {A, B} == set(taken)


@pytest.mark.parametrize("reason", ["held", "lease lost"])
def test_a_shard_that_was_let_go_with_its_work_rests(clock: ManualClock, reason: Literal["held", "lease lost"]) -> None:
    """In a drain: probes go on to say that it has work, and visits of no use would follow one another."""
    board = ShardBoard([A], clock, 1.0, Rests.of_drain(1.0))
    board.update([probed(A, 0.0)], board.events)
    assert A == board.next()
    board.visited(A, VisitResult(reason, token=7), 0.0)
    board.update([probed(A, 0.0)], board.events)

    assert board.next() is None
    clock.advance(1.0)
    assert A == board.next()


@pytest.mark.parametrize("is_back", [True, False], ids=["emptied", "visited"])
def test_a_scheduler_gets_no_shard_that_another_thread_has_taken(board: ShardBoard, *, is_back: bool) -> None:
    """What it saw is old by then: the shard has been taken, and perhaps brought back without work."""
    board.update([probed(A, 0.0)], board.events)
    taken: list[ShardRef | None] = []

    class Slow:
        """Chooses while another thread visits."""

        def next(self, views: Sequence[State]) -> State | None:
            taken.append(board.next())
            if is_back:
                board.visited(A, SETTLED, None)
            return views[0]

    assert board.next(Slow()) is None
    assert [A] == taken


def test_p6_of_risky_shards_the_one_that_waits_longest_comes_first(clock: ManualClock) -> None:
    """All of them wait until the same moment; then their lag decides."""
    board = ShardBoard([A, B], clock, 1.0, Rests.of_drain(1.0))
    board.put_off_risk(60.0)
    board.update([probed(A, -5.0, risky=True), probed(B, -500.0, risky=True)], board.events)

    assert B == board.next()


def test_p6_what_may_end_the_process_is_not_taken_beside_others(board: ShardBoard) -> None:
    """P6: it waits for those that are visited by the same drain, and goes with none of those that wait."""
    board.update([probed(A, -2.0), probed(B, -1.0, risky=True)], board.events)

    assert A == board.next()
    assert not board.may_go_beside(A)
    assert board.next(beside=True) is None
    assert B == board.next()
    board.visited(A, SETTLED, -1.0)
    assert not board.may_go_beside(B)


def test_p6_a_shard_that_made_way_for_a_suspect_comes_at_once_and_alone(board: ShardBoard) -> None:
    """P6: its own suspect needs no rest, only the other's end; what is excluded stays so."""
    board.update([probed(A, -1.0), probed(B, -1.0)], board.events)
    board.next(), board.next()
    board.visited(A, VisitResult("held", token=1), None)
    assert board.next() is None
    board.visit_alone(A)

    assert board.next(beside=True) is None
    assert A == board.next()
    board.exclude([A])
    board.visited(A, VisitResult("held", token=1), None)
    board.visit_alone(A)
    assert board.next() is None


def test_a_shard_that_is_excluded_while_it_is_visited_stays_excluded(board: ShardBoard, clock: ManualClock) -> None:
    """However the visit ends: a rest does not end what has no end."""
    ends = [VisitResult("lease lost", token=1), VisitResult("exited", token=1, exit=SystemExit(3))]
    for shard, result in zip((A, B), ends, strict=True):
        board.notify([shard])
        assert shard == board.next()
        board.exclude([shard])
        board.visited(shard, result, -1.0)

    clock.advance(3_600)
    assert [] == [*lags(board)]


def test_p6_the_shard_whose_holder_died_last_is_visited_last(clock: ManualClock) -> None:
    """P6: of several that may end the process the one that may have ended the last one comes behind the others."""
    board = ShardBoard((A, B), clock, 1.0, Rests.of_drain(1.0))
    board.put_off_risk(60.0)
    late = replace(probed(A, -9.0, risky=True), held_until=200.0)
    early = replace(probed(B, -1.0, risky=True), held_until=100.0)
    board.update([late, early], board.events)

    assert [B, A] == [board.next(), board.next()]


FREE = ShardRef("free", 1, 0)
REFUSED = VisitResult("limited")


@pytest.fixture
def limited(clock: ManualClock) -> ShardBoard:
    """Two shards of a queue whose limits refused the first, and one of another queue; all have work."""
    board = board_of(clock, A, B, FREE)
    board.notify([A, B, FREE])
    clock.advance(1.0)
    assert A == board.next()
    board.visited(A, REFUSED, 3.0)
    return board


def test_a_refusal_leaves_out_all_shards_of_its_queue(limited: ShardBoard, clock: ManualClock) -> None:
    """Until the time that it told; then they come in the order in which they have waited."""
    before = [limited.next(), limited.next()]
    clock.advance(3.0)

    assert [FREE, None] == before
    assert [A, B] == [limited.next(), limited.next()]


def test_a_shard_that_is_offered_a_permit_is_visited_at_once(limited: ShardBoard) -> None:
    """It has work, though it has asked for no permit yet; and no other shard of its queue comes."""
    limited.offer([B])

    assert {FREE, B} == {limited.next(), limited.next()}
    assert limited.next() is None


def test_a_ring_that_comes_before_the_refusal_of_another_counts(clock: ManualClock) -> None:
    """An offer may be heard while a sibling of its shard is on its way to be refused."""
    board = board_of(clock, A, B)
    board.notify([A, B])
    assert A == board.next()
    board.offer([B])
    board.visited(A, REFUSED, 3.0)

    assert [B, None] == [board.next(), board.next()]


def test_an_offer_to_a_shard_without_work_rings_nobody(clock: ManualClock) -> None:
    """All processes hear it: if those came that have no use for it, all but one would wait for a permit, for ever."""
    board = board_of(clock, A)
    board.offer([A])

    assert board.next() is None


def test_who_is_on_the_wait_list_answers_one_offer(limited: ShardBoard) -> None:
    """Even if others did the work meanwhile: a place that nobody takes is lost for a second."""
    limited.update([probed(A, None)], limited.events)
    limited.offer([A])
    answers = {limited.next(), limited.next()}
    limited.visited(A, VisitResult("empty", token=1), None)
    limited.offer([A])

    assert {FREE, A} == answers
    assert [B, None] == [limited.next(), limited.next()]


@pytest.mark.parametrize("reason", ["empty", "turn over", "held"])
def test_the_end_of_a_visit_lets_the_others_of_its_queue_in(
    limited: ShardBoard, reason: Literal["empty", "turn over", "held"]
) -> None:
    """Its permit is free, or one of them has to be on the wait list."""
    limited.notify([A])
    assert {FREE, A} == {limited.next(), limited.next()}
    limited.visited(A, VisitResult(reason, token=1), None)

    assert B == limited.next()


def test_a_visit_that_used_up_the_rate_comes_behind_those_that_wait(limited: ShardBoard, clock: ManualClock) -> None:
    """It had its turn; a visit that was refused had none."""
    limited.notify([A])
    assert {FREE, A} == {limited.next(), limited.next()}
    limited.visited(A, VisitResult("limited", token=1), 2.0)
    clock.advance(2.0)

    assert [B, A] == [limited.next(), limited.next()]


def test_whoever_is_rung_asks_again_all_the_same(clock: ManualClock) -> None:
    """A daemon that missed a ring is late by seconds, however long the holders' places last."""
    board = board_of(clock, A)
    board.notify([A])
    assert A == board.next()
    board.visited(A, REFUSED, 1_000.0)
    clock.advance(5.0)

    assert A == board.next()
