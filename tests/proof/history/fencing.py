"""P4: what an older holder writes behind a younger one."""

import math
from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.order import WaitingLine
from tests.proof.history.runs import HandlerRun, IdStory, RunHistory

CLAIM: Final = Claim(
    "P4",
    "Tokens grow with every holder, so a store that refuses lower tokens sees each id in order.",
    "For all runs r before s of one id, by their begins: r.token <= s.token, or s outlived its lease. Of the writes of "
    "an id, keep those whose token is not below that of any earlier one: each comes behind all lower numbers whose "
    "push was answered before, and at the end the last one is that of the largest number.",
    "A handler that writes without its token; payloads that expire.",
)


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Tokens that fall, and what a store with a fence would see."""
    for job_id, story in history.stories.items():
        for at, words in (*_falling(story), *_fenced(story, terms, story.expired(history.ended_at, terms.blur))):
            yield Violation(CLAIM.id, job_id, words, at)


def _falling(story: IdStory) -> Iterator[tuple[float, str]]:
    highest = -math.inf
    for run in story.runs:
        if run.token < highest and not _has_outlived(run):
            yield run.began_at, f"{run.numbers} came under token {run.token}, behind token {highest:.0f}"
        highest = max(highest, run.token)


def _has_outlived(run: HandlerRun) -> bool:
    return run.outcome == "stale" or run.is_late or run.stood or run.outlived


def _fenced(story: IdStory, terms: Terms, over: set[int]) -> Iterator[tuple[float, str]]:
    line, highest, last, largest = WaitingLine(over), -math.inf, 0, 0
    for event, _ in story.events:
        if event.what == "push-begin" and event.numbers:
            line.push(event.numbers)
        elif event.what == "push-end" and event.outcome == "ok" and event.numbers:
            line.answer(event.numbers)
            largest = max(largest, *{*event.numbers} - over, 0)
        elif event.what == "write" and event.numbers and event.token >= highest:
            highest, last = event.token, event.numbers[-1]
            if skipped := line.skipped(event.numbers):
                yield event.at, f"{event.numbers} were written before {skipped[:20]}"
            line.write(event.numbers)
    if highest > -math.inf and terms.ended:
        if line.undone:
            yield math.inf, f"{sorted(line.undone)[:20]} were never written under a token that counts"
        if last < largest:
            yield math.inf, f"{last} was written last, and not {largest}"
