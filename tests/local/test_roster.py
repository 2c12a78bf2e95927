"""What a drain thread knows about its shards: which word counts, and who is woken by it."""

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from lowkiq_lambda.clock import SystemClock
from lowkiq_lambda.local.roster import UNCHOSEN, Roster, Word
from lowkiq_lambda.local.schedulers import LagScheduler, SeqScheduler
from lowkiq_lambda.protocols import State
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.waiting import eventually

A, B = (ShardRef("queue", 2, index) for index in range(2))


@pytest.fixture
def clock() -> ManualClock:
    """The time."""
    return ManualClock()


@pytest.fixture
def roster(clock: ManualClock) -> Roster:
    """Two shards of which nothing is known."""
    return Roster([A, B], clock)


def lags(roster: Roster) -> dict[ShardRef, float | None]:
    """The shards with work, and how long it has waited."""
    return {standing.ref: standing.lag for standing in roster._survey() if standing.has_work}


def test_nothing_has_work_before_somebody_says_so(roster: Roster) -> None:
    """A thread starts with a probe's word, not with a visit to each shard."""
    assert {} == lags(roster)
    assert not roster.others_have_work(A)


def test_a_probe_says_since_when_and_from_when_on(roster: Roster, clock: ManualClock) -> None:
    """What is due has its lag, what is not becomes due by the clock alone."""
    roster.learn([Word(A, -3.0), Word(B, 2.0)], clock.monotonic())

    assert {A: 3.0} == lags(roster)
    clock.advance(2.0)
    assert {A: 5.0, B: 0.0} == lags(roster)


def test_a_bell_counts_more_than_a_probe_that_was_asked_before(roster: Roster, clock: ManualClock) -> None:
    """A probe may have been answered before the push: its older word must not silence the shard."""
    asked_at = clock.monotonic()
    clock.advance(0.01)
    roster.ring(A)
    clock.advance(0.01)
    roster.learn([Word(A, None), Word(B, None)], asked_at)

    assert [A] == list(lags(roster))
    clock.advance(0.01)
    roster.learn([Word(A, None)], clock.monotonic())
    assert {} == lags(roster)


def test_a_bell_during_a_visit_brings_another_visit(roster: Roster, clock: ManualClock) -> None:
    """The visit's last claim may have come before the push."""
    began_at = clock.monotonic()
    clock.advance(0.01)
    roster.ring(A)
    roster.visited(A, began_at, None)

    assert [A] == list(lags(roster))
    roster.visited(A, clock.monotonic() + 0.01, None)
    assert {} == lags(roster)


def test_a_bell_does_not_shorten_the_lag(roster: Roster, clock: ManualClock) -> None:
    """A shard that has waited keeps its place before those that have not."""
    roster.learn([Word(A, -3.0)], clock.monotonic())
    roster.ring(A)

    assert {A: 3.0} == lags(roster)


def test_a_shard_that_failed_rests_whoever_rings(roster: Roster, clock: ManualClock) -> None:
    """What goes wrong each time is no busy loop, and the count of failures ends with the first success."""
    roster.ring(A)
    roster.failed(A, 5.0)
    roster.ring(A)
    clock.advance(1.0)
    roster.learn([Word(A, -9.0)], clock.monotonic())

    assert {} == lags(roster)
    assert 1 == roster.failures(A)
    clock.advance(4.0)
    assert [A] == list(lags(roster))
    roster.visited(A, clock.monotonic(), None)
    assert 0 == roster.failures(A)


def test_a_shard_that_failed_comes_behind_those_that_have_not(roster: Roster, clock: ManualClock) -> None:
    """P6: however late it is, and whatever a probe says of it, a shard that waited meanwhile has its turn first."""
    scheduler = LagScheduler()
    roster.learn([Word(A, -100.0), Word(B, 0.5)], clock.monotonic())
    roster.failed(A, 1.0)
    clock.advance(1.5)
    roster.learn([Word(A, -101.5), Word(B, -1.0)], clock.monotonic())

    assert B == roster.take(scheduler)
    roster.visited(B, clock.monotonic(), 0.1)
    clock.advance(0.5)
    assert A == roster.take(scheduler)
    roster.visited(A, clock.monotonic(), -100.0)
    assert A == roster.take(scheduler)


