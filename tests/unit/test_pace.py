"""How long batches take, as it is remembered."""

import pytest

from lowkiq_lambda.pace import Pace


def test_a_slow_batch_is_forgotten_by_and_by() -> None:
    """One slow batch is counted with for long, and not for ever: after a thousand quick ones it keeps nothing off."""
    pace = Pace()
    pace.observe(60.0)
    slow = []
    for _ in range(1_000):
        pace.observe(0.1)
        slow.append(pace.slow)

    assert pytest.approx(60.0, rel=0.1) == slow[5]
    assert sorted(slow, reverse=True) == slow
    assert 0.1 == slow[-1]


def test_the_slowest_batch_of_late_counts() -> None:
    """What still fits is judged by the slowest, not by the mean."""
    pace = Pace()
    for seconds in (1.0, 5.0, 2.0):
        pace.observe(seconds)

    assert 4.9 < pace.slow <= 5.0
    assert pace.mean is not None
    assert 1.0 < pace.mean < 2.0
