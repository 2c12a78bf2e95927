"""The numbers that pages of this process have read in the last minutes: Redis keeps no history of them."""

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

REMEMBERED: Final = 600.0
"""Seconds for which a look is remembered."""
_APART: Final = 5.0
"""Seconds between two of them."""

Values: TypeAlias = tuple[float, ...]


class Past:
    """Those of the first page. Several threads may use it: a look that is remembered twice does no harm."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._looks = deque[tuple[float, Values]](maxlen=int(REMEMBERED / _APART) + 1)

    def with_these(self, values: Values) -> list[tuple[float, Values]]:
        """Remember these, unless the last are younger than some seconds; all looks, each with its age in seconds."""
        now, looks = self._now(), [*self._looks]
        if not looks or not 0 <= now - looks[-1][0] < _APART:
            looks.append((now, values))
            self._looks.append(looks[-1])
        return [(now - at, each) for at, each in looks if 0 <= now - at <= REMEMBERED]