def test_a_shard_that_may_end_the_process_comes_behind_what_has_work_by_then(
    roster: Roster, clock: ManualClock
) -> None:
    """P6: from the moment that it is known to be risky it queues up anew, once; so it has its turn all the same."""
    scheduler = LagScheduler()
    taken = []
    for _ in range(3):
        roster.learn([Word(A, -100.0, risky=True), Word(B, -3.0)], clock.monotonic())
        taken.append(roster.take(scheduler))
        clock.advance(2.0)

    assert [B, B, A] == taken


def test_a_turn_ends_only_where_another_shard_waits(roster: Roster) -> None:
    """Its own work is no reason for a thread to leave a shard."""
    roster.ring(A)

    assert not roster.others_have_work(A)
    assert roster.others_have_work(B)


def test_e100_turns_alternate_between_two_shards_that_never_end(roster: Roster, clock: ManualClock) -> None:
    """E-100: after a visit the shard's lag starts anew from what is still due there, so the other has its turn."""
    scheduler = LagScheduler()
    roster.learn([Word(A, -9.0), Word(B, -1.0)], clock.monotonic())
    taken = []
    for _ in range(4):
        shard = roster.take(scheduler)
        assert shard is not None
        taken.append(shard)
        clock.advance(0.25)
        roster.visited(shard, clock.monotonic() - 0.25, -0.1)

    assert [A, B, A, B] == taken


class Waiting(threading.Thread):
    """A thread that takes shards until the roster is closed."""

    def __init__(self, roster: Roster, scheduler: LagScheduler | SeqScheduler) -> None:
        super().__init__(daemon=True)
        self.taken: list[ShardRef] = []
        self._roster = roster
        self._scheduler = scheduler
        self.start()

    def run(self) -> None:
        """Take, and find each empty."""
        while (shard := self._roster.take(self._scheduler)) is not None:
            self.taken.append(shard)
            self._roster.visited(shard, self._roster._clock.monotonic() + 1, None)


def test_a_thread_that_waits_is_woken_by_bell_probe_and_end(roster: Roster, clock: ManualClock) -> None:
    """Nothing is polled here: each kind of news reaches the thread."""
    waiting = Waiting(roster, LagScheduler())
    roster.ring(A)
    eventually(lambda: waiting.taken == [A])
    clock.advance(1)
    roster.learn([Word(B, 0.0)], clock.monotonic())
    eventually(lambda: waiting.taken == [A, B])
    roster.close()
    waiting.join(10)

    assert not waiting.is_alive()


@pytest.mark.parametrize("ready_in", [1e9, 3e11, 1e300])
def test_a_thread_waits_for_what_is_due_in_a_far_year(ready_in: float) -> None:
    """No platform waits for so long at once, and the thread must neither die of it nor miss the bell."""
    roster = Roster([A, B], SystemClock())
    roster.learn([Word(A, ready_in), Word(B, None)], time.monotonic())
    waiting = Waiting(roster, LagScheduler())
    eventually(lambda: roster._changed._waiters)  # type: ignore[attr-defined]  # of the standard library

    roster.ring(B)
    eventually(lambda: waiting.taken == [B])
    roster.close()
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


def test_a_scheduler_that_chose_nothing_is_asked_again_soon(roster: Roster) -> None:
    """L-64: a scheduler of one's own may pass over shards with work; it is asked again, but not in a busy loop."""
    scheduler = Choosy()
    roster.ring(A)

    assert A == roster.take(scheduler)
    assert 3 == scheduler.asked
    assert 0 < UNCHOSEN < 1


@pytest.fixture
def many(clock: ManualClock) -> Iterator[Roster]:
    """A roster of ten shards that all have work."""
    shards = [ShardRef("queue", 10, index) for index in range(10)]
    roster = Roster(shards, clock)
    roster.learn([Word(shard, 0.0) for shard in shards], clock.monotonic())
    yield roster
    roster.close()


def test_l62_each_shard_has_its_turn(many: Roster) -> None:
    """L-62: the scheduler that goes round sees the shards in the order in which they were dealt."""
    scheduler = SeqScheduler()

    assert many.shards == [many.take(scheduler) for _ in range(10)]
