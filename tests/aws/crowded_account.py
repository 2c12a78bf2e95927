"""An account that may run so many functions at once: its schedules' events wait with Lambda, by AWS's documentation.

An event that finds no place is tried again after 1, 2, 4 seconds and so on, up to five minutes. One that is older
than the function takes is dropped. An invocation runs at its start, to its end, by a clock of its own; until then it
has a place.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Event: TypeAlias = Mapping[str, Any]
Invoke: TypeAlias = Callable[[Event, float], float]
"""Runs an invocation that begins at a time; returns when it ends."""

_LONGEST = 300.0


@dataclass(order=True)
class _Try:
    at: float
    number: int
    event: Event = field(compare=False)
    sent_at: float = field(compare=False)
    tries: int = field(compare=False, default=0)


class CrowdedAccount:
    """Its places, and what became of the events."""

    def __init__(self, places: int, oldest: float, invoke: Invoke) -> None:
        self._places, self._oldest, self._invoke = places, oldest, invoke
        self._ends: list[float] = []
        self.dropped: list[Event] = []
        self.refused = 0

    def play(self, minutes: int, events: Sequence[Event], start: float) -> None:
        """Let each of these events be sent once a minute, for so many."""
        sent = ((start + 60 * minute, event) for minute in range(minutes) for event in events)
        tries = [_Try(at, number, event, at) for number, (at, event) in enumerate(sent)]
        heapq.heapify(tries)
        while tries:
            one = heapq.heappop(tries)
            self._ends = [end for end in self._ends if end > one.at]
            if len(self._ends) < self._places:
                heapq.heappush(self._ends, self._invoke(one.event, one.at))
                continue
            self.refused += 1
            again = one.at + min(2.0**one.tries, _LONGEST)
            if again - one.sent_at > self._oldest:
                self.dropped.append(one.event)
            else:
                heapq.heappush(tries, _Try(again, one.number, one.event, one.sent_at, one.tries + 1))
