"""Schedules: a planned time that fires twice, or that is left out against the rule."""

from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.runs import IdStory, RunHistory

CLAIM: Final = Claim(
    "schedules",
    "Each planned time fires at most once; missed times follow the schedule's rule.",
    "For each schedule: each fired number was planned, fires once, and behind no larger one. With the rule `all` each "
    "planned number fires; with `once` the largest one does.",
    "A time that is missed by more than the grace.",
)


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Schedule by schedule."""
    for name, story in history.stories.items():
        for words in _of_schedule(story, terms):
            yield Violation(CLAIM.id, name, words)


def _of_schedule(story: IdStory, terms: Terms) -> Iterator[str]:
    planned: dict[int, str] = {}
    fired: set[int] = set()
    for event, _ in story.events:
        if event.what == "planned":
            planned.update(dict.fromkeys(event.numbers, event.outcome))
        for number in event.numbers if event.what == "fired" else ():
            if number in fired:
                yield f"{number} fired twice"
            elif fired and number < max(fired):
                yield f"{number} fired behind {max(fired)}"
            if number not in planned:
                yield f"{number} fired, and was not planned"
            fired.add(number)
    if terms.ended and planned:
        due = {number for number, rule in planned.items() if rule == "all"}
        if planned[max(planned)] == "once":
            due.add(max(planned))
        if left_out := sorted(due - fired):
            yield f"{left_out[:20]} did not fire"
