"""How long batches take, as it is remembered."""

import pytest

from lowkiq_lambda.engine.budget import BatchTiming


def test_a_slow_batch_is_forgotten_by_and_by() -> None:
    """One slow batch is counted with for long, and not for ever: after a thousand quick ones it keeps nothing off."""
    timing = BatchTiming()
    timing.observe(60.0)
    slow = []
    for _ in range(1_000):
        timing.observe(0.1)
        slow.append(timing.slowest)

    assert pytest.approx(60.0, rel=0.1) == slow[5]
    assert sorted(slow, reverse=True) == slow
    assert 0.1 == slow[-1]


def test_the_slowest_batch_of_late_counts() -> None:
    """What still fits is judged by the slowest, not by the mean."""
    timing = BatchTiming()
    for seconds in (1.0, 5.0, 2.0):
        timing.observe(seconds)

    assert 4.9 < timing.slowest <= 5.0
    assert timing.mean is not None
    assert 1.0 < timing.mean < 2.0


def test_a_slow_item_is_forgotten_by_time() -> None:
    """P5: as many items as there are in a second forget it no faster than one; after minutes it keeps nothing off."""
    quick, slow = BatchTiming(), BatchTiming()
    for timing, each in ((quick, 0.01), (slow, 1.0)):
        timing.observe_item(45.0)
        for _ in range(round(60 / each)):
            timing.observe_item(each)

    assert pytest.approx(quick.slowest) == slow.slowest
    assert 20 < slow.slowest < 30
    for _ in range(600):
        slow.observe_item(1.0)
    assert 1.0 == slow.slowest
