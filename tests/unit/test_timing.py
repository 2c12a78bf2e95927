"""How long batches take, as it is remembered."""

import math

import pytest

from lowkiq_lambda.engine.budget import BatchTiming, Budget
from lowkiq_lambda.engine.hindrances import Hindrances
from lowkiq_lambda.testing import ManualClock


@pytest.mark.parametrize("batches", [1, 60, 6_000])
def test_a_slow_batch_is_forgotten_by_time(batches: int) -> None:
    """Whether there are few batches a minute or many, side by side or not: a half of it is left after a minute."""
    timing = BatchTiming()
    for _ in range(50):
        timing.observe(0.1, 0.0)
    timing.observe(60.0, 0.0)
    for number in range(batches):
        timing.observe(0.1, 60.0 * (number + 1) / batches)

    assert 30 < timing.slowest_at(60.0) < 35
    assert timing.slowest_at(700.0) < 0.1


def test_the_slowest_batch_of_late_counts() -> None:
    """What still fits is judged by the slowest, not by the mean."""
    timing = BatchTiming()
    for now, seconds in enumerate((1.0, 5.0, 2.0)):
        timing.observe(seconds, float(now))

    assert 4.9 < timing.predicted(2.0, math.inf) <= 5.0
    assert timing.mean is not None
    assert 1.0 < timing.mean < 2.0


def test_a_slow_item_is_forgotten_by_time() -> None:
    """P5: as many items as there are in a second forget it no faster than one; after minutes it keeps nothing off."""
    quick, slow = BatchTiming(), BatchTiming()
    for timing, each in ((quick, 0.01), (slow, 1.0)):
        timing.observe_item(45.0, 0.0)
        for number in range(round(60 / each)):
            timing.observe_item(each, (number + 1) * each)

    assert pytest.approx(quick.slowest_at(60.0)) == slow.slowest_at(60.0)
    assert 20 < slow.slowest_at(60.0) < 30
    for second in range(600):
        slow.observe_item(1.0, 61.0 + second)
    assert 1.0 == slow.slowest


def test_what_is_slower_than_usual_takes_a_third_of_a_budget_at_most() -> None:
    """What hung once leaves two thirds to each drain; what always takes that long is told in full."""
    hung, long = BatchTiming(), BatchTiming()
    for _ in range(50):
        hung.observe(0.05, 0.0)
        long.observe(250.0, 0.0)
    hung.observe(250.0, 0.0)

    assert (100.0, 250.0) == (hung.predicted(0.0, 300.0), long.predicted(0.0, 300.0))


def test_what_others_measured_is_as_old_as_it_is() -> None:
    """A cold start knows the slowest batch, and for how long it has been forgotten."""
    timing, cold = BatchTiming(), BatchTiming()
    timing.observe(10.0, 1_000.0)
    cold.adopt(timing.dump())

    assert pytest.approx(timing.slowest_at(1_069.0)) == cold.slowest_at(1_069.0)
    assert pytest.approx(5.0, abs=0.1) == cold.slowest_at(1_069.0)


def test_a_clock_that_was_set_back_makes_nothing_last_for_longer() -> None:
    """What was seen at a time to come counts as seen now."""
    timing = BatchTiming()
    timing.observe(10.0, 100_000.0)

    assert 10.0 == timing.slowest_at(1_000.0)
    assert timing.slowest_at(1_600.0) < 0.1


@pytest.mark.parametrize("quick", [0.001, 4.0, 12.0])
@pytest.mark.parametrize("seconds", [9.0, 300.0, math.inf])
def test_what_is_asked_without_the_clock_decides_as_the_prediction_does(quick: float, seconds: float) -> None:
    """P5: with whatever time left, the next batch may start if, and only if, it is predicted to fit."""
    timing, clock = BatchTiming(), ManualClock(1_000.0)
    timing.observe(40.0, clock.time())
    for _ in range(200):
        clock.advance(quick)
        timing.observe(quick, clock.time())

        assert timing.predicted(clock.time(), seconds) <= timing.predicted_at_most(seconds)
    for left in (0.0005, 0.5, 3.0, 5.0, 8.0, 11.0, 13.0, 39.0):
        budget = Budget(clock, seconds)
        clock.advance(max(0.0, seconds - left) if math.isfinite(seconds) else 0.0)
        fits = budget.prediction(timing) < budget.remaining()
        assert (None if fits else "out of time") == budget.against_next(timing)


