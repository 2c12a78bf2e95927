"""Which planned times fire, now that they have come, and which were missed."""

import math
from collections import deque
from itertools import takewhile
from typing import Final, Literal, NamedTuple, TypeAlias

from lowkiq_lambda.schedules.times import Times

Missed: TypeAlias = Literal["once", "skip", "all"]
"""The rule for missed planned times: the newest fires, or none of them, or all."""
Overlap: TypeAlias = Literal["merge", "skip"]
"""The effect of a firing while its id waits or is in flight: the payload is merged, or the push is skipped."""

SKIP_GRACE: Final = 120.0
"""Seconds by which a firing may be late if missed times are skipped: a tick comes once a minute, and may be late."""
MOST_FIRED: Final = 100
"""Firings in one decision."""
MOST_MISSED: Final = 100
"""Missed times that one decision lists: an absence of a year costs no more than one of an hour."""

_FIRST_LOOK: Final = 60.0
_WIDER: Final = 4.0
"""Seconds that are looked back at first, and how much further each next look goes."""


class Decision(NamedTuple):
    """The decision on the planned times after a floor, up to now; all in Unix seconds.

    `fire`: fire now, in this order. `missed`: too late, or replaced by a newer one, so they never fire; ascending, and
    if there are more than 100, the newest 100. The newest of both is the next floor: what is not after it is
    decided. `next_at`: the first planned time that is not decided, None if there is none. Where more are to be fired
    than may be at once, it is not after now.
    """

    fire: tuple[float, ...]
    missed: tuple[float, ...]
    next_at: float | None


def decide(times: Times, floor: float, now: float, missed: Missed, grace: float) -> Decision:
    """Decide the planned times after `floor`, up to `now`. Raises DeclarationError as `times.check` does.

    "skip" fires the newest if it is at most 120 s late; "once" the newest if it is at most `grace` seconds late; "all"
    each that is at most `grace` late, the oldest 100 at once.
    """
    first = next(times.after(floor), None)
    if first is None or first > now:
        return Decision((), (), first)
    if missed == "all":
        return _decide_all(times, floor, now, grace)
    due = _newest(times, floor, now, MOST_MISSED + 1)
    is_late = due[-1] < now - (SKIP_GRACE if missed == "skip" else grace)
    fire, earlier = ((), due) if is_late else (due[-1:], due[:-1])
    return Decision(fire, earlier[-MOST_MISSED:], next(times.after(now), None))


def _decide_all(times: Times, floor: float, now: float, grace: float) -> Decision:
    start = max(floor, math.nextafter(now - grace, -math.inf))
    missed = _newest(times, floor, start, MOST_MISSED) if start > floor else ()
    fire: list[float] = []
    for planned in times.after(start):
        if planned > now or len(fire) == MOST_FIRED:
            return Decision(tuple(fire), missed, planned)
        fire.append(planned)
    return Decision(tuple(fire), missed, None)


def _newest(times: Times, floor: float, end: float, most: int) -> tuple[float, ...]:
    """The newest planned times after the floor, up to the end, ascending."""
    back = _FIRST_LOOK
    while True:
        start = max(floor, end - back)
        newest = deque(takewhile(lambda planned: planned <= end, times.after(start)), maxlen=most)
        if start == floor or len(newest) == most:
            return tuple(newest)
        back *= _WIDER
