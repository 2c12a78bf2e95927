"""Tasks: items that end twice or never, and a completion that comes too early, twice or never."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.events import Event
from tests.proof.history.runs import IdStory, RunHistory

CLAIM: Final = Claim(
    "tasks",
    "Each item of a task ends once, and the task completes once, when all of them have.",
    "For each task: every number of an item-begin is in exactly one item-end, with the outcome that the item-begin "
    "names, if any, and no other number is. There is at most one completed, and at the end one; no item-begin or "
    "item-end is behind it.",
    "Tasks that are cancelled or forgotten, or whose dead items are requeued.",
)
KINDS: Final = frozenset(("item-begin", "item-end", "completed"))


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Task by task."""
    for task, story in history.stories.items():
        if any(event.what in KINDS for event, _ in story.events):
            for words in _of_task(story, terms):
                yield Violation(CLAIM.id, task, words)


class TaskAccount:
    """The items of one task. `due`: the status that each must get, empty if any will do."""

    def __init__(self) -> None:
        self.due: dict[int, str] = {}
        self.ended: Counter[int] = Counter()
        self.completed = 0

    @property
    def open(self) -> list[int]:
        """Those that have not ended."""
        return sorted(self.due.keys() - self.ended.keys())

    def take(self, event: Event) -> Iterator[str]:
        """The event happens; what is wrong with it."""
        if self.completed:
            yield f"{event.what} {event.numbers[:20]} behind its completion"
        if event.what == "completed":
            self.completed += 1
            if self.open:
                yield f"it was completed while {self.open[:20]} were open"
        elif event.what == "item-begin":
            self.due.update(dict.fromkeys(event.numbers, event.outcome))
        else:
            self.ended.update(event.numbers)
            if wrong := [n for n in event.numbers if self.due.get(n, "") not in ("", event.outcome)]:
                yield f"{wrong[:20]} ended {event.outcome}, and not {self.due[wrong[0]]}"


def _of_task(story: IdStory, terms: Terms) -> Iterator[str]:
    account = TaskAccount()
    for event, _ in story.events:
        if event.what in KINDS:
            yield from account.take(event)
    if twice := sorted(number for number, count in account.ended.items() if count > 1):
        yield f"{twice[:20]} ended twice"
    if strange := sorted(account.ended.keys() - account.due.keys()):
        yield f"{strange[:20]} ended, and are no items of it"
    if terms.ended and not account.completed:
        yield f"it never completed; {account.open[:20]} are open"
