"""Delays of failed jobs."""

import math
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.jobs.retry import MAX_DELAY, default_retry_in, retry_horizon, safe_delay


class FixedNoise(Random):
    """A generator whose numbers are all the same."""

    def __init__(self, noise: int) -> None:
        super().__init__()
        self.noise = noise

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:  # noqa: ARG002 - as Random has it
        """The fixed number, where it is in the range."""
        assert stop is None
        assert self.noise < start
        return self.noise


def test_default_delays_without_noise() -> None:
    """L-37: 15, 16, 31, 96, 271 … seconds."""
    delays = [default_retry_in(retry_count, FixedNoise(0)) for retry_count in range(5)]

    assert delays == [15, 16, 31, 96, 271]


def test_default_delays_with_most_noise() -> None:
    """L-37: the noise is 0 to 29 seconds times the number of the failure."""
    delays = [default_retry_in(retry_count, FixedNoise(29)) for retry_count in range(3)]

    assert delays == [15 + 29, 16 + 2 * 29, 31 + 3 * 29]


@given(st.integers(0, 100), st.integers())
def test_default_delay_stays_in_its_bounds(retry_count: int, seed: int) -> None:
    """Whatever the dice show, the delay lies between its two formulas, and is a sensible one."""
    delay = default_retry_in(retry_count, Random(seed))

    least = retry_count**4 + 15
    assert least <= delay <= least + 29 * (retry_count + 1)
    assert safe_delay(delay) == delay


@pytest.mark.parametrize(
    ("max_retry_count", "days"),
    [(14, 1), (16, 2), (18, 3), (19, 5), (20, 6), (21, 8), (22, 10), (23, 13), (24, 16), (25, 20)],
)
def test_days_of_life(max_retry_count: int, days: int) -> None:
    """L-44: the whole days that a job lives with so many retries."""
    assert math.floor(retry_horizon(max_retry_count)) == days


def test_horizon_of_the_default() -> None:
    """L-44: 25 retries last 20.41 to 20.52 days, as the noise goes."""
    assert 20.41 < retry_horizon(25) < 20.52
    assert retry_horizon(25, lambda count: default_retry_in(count, FixedNoise(0))) == pytest.approx(20.41, abs=0.01)
    assert retry_horizon(25, lambda count: default_retry_in(count, FixedNoise(29))) == pytest.approx(20.52, abs=0.01)


def test_horizon_of_own_delays() -> None:
    """L-38: delays of 10, 20, 30, 40, 50 seconds last 150 seconds; no retries last no time (D-4)."""
    assert retry_horizon(5, lambda count: 10 * (count + 1)) * 86_400 == pytest.approx(150)
    assert retry_horizon(0) == 0


@pytest.mark.parametrize("value", [0, 0.0, 1, 2.5, MAX_DELAY, True + 1])
def test_sensible_delays_pass(value: float) -> None:
    """E-53: any number of seconds from none to very many is taken as it is."""
    assert safe_delay(value) == value
    assert isinstance(safe_delay(value), float)


@pytest.mark.parametrize(
    "value",
    [
        None,
        math.nan,
        math.inf,
        -math.inf,
        -1,
        -0.001,
        1e300,
        10**400,
        MAX_DELAY * 1.01,
        "10",
        b"11",
        True,
        False,
        [10],
        Decimal(10),
        1j,
        object(),
    ],
)
def test_senseless_delays_are_refused(value: object) -> None:
    """E-53: what is no number, not finite, negative or beyond all measure is no delay."""
    assert safe_delay(value) is None
