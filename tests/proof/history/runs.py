"""A history by ids: pushes, runs of handlers, and the harm that was done to their processes."""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

import msgspec

from tests.proof.history.events import Event

HARM: Final = frozenset(("died", "frozen", "thawed", "fault"))
MAYBE_DONE: Final = frozenset(("done", "stale"))
"""Outcomes after which the payloads may be done for good: a stale handler's settling may have come in time."""


class HandlerRun(msgspec.Struct, eq=False):
    """One call of the handler for one id. `outcome` is empty while it runs, and if its process died.

    `lost_at`: when an operator took its lease. `is_late`: its process stood still before it began, and its holder has
    not had its lease at the end of a run since, so that its last look at it may be older. `stood`: its process had
    stood still, and has told no outcome. `disturbed_at`: the first harm to its process since it began.
    """

    id: str
    process: int
    numbers: list[int]
    token: int
    scope: str
    began_at: float
    repeated: bool | None
    is_late: bool
    ended_at: float = math.inf
    held_at: float = -math.inf
    lost_at: float = math.inf
    disturbed_at: float = math.inf
    outcome: str = ""
    stood: bool = False
    settled_at: float = math.inf

    @property
    def outlived(self) -> bool:
        """Whether it may have begun behind the end of its lease.

        It was taken before, or its process stood still before, and has told nothing else since.
        """
        return self.lost_at <= self.began_at or (self.is_late and self.outcome in ("", "stale"))

    def is_overtaken(self, other: "HandlerRun | None") -> bool:
        """Whether it may come behind what the other has done: a younger holder's, behind the end of its lease."""
        return self.outlived and other is not None and other.token > self.token

    def may_have_died(self, at: float) -> bool:
        """Whether its process may have died, or lost its lease, before that time and before the run was settled."""
        if self.settled_at < math.inf:
            return False
        return self.outcome in ("", "stale") or min(self.disturbed_at, self.lost_at) <= at

    def is_final(self, at: float, settling: float | None) -> bool:
        """Whether it is done for good, as one sees it at that time."""
        if self.settled_at < math.inf and self.settled_at <= at:
            return True
        if settling is None or self.outcome != "done" or self.ended_at > at:
            return False
        return min(self.disturbed_at, self.lost_at) > min(self.ended_at + settling, at)


class IdStory(msgspec.Struct):
    """The events of one id, in the order of time; those of its runs name them by their place in `runs`."""

    events: list[tuple[Event, HandlerRun | None]] = []
    runs: list[HandlerRun] = []

    def expiries(self) -> dict[int, float]:
        """When those numbers expire whose push says so."""
        pushes = (event for event, _ in self.events if event.what == "push-begin")
        return {n: event.expires for event in pushes if event.expires is not None for n in event.numbers}

    def expired(self, ended_at: float, blur: float) -> set[int]:
        """The numbers that are over at that time, or may be."""
        return {number for number, at in self.expiries().items() if at < ended_at + blur}

    def may_be_dead(self, crashes: int) -> set[int]:
        """The numbers that were the first of so many runs which may have counted as deaths of their process."""
        counts: Counter[int] = Counter()
        for run, after in pairwise([*self.runs, None]):
            if run and run.numbers and run.may_have_died(math.inf if after is None else after.began_at):
                counts[run.numbers[0]] += 1
        return {number for number, count in counts.items() if count >= crashes}


