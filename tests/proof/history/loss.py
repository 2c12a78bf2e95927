"""P2: a payload that is gone, that nobody pushed, or that comes again though it was done."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.runs import MAYBE_DONE, HandlerRun, IdStory, RunHistory

CLAIM: Final = Claim(
    "P2",
    "A payload whose push was answered is performed to its end, or lies in the queue or the morgue, once.",
    "For each id: every number of a push that was answered ok is in a run that ended done or stale, or in one look at "
    "what is left; each number of a run or a look was in a push that was not refused; no number is in two looks, or in "
    "a look and a run that is done for good. A number that a run did for good (settled; or done, with no harm to its "
    "process within the time of a settling) comes again only to an older holder that had stood still or been evicted "
    "before. To others a number that did not fail comes again only with the word that it does. A settling names a run "
    "that was done or stale.",
    "Data that the server loses; expired payloads; the morgue's bound; if nobody looks there, payloads that were the "
    "first of three runs whose process died.",
)


class IdAccount:
    """Where the numbers of one id are."""

    def __init__(self, story: IdStory) -> None:
        self.pushed: set[int] = set()
        self.possible: set[int] = set()
        self.due: dict[int, float | None] = {}
        self.left: Counter[int] = Counter()
        self.left_dead: set[int] = set()
        self.changed: list[int] = []
        refused: set[int] = set()
        for event, _ in story.events:
            if event.what == "push-begin":
                self.possible.update(event.numbers)
                self.due.update(dict.fromkeys(event.numbers, event.due))
            elif event.what == "push-end":
                if event.outcome == "ok":
                    self.pushed.update(event.numbers)
                elif event.outcome == "refused":
                    refused.update(event.numbers)
            elif event.what == "left":
                self.left.update(event.numbers)
                if event.outcome == "dead":
                    self.left_dead.update(event.numbers)
                else:
                    self.changed += [n for n in event.numbers if self.due.get(n, event.due) != event.due]
        self.possible -= refused - self.pushed


def check(history: RunHistory, terms: Terms) -> Iterator[Violation]:
    """Losses, inventions, doubles and repeats, id by id."""
    for job_id, story in history.stories.items():
        if not story.runs and not any(event.what in ("push-begin", "left") for event, _ in story.events):
            continue
        account = IdAccount(story)
        account.pushed -= story.expired(history.ended_at, terms.blur)
        lost = _lost(story, account, terms, may_lie_dead=terms.always_fails(job_id))
        for words in (*_repeats(story, terms), *_inventions(story, account), *lost):
            yield Violation(CLAIM.id, job_id, words)
    for event in history.strays:
        if event.what == "settled":
            yield Violation(CLAIM.id, event.id, "an end was acknowledged that no handler noted", event.at)


def _repeats(story: IdStory, terms: Terms) -> Iterator[str]:
    done_by: dict[int, HandlerRun] = {}
    handed: dict[int, HandlerRun] = {}
    for run in story.runs:
        again = [n for n in run.numbers if n in done_by and not run.is_overtaken(done_by[n])]
        if final := [n for n in again if done_by[n].is_final(run.began_at, _settling(terms))]:
            yield f"{final[:20]} were handed over again after they were done"
        others = (n for n in run.numbers if n in handed and not run.is_overtaken(handed[n]))
        if untold := [n for n in others if run.repeated is False and handed[n].outcome != "failed"]:
            yield f"{untold[:20]} came again as if for the first time"
        handed.update(dict.fromkeys(run.numbers, run))
        if run.outcome == "done":
            done_by.update({n: run for n in run.numbers if not _is_settled(done_by.get(n))})


def _settling(terms: Terms) -> float | None:
    return None if terms.acknowledged else terms.settling


def _is_settled(run: HandlerRun | None) -> bool:
    return run is not None and run.settled_at < math.inf


def _inventions(story: IdStory, account: IdAccount) -> Iterator[str]:
    performed = {number for run in story.runs for number in run.numbers}
    if invented := sorted(performed - account.possible):
        yield f"{invented[:20]} were handed over, and nobody had pushed them"
    if invented := sorted({*account.left} - account.possible):
        yield f"{invented[:20]} are left, and nobody had pushed them"
    if doubled := sorted(number for number, count in account.left.items() if count > 1):
        yield f"{doubled[:20]} are left twice"
    if account.changed:
        yield f"{account.changed[:20]} are not due as they were pushed"


def _lost(story: IdStory, account: IdAccount, terms: Terms, *, may_lie_dead: bool) -> Iterator[str]:
    done = {n for run in story.runs if run.outcome in MAYBE_DONE for n in run.numbers}
    certain = {n for run in story.runs if run.is_final(math.inf, _settling(terms)) for n in run.numbers}
    if both := sorted(certain & {*account.left}):
        yield f"{both[:20]} are left, and were done"
    may_be_dead = story.may_be_dead(terms.crashes)
    if failed_never := sorted(account.left_dead - _failed(story) - may_be_dead):
        yield f"{failed_never[:20]} lie in the morgue, and did not fail"
    if not terms.ended or (may_lie_dead and not terms.looked):
        return
    excused = set() if terms.looked else may_be_dead
    if lost := sorted(account.pushed - done - {*account.left} - excused):
        yield f"{lost[:20]} were lost"


def _failed(story: IdStory) -> set[int]:
    """What failed, or was in a run whose process died."""
    return {n for run in story.runs if run.outcome != "done" for n in run.numbers}
