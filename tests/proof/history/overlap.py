"""P1: two runs of one id at one time."""

from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.runs import HandlerRun, RunHistory

CLAIM: Final = Claim(
    "P1",
    "Two executions of one id never overlap.",
    "For all runs r, s of one id with r.begin <= s.begin < r.end: their tokens differ, and the one with the lower "
    "token was not seen to hold its lease since s.begin, and is stale, or its process stood still and told no outcome, "
    "or its lease was evicted before s.begin. A run whose process dies ends with it.",
    "A process that is frozen for longer than its lease: see P4.",
)


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Each pair of runs that overlap, unless the older holder had lost its lease and could not know it."""
    del terms
    for job_id, story in history.stories.items():
        running: list[HandlerRun] = []
        for run in story.runs:
            running = [before for before in running if before.ended_at > run.began_at]
            for before in running:
                older = min(before, run, key=lambda one: one.token)
                if before.token == run.token or not _has_lost(older, run.began_at):
                    words = f"{run.numbers} began in process {run.process} while process {before.process} ran"
                    yield Violation(CLAIM.id, job_id, f"{words} {before.numbers}", run.began_at)
            running.append(run)


def _has_lost(run: HandlerRun, at: float) -> bool:
    return run.held_at < at and (run.outcome == "stale" or run.stood or run.lost_at <= at)