class RunHistory:
    """Goes through the events once. `strays`: ends and settlings of no run. `scopes`: tokens that were evicted."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = _with_last_words(events)
        self.stories: dict[str, IdStory] = defaultdict(lambda: IdStory([], []))
        self.strays: list[Event] = []
        self._open: dict[int, dict[str, list[HandlerRun]]] = defaultdict(lambda: defaultdict(list))
        """By process and id."""
        self._done: dict[tuple[int, str], list[HandlerRun]] = defaultdict(list)
        self._harm: dict[int, list[float]] = defaultdict(list)
        self._stood_at: dict[int, float] = {}
        self._held_at: dict[tuple[int, int], float] = defaultdict(lambda: -math.inf)
        """When each holder, a process and a token, ended a run last, and had its lease."""
        self._has_stood: set[int] = set()
        for event in self.events:
            if event.what in HARM:
                self._note_harm(event)
        for event in self.events:
            self._take(event)
        evictions = _Evictions(self.events)
        for run in self.runs():
            run.stood = run.process in self._has_stood and not run.outcome
            run.disturbed_at = min(self._next_harm(run.process, run.began_at), self._next_harm(0, run.began_at))
            run.lost_at = evictions.first(run.scope, run.token)

    @property
    def ended_at(self) -> float:
        """The time of the last event."""
        return self.events[-1].at if self.events else 0.0

    def runs(self) -> Iterator[HandlerRun]:
        """All of them."""
        return (run for story in self.stories.values() for run in story.runs)

    def _note_harm(self, event: Event) -> None:
        self._harm[event.process].append(event.at)
        if event.what == "frozen":
            self._has_stood.add(event.process)

    def _next_harm(self, process: int, since: float) -> float:
        times: Sequence[float] = self._harm.get(process, ())
        at = bisect_left(times, since)
        return times[at] if at < len(times) else math.inf

    def _take(self, event: Event) -> None:
        run = None
        if event.what == "begin":
            run = self._begin(event)
        elif event.what in ("end", "holds"):
            run = self._end(event)
        elif event.what == "settled":
            run = self._settle(event)
        elif event.what == "frozen":
            self._stood_at[event.process] = event.at
        elif event.what == "died":
            self._die(event)
        if event.id:
            self.stories[event.id].events.append((event, run))

    def _begin(self, event: Event) -> HandlerRun:
        run = HandlerRun(
            id=event.id,
            process=event.process,
            numbers=event.numbers,
            token=event.token,
            scope=event.scope,
            began_at=event.at,
            repeated=event.repeated,
            is_late=self._stood_at.get(event.process, -math.inf) > self._held_at[event.process, event.token],
        )
        self.stories[event.id].runs.append(run)
        self._open[event.process][event.id].append(run)
        return run

    def _end(self, event: Event) -> HandlerRun | None:
        runs = self._open[event.process][event.id]
        run = next((run for run in reversed(runs) if run.token == event.token), None)
        if run is None:
            self.strays.append(event)
        elif event.what == "holds":
            run.held_at = event.at
        else:
            if event.outcome != "stale":
                self._held_at[event.process, event.token] = event.at
            runs.remove(run)
            run.ended_at, run.outcome = event.at, event.outcome
            if event.outcome in MAYBE_DONE:
                self._done[event.process, event.id].append(run)
        return run

    def _settle(self, event: Event) -> HandlerRun | None:
        runs = self._done[event.process, event.id]
        run = next((run for run in reversed(runs) if run.token == event.token), None)
        if run is None:
            self.strays.append(event)
        else:
            run.settled_at = min(run.settled_at, event.at)
        return run

    def _die(self, event: Event) -> None:
        for runs in self._open.pop(event.process, {}).values():
            for run in runs:
                run.ended_at = event.at


class _Evictions:
    """When each token lost its lease first: an eviction takes it from the token that it names and all before."""

    def __init__(self, events: Iterable[Event]) -> None:
        by_scope: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for event in events:
            if event.what == "evicted":
                by_scope[event.scope].append((event.token, event.at))
        self._tokens: dict[str, list[int]] = {}
        self._first: dict[str, list[float]] = {}
        for scope, pairs in by_scope.items():
            pairs.sort()
            self._tokens[scope] = [token for token, _ in pairs]
            self._first[scope] = [*accumulate((at for _, at in reversed(pairs)), min)][::-1]

    def first(self, scope: str, token: int) -> float:
        """The time of the first eviction of that token, or infinity."""
        tokens = self._tokens.get(scope, [])
        at = bisect_left(tokens, token)
        return self._first[scope][at] if at < len(tokens) else math.inf


def _with_last_words(events: Iterable[Event]) -> list[Event]:
    """The events in order. A process that is killed may write a little more before it dies: its death is behind."""
    events = [*events]
    last: dict[int, float] = {}
    for event in events:
        if event.what not in HARM and event.process:
            last[event.process] = max(event.at, last.get(event.process, -math.inf))
    dated = [
        msgspec.structs.replace(event, at=max(event.at, last.get(event.process, event.at)))
        if event.what == "died"
        else event
        for event in events
    ]
    return sorted(dated, key=lambda event: (event.at, event.what == "died"))
