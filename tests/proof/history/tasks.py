"""Tasks: items that end twice or never, and a completion that comes too early, twice or never."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.runs import IdStory, RunHistory

CLAIM: Final = Claim(
    "tasks",
    "Each item of a task ends once, and the task completes once, when all of them have.",
    "For each task: every number of an item-begin is in exactly one item-end, and no other number is. There is at most "
    "one completed, and at the end one; no item-begin or item-end is behind it.",
    "Tasks that are cancelled, forgotten, or have dead items put back.",
)
KINDS: Final = frozenset(("item-begin", "item-end", "completed"))


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Task by task."""
    for task, story in history.stories.items():
        if any(event.what in KINDS for event, _ in story.events):
            for words in _of_task(story, terms):
                yield Violation(CLAIM.id, task, words)


def _of_task(story: IdStory, terms: Terms) -> Iterator[str]:
    begun: Counter[int] = Counter()
    ended: Counter[int] = Counter()
    completed = 0
    for event, _ in story.events:
        if event.what in KINDS and completed:
            yield f"{event.what} {event.numbers[:20]} behind its completion"
        if event.what == "completed":
            completed += 1
            if is_open := sorted({*begun} - {*ended}):
                yield f"it was completed while {is_open[:20]} were open"
        elif event.what in KINDS:
            (begun if event.what == "item-begin" else ended).update(event.numbers)
    if twice := sorted(number for number, count in ended.items() if count > 1):
        yield f"{twice[:20]} ended twice"
    if strange := sorted({*ended} - {*begun}):
        yield f"{strange[:20]} ended, and are no items of it"
    if terms.ended and not completed:
        yield f"it never completed; {sorted({*begun} - {*ended})[:20]} are open"
