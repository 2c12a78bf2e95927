"""How long a thread may wait at once: what platforms refuse is cut here, for all waits whose length is computed."""

from typing import Final

LONGEST_WAIT: Final = 3_600.0
"""Seconds. Platforms refuse waits of more than some weeks, or centuries, and jobs may be due in the year 9999.

Who waits looks again whenever a wait ends, so a look an hour is all that a shorter one costs.
"""


def at_most(seconds: float | None) -> float:
    """The wait in seconds, as it may be handed to the platform: from 0 to the longest; None is for ever."""
    return LONGEST_WAIT if seconds is None else max(0.0, min(seconds, LONGEST_WAIT))
