"""P7: payloads that had too few or too many chances."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.runs import HandlerRun, RunHistory

CLAIM: Final = Claim(
    "P7",
    "A payload that always fails is tried as often as its worker says, and no more.",
    "For each number of an id that always fails, whose push was answered: let F be the runs with an outcome in which "
    "it is the first. Then |F| >= retries + 1, and at most retries + 1 of F had no harm done to their process before "
    "their outcome was durable.",
    "A payload that was the first of three runs whose process died.",
)


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Ids that always fail, number by number."""
    if terms.retries is None or not terms.ended:
        return
    due = terms.retries + 1
    for job_id, story in history.stories.items():
        if not terms.always_fails(job_id):
            continue
        chances: dict[int, list[bool]] = defaultdict(list)
        for run in story.runs:
            if run.outcome:
                chances[run.numbers[0]].append(_counts(run, terms))
        pushed = {
            n for event, _ in story.events if event.what == "push-end" and event.outcome == "ok" for n in event.numbers
        }
        for number in sorted(pushed - story.may_be_dead(terms.crashes)):
            had = chances[number]
            if len(had) < due or sum(had) > due:
                words = f"{number} was the oldest in {len(had)} failures ({sum(had)} without harm), of {due}"
                yield Violation(CLAIM.id, job_id, words)


def _counts(run: HandlerRun, terms: Terms) -> bool:
    return run.outcome != "stale" and run.disturbed_at > run.ended_at + (terms.settling or 0.0)
