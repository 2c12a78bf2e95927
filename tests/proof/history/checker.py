"""All claims over one history."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from tests.proof.history import chances, expiry, fencing, limits, loss, order, overlap, schedules, tasks
from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.events import Event
from tests.proof.history.runs import RunHistory

_CHECKS: Final[dict[Claim, Callable[[RunHistory, Terms], Iterator[Violation]]]] = {
    module.CLAIM: module.check for module in (overlap, loss, order, fencing, chances, expiry, limits, tasks, schedules)
}
CLAIMS: Final = tuple(_CHECKS)
"""In the order of a report."""


class Verdict(msgspec.Struct, frozen=True):
    """What a history shows. `operations` counts its events by kind, `payloads` those whose push was answered.

    `most` is how many runs there were at once at most, `holders` how many holders had some at once.
    """

    violations: dict[str, list[Violation]]
    operations: dict[str, int]
    payloads: int
    runs: int
    most: int
    holders: int

    @property
    def sound(self) -> bool:
        """Whether no claim is broken."""
        return not any(self.violations.values())

    @property
    def words(self) -> list[str]:
        """A line for each violation."""
        return [str(each) for found in self.violations.values() for each in found]


def check(events: Iterable[Event], terms: Terms | None = None) -> Verdict:
    """Judge a history by each claim. Each claim has a list of violations, which is empty if it holds."""
    terms, history = terms or Terms(), RunHistory(events)
    operations = Counter[str](event.what for event in history.events)
    payloads = sum(len(event.numbers) for event in history.events if (event.what, event.outcome) == ("push-end", "ok"))
    found = {claim.id: [*judge(history, terms)] for claim, judge in _CHECKS.items()}
    most, holders = (limits.most_at_once(history, by_holder=by_holder) for by_holder in (False, True))
    return Verdict(found, {**operations}, payloads, sum(1 for _ in history.runs()), most, holders)
