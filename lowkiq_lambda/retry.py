"""How long a failed job waits, and for how many days it is retried."""

from collections.abc import Callable
from random import Random
from typing import Final

MAX_DELAY: Final = 100 * 365.25 * 86_400
"""Seconds: a longer delay is a mistake (it would leave the range in which times are exact)."""

_NOISE: Final = 30
_DAY: Final = 86_400


def default_retry_in(retry_count: int, rng: Random) -> float:
    """Seconds to wait after failure number `retry_count`, counted from 0: growing, with noise."""
    return float(retry_count**4 + 15 + rng.randrange(_NOISE) * (retry_count + 1))


def retry_horizon(max_retry_count: int, retry_in: Callable[[int], float] | None = None) -> float:
    """Days from the first failure of a job to the morgue, when each execution fails at once.

    With the default delays the mean of their noise is taken.
    """
    delay = retry_in or _mean_retry_in
    return sum(delay(retry_count) for retry_count in range(max_retry_count)) / _DAY


def safe_delay(value: object) -> float | None:
    """A delay that a worker's `retry_in` returned, in seconds; None where it is no sensible delay."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # NaN compares false with both bounds.
    return float(value) if 0 <= value <= MAX_DELAY else None


def _mean_retry_in(retry_count: int) -> float:
    return retry_count**4 + 15 + (_NOISE - 1) / 2 * (retry_count + 1)
