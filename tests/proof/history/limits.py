"""Limits: more holders at once than there are permits, or more ids in a window than its rate."""

import math
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.runs import HandlerRun, RunHistory

CLAIM: Final = Claim(
    "limits",
    "A queue never has more visits at once than permits, or more ids in a window than its rate.",
    "A run lasts from its begin to its end; if it is stale or told no end, to the last moment at which it was not told "
    "to stop. At no time do runs of more than `running` holders (process and token) last. For no run do more than "
    "`rate` runs begin within `per` seconds from its begin.",
    "Handlers that ignore a stop; a begin that is noted late.",
)


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Both limits, if there are any."""
    if terms.running < math.inf:
        most, at, job_id = _most(history, by_holder=True)
        if most > terms.running:
            yield Violation(CLAIM.id, job_id, f"{most} holders at once, of {terms.running}", at)
    if terms.rate < math.inf:
        yield from _crowded(history, terms)


def most_at_once(history: RunHistory, *, by_holder: bool) -> int:
    """How many runs there were at once at most, or how many holders that had some."""
    return _most(history, by_holder=by_holder)[0]


def _most(history: RunHistory, *, by_holder: bool) -> tuple[int, float, str]:
    edges: list[tuple[float, int, int, int, str]] = []
    for run in history.runs():
        last = _last_moment(run)
        if last > run.began_at:
            edges += [(run.began_at, 1, run.process, run.token, run.id), (last, -1, run.process, run.token, run.id)]
    most, when, who = 0, 0.0, ""
    open_runs: dict[tuple[int, int], int] = defaultdict(int)
    for at, change, process, token, job_id in sorted(edges):
        open_runs[process, token] += change
        if not open_runs[process, token]:
            del open_runs[process, token]
        count = len(open_runs) if by_holder else sum(open_runs.values())
        if count > most:
            most, when, who = count, at, job_id
    return most, when, who


def _last_moment(run: HandlerRun) -> float:
    return run.ended_at if run.outcome in ("done", "failed") else run.held_at


def _crowded(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    window: deque[float] = deque()
    for run in sorted(history.runs(), key=lambda run: run.began_at):
        while window and run.began_at - window[0] >= terms.per - terms.blur:
            window.popleft()
        window.append(run.began_at)
        if len(window) > terms.rate:
            words = f"{len(window)} ids began within {run.began_at - window[0]:.3f} s, of {terms.rate} in {terms.per}"
            yield Violation(CLAIM.id, run.id, words, run.began_at)
