"""How long a thread may wait at once, and how waits grow."""

import math
import threading

import pytest

from lowkiq_lambda.base.clock import LONGEST_WAIT, at_most, doubled


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, LONGEST_WAIT),
        (math.inf, LONGEST_WAIT),
        (253_402_300_799.0, LONGEST_WAIT),
        (2.5, 2.5),
        (0.0, 0.0),
        (-1.0, 0.0),
        (-math.inf, 0.0),
    ],
)
def test_a_wait_is_cut_to_what_any_platform_takes(asked: float | None, given: float) -> None:
    """Times to wait are computed from times that users name, so they may be as long as a float can be."""
    assert given == at_most(asked)
    assert LONGEST_WAIT < threading.TIMEOUT_MAX
    # poll() counts milliseconds in 32 bits.
    assert LONGEST_WAIT * 1_000 < 2**31


@pytest.mark.parametrize(("times", "wait"), [(0, 0.5), (1, 1.0), (2, 2.0), (3, 3.0), (10_000, 3.0)])
def test_a_wait_doubles_up_to_the_longest(times: int, wait: float) -> None:
    """However often something has failed in a row, the wait is a number, and bounded."""
    assert wait == doubled(0.5, times, 3.0)
