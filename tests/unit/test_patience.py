"""How long a thread may wait at once."""

import math
import threading

import pytest

from lowkiq_lambda.patience import LONGEST_WAIT, at_most


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
