"""Expiry: what is handed over when its time is over."""

import math
from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.runs import RunHistory

CLAIM: Final = Claim(
    "expiry",
    "No payload is handed over after its expiry.",
    "For each run r of an id, and each of its numbers whose push has an expiry: r.begin <= expiry + `blur`. A number "
    "whose expiry is over at the end need not be in any run, and no order is asked of it.",
    "A process that was frozen between reading the time and its run; a begin that is noted late.",
)


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Runs of payloads that were over, id by id."""
    for job_id, story in history.stories.items():
        expiries = story.expiries()
        for run in story.runs if expiries else ():
            bound = run.began_at - terms.blur
            late = [number for number in run.numbers if expiries.get(number, math.inf) < bound]
            if late and not run.is_late:
                yield Violation(CLAIM.id, job_id, f"{late[:20]} were handed over after their expiry", run.began_at)
