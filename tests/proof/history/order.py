"""P3: a newer payload before an older one."""

import heapq
from collections.abc import Collection, Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.events import Event
from tests.proof.history.runs import MAYBE_DONE, HandlerRun, IdStory, RunHistory

CLAIM: Final = Claim(
    "P3",
    "Payloads of an id are handed over by score, also on retry and recovery.",
    "For each run r of an id: its numbers ascend; each number below its last whose push was answered before r.begin, "
    "or which the same push sent before that last one, is in r or left (a run that had it ended done or stale). A "
    "number that was left comes again only with all numbers of its run. It does not come behind the begin of a run "
    "whose numbers are all larger, unless r is an older holder that had stood still or been evicted before. The "
    "numbers of a look at the end ascend.",
    "Ids that always fail; payloads that were the first of three runs whose process died, that expire, or that are "
    "pushed after larger ones.",
)


class WaitingLine:
    """The payloads of one id that wait, as far as pushes and runs tell.

    Undone numbers are in a heap, so that each run looks at no more of them than it has. `free`: no order is asked of
    these, as they may have died.
    """

    def __init__(self, free: Collection[int] = ()) -> None:
        self.undone: set[int] = set()
        self._free = {*free}
        self._heap: list[int] = []
        self._highest = -1
        self._open: dict[int, tuple[list[int], int]] = {}
        """The numbers of the open push of each number, and its place among them."""
        self.left: dict[int, HandlerRun | None] = {}
        """By number: the last run that has left it, None for a write."""
        self.passed = 0
        """The largest first number of all runs."""

    def push(self, numbers: list[int]) -> None:
        """They are sent. A number below an earlier one comes late: no order is asked of it."""
        self._open |= {number: (numbers, at) for at, number in enumerate(numbers) if number > self._highest}
        self._highest = max(self._highest, *numbers)

    def answer(self, numbers: list[int]) -> None:
        """They are written."""
        for number in numbers:
            if self._open.pop(number, None) is not None and number not in self.left:
                self.wait(number)

    def wait(self, number: int) -> None:
        """It is to come."""
        if number not in self._free:
            self.undone.add(number)
            heapq.heappush(self._heap, number)

    def skipped(self, numbers: list[int]) -> list[int]:
        """What should have come before the last of these."""
        last, mine, found, kept = numbers[-1], {*numbers}, list[int](), list[int]()
        while self._heap and self._heap[0] < last:
            number = heapq.heappop(self._heap)
            if number in self.undone and (not kept or kept[-1] != number):
                kept.append(number)
                if number not in mine:
                    found.append(number)
                    break
        for number in kept:
            heapq.heappush(self._heap, number)
        push, at = self._open.get(last, ([], 0))
        sent = (n for n in push[:at] if n < last and not (n in self.left or n in mine or n in self._free))
        return [*found, *sent]

    def passed_by(self, run: HandlerRun) -> list[int]:
        """Its numbers that were left, and that larger ones have overtaken since."""
        again = (n for n in run.numbers if n in self.left and n < self.passed and n not in self._free)
        return [number for number in again if not run.is_overtaken(self.left[number])]

    def leave(self, run: HandlerRun) -> None:
        """These need not come again."""
        self.undone -= {*run.numbers}
        self.left.update(dict.fromkeys(run.numbers, run))

    def write(self, numbers: list[int]) -> None:
        """These are written somewhere."""
        self.undone -= {*numbers}
        self.left.update(dict.fromkeys(numbers))

    def come_again(self, run: HandlerRun) -> None:
        """What an earlier run had left with one of these was not done either, so it is to come."""
        for number in run.numbers:
            before = self.left.get(number)
            for other in before.numbers if before else ():
                if other > run.numbers[-1] and self.left.get(other) is before:
                    del self.left[other]
                    self.wait(other)


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Runs that come out of order, id by id."""
    for job_id, story in history.stories.items():
        is_bound = not terms.always_fails(job_id)
        over = story.expired(history.ended_at, terms.blur)
        for event, words in _disorder(story, terms, over):
            if is_bound or words.endswith("ascend"):
                yield Violation(CLAIM.id, job_id, words, event.at)


def _disorder(story: IdStory, terms: Terms, over: set[int]) -> Iterator[tuple[Event, str]]:
    line = WaitingLine(story.may_be_dead(terms.crashes) | over)
    for event, run in story.events:
        if event.what == "push-begin" and event.numbers:
            line.push(event.numbers)
        elif event.what == "push-end" and event.outcome == "ok":
            line.answer(event.numbers)
        elif event.what == "begin" and run and run.numbers:
            for words in _of_run(line, run):
                yield event, words
        elif event.what == "end" and run and run.outcome in MAYBE_DONE:
            line.leave(run)
        elif event.what == "left" and event.numbers != sorted(event.numbers):
            yield event, f"{event.numbers} are left, and do not ascend"
    for event, _ in story.events[-1:] if terms.ended else ():
        if missing := sorted(line.undone & _numbers_of_runs(story)):
            yield event, f"{missing[:20]} did not come again with others of their run"


def _of_run(line: WaitingLine, run: HandlerRun) -> Iterator[str]:
    numbers = run.numbers
    if numbers != sorted({*numbers}):
        yield f"{numbers} do not ascend"
    if skipped := line.skipped(numbers):
        yield f"{numbers} were handed over before {skipped[:20]}"
    if again := line.passed_by(run):
        yield f"{again[:20]} came again behind larger ones"
    line.passed = max(line.passed, numbers[0])
    if run.outcome != "stale" and not run.outlived:
        line.come_again(run)


def _numbers_of_runs(story: IdStory) -> set[int]:
    return {number for run in story.runs if run.outcome in MAYBE_DONE for number in run.numbers}
