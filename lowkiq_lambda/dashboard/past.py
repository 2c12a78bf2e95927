"""The numbers that pages of this process have read in the last minutes: Redis keeps no history of them."""

from collections.abc import Callable
from typing import Final, TypeAlias

REMEMBERED: Final = 600.0
"""Seconds for which a look is remembered."""
_APART: Final = 5.0
"""Seconds between two of them."""

Values: TypeAlias = tuple[float, ...]


class Past:
    """Those of the first page. Several threads may use it: of two looks at once one may be forgotten."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._looks: tuple[tuple[float, Values], ...] = ()

    def with_these(self, values: Values) -> list[tuple[float, Values]]:
        """Remember these, unless the last are younger than some seconds; all looks, each with its age in seconds."""
        now = self._now()
        looks = tuple(look for look in self._looks if 0 <= now - look[0] <= REMEMBERED)
        if not looks or now - looks[-1][0] >= _APART:
            self._looks = looks = (*looks, (now, values))
        return [(now - at, each) for at, each in looks]