def test_what_hindered_drains_is_dumped_with_how_long_batches_take() -> None:
    """The next process goes on with both; what is no dump is refused."""
    timing = BatchTiming()
    timing.observe(0.25, 8.0)
    plain = timing.dump()
    timing.hinder().note_stall(12.0, 1_000.0)
    timing.hinder().unused = 2.5

    assert "0.250000 0.250000 0.250000 8.000" == plain
    assert f"{plain} 2.500 0.000 1 12.000 1000.000" == timing.dump()
    assert (timing, None) == (BatchTiming.of(timing.dump()), BatchTiming.of(plain).hindrances)
    for damaged in ("1", "1 2 3 4 5", f"{plain} -1 0 0 0 0", "a b c d", "1 2 3 inf"):
        with pytest.raises(ValueError, match=r"."):
            BatchTiming.of(damaged)


def test_a_stall_of_several_leases_is_one() -> None:
    """A process that stands still is late with all of them; what was long ago counts no more."""
    hindrances = Hindrances()
    for at in (100.0, 100.001, 100.5, 200.0, 250.0):
        hindrances.note_stall(12.0, at)
    counts = [hindrances.stalls, hindrances.stalls_lately(3_000.0), hindrances.stalls_lately(3_900.0)]
    hindrances.note_stall(11.0, 4_000.0)

    assert [3, 3, 0] == counts
    assert (1, 11.0, 4_000.0) == (hindrances.stalls, hindrances.stalled, hindrances.stalled_at)


def test_stalls_of_two_holders_in_turn_are_counted_together() -> None:
    """Each counts on from what the other noted in the shard, though it has measured batches of its own."""
    holders = [BatchTiming(), BatchTiming()]
    dumped, at = "", 0.0
    for timing in holders:
        timing.observe(0.1, 8.0)
    for turn in range(6):
        at = 1_000.0 + 100.0 * turn
        timing = holders[turn % 2]
        timing.adopt(dumped)
        if turn != 4:
            timing.hinder().note_stall(10.0 + turn, at)
        dumped = timing.dump()
    stored = BatchTiming.of(dumped).hindrances
    later = Hindrances(stalls=1, stalled=9.0, stalled_at=at + 4_000.0)
    later.join(stored or Hindrances())

    assert Hindrances(stalls=5, stalled=15.0, stalled_at=1_500.0) == stored
    assert Hindrances(stalls=1, stalled=9.0, stalled_at=at + 4_000.0) == later


@pytest.mark.parametrize("ahead", [-3_600.0, 3_600.0])
def test_times_in_redis_are_by_the_clock_of_its_server(ahead: float) -> None:
    """A process whose clock differs forgets what was measured before an operator said so, and nothing else."""
    now = 1_000_000.0
    timing = BatchTiming()
    timing.observe(25.0, now)
    timing.hindrances = Hindrances(6.0, now + 60.0, 1, 4.0, now)
    dumped = timing.dump(ahead)
    warm = BatchTiming.of(timing.dump())
    kept, forgotten = (f"@{now + ahead + seconds}" for seconds in (-1.0, 1.0))
    warm.adopt(kept, ahead)
    cold = BatchTiming()
    cold.adopt(dumped + kept, ahead)
    means = [warm.mean, cold.mean]
    warm.adopt(dumped + forgotten, ahead)

    assert BatchTiming.of(dumped).seen_at == now + ahead
    assert cold == timing
    assert [25.0, 25.0, None] == [*means, warm.mean]
    assert Hindrances(stalls=1, stalled=4.0, stalled_at=now) == warm.hindrances
