"""Judges a storm by its notes alone: it knows no Redis, no engine and no clock but that of the notes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from tests.chaos.storm.notes import Note

BAD = "bad"
"""How the ids begin that always fail."""
MAX_CRASHES = 3
"""Deaths that kill an id that ran alone."""


class Execution(msgspec.Struct):
    """One call of the handler for one id. `outcome`: done, failed, stale, or "" where its process died."""

    id: str
    pid: int
    payloads: list[int]
    began_at: float
    ended_at: float
    outcome: str = ""
    settled: bool = False
    """Whether nothing happened that could have kept its outcome from Redis."""
    was_frozen: bool = False
    """Whether its process had stood still, and has told no outcome: it may have outlived its lease."""
    is_late: bool = False
    """Whether its process stood still before it began: perhaps after the look at its lease."""


class Story(msgspec.Struct):
    """The notes of one id. `pushed`: the payloads whose push was acknowledged; `sent`: those that were sent at all."""

    sent: set[int] = msgspec.field(default_factory=set)
    pushed: set[int] = msgspec.field(default_factory=set)
    executions: list[Execution] = msgspec.field(default_factory=list)


def violations(notes: Sequence[Note], *, retries: int, settling: float, ended: bool) -> list[str]:
    """What must not be, in words.

    `retries`: the worker's max_retry_count. `settling`: seconds within which an outcome is in Redis, without faults.
    `ended`: nothing waits any more, so whatever was pushed must have been performed.
    """
    found = []
    for job_id, story in stories(notes, settling).items():
        is_bad = job_id.startswith(BAD)
        found += [f"{job_id}: {each}" for each in (*overlaps(story), *disorder(story, is_bad=is_bad))]
        if ended:
            found += [f"{job_id}: {each}" for each in losses(story, retries if is_bad else None)]
    return found


def stories(notes: Sequence[Note], settling: float) -> dict[str, Story]:
    """The notes by id."""
    told: dict[str, Story] = defaultdict(Story)
    running: dict[tuple[int, str], Execution] = {}
    notes = _with_last_words(notes)
    faults = [note for note in notes if note.what in ("killed", "frozen", "thawed", "cut")]
    frozen = {note.pid for note in faults if note.what == "frozen"}
    stands = set[int]()
    for note in notes:
        story = told[note.id] if note.id else Story()
        if note.what == "pushing":
            story.sent.update(note.payloads)
        elif note.what == "pushed":
            story.pushed.update(note.payloads)
        elif note.what == "begin":
            execution = Execution(note.id, note.pid, note.payloads, note.at, float("inf"), is_late=note.pid in stands)
            story.executions.append(execution)
            running[note.pid, note.id] = execution
        elif note.what == "frozen":
            stands.add(note.pid)
        elif note.what in ("done", "failed", "stale"):
            stands.discard(note.pid)
            execution = running.pop((note.pid, note.id))
            execution.ended_at, execution.outcome = note.at, note.what
            execution.settled = note.what != "stale" and not _disturbed(execution, faults, settling)
        elif note.what == "killed":
            for key in [key for key in running if key[0] == note.pid]:
                execution = running.pop(key)
                execution.ended_at, execution.was_frozen = note.at, note.pid in frozen
    # A process that stands still, or has just gone on, has yet to say whether it has outlived its lease.
    for (pid, _), execution in running.items():
        execution.was_frozen = pid in frozen
    return told


def _with_last_words(notes: Sequence[Note]) -> list[Note]:
    """A process that is killed may write a little more before it dies: its end comes behind that."""
    last = {note.pid: note.at for note in notes if note.what not in ("killed", "frozen", "thawed", "cut")}
    ends = {note.pid: max(note.at, last.get(note.pid, 0.0)) for note in notes if note.what == "killed"}
    dated = [msgspec.structs.replace(note, at=ends[note.pid]) if note.what == "killed" else note for note in notes]
    return sorted(dated, key=lambda note: (note.at, note.what == "killed"))


def _disturbed(execution: Execution, faults: Sequence[Note], settling: float) -> bool:
    return any(
        fault.pid in (execution.pid, 0) and execution.began_at <= fault.at <= execution.ended_at + settling
        for fault in faults
    )


def overlaps(story: Story) -> Iterator[str]:
    """P1: two executions at one time, none of which had outlived its lease, or died too late to tell."""
    fresh = [one for one in story.executions if one.outcome != "stale" and (one.outcome or not one.was_frozen)]
    for before, after in pairwise(fresh):
        if after.began_at < before.ended_at:
            yield f"{after.payloads} began in process {after.pid} while process {before.pid} ran {before.payloads}"


def disorder(story: Story, *, is_bad: bool) -> Iterator[str]:
    """P3: a newer payload before an older one, a payload that nobody pushed, or one again that was done for good."""
    left, done_for_good = set[int](), set[int]()
    for execution in story.executions:
        payloads = execution.payloads
        if payloads != sorted(payloads) or not set(payloads) <= story.sent:
            yield f"{payloads} were handed over, of {sorted(story.sent)}"
        skipped = {older for older in story.pushed if older < payloads[-1]} - left - set(payloads)
        if skipped and not is_bad:
            yield f"{payloads} were handed over before {sorted(skipped)}"
        outlived = execution.is_late and execution.outcome in ("stale", "")
        if (again := done_for_good & set(payloads)) and not outlived:
            yield f"{sorted(again)} were handed over again after they were done"
        if execution.outcome in ("done", "stale"):
            # They may be done, and may come again.
            left.update(payloads)
        if execution.settled and execution.outcome == "done":
            done_for_good.update(payloads)


def losses(story: Story, retries: int | None) -> Iterator[str]:
    """P2, P7: a payload that was never done, or, of an id that always fails, one that had too few or many chances."""
    deaths = sum(not execution.outcome for execution in story.executions)
    if deaths >= MAX_CRASHES:
        return
    if retries is None:
        done = {payload for one in story.executions if one.outcome in ("done", "stale") for payload in one.payloads}
        if lost := story.pushed - done:
            yield f"{sorted(lost)} were lost"
        return
    for payload in sorted(story.pushed):
        chances = [one.settled for one in story.executions if one.payloads[0] == payload and one.outcome]
        if len(chances) < retries + 1:
            yield f"{payload} was the oldest in {len(chances)} failures, of {retries + 1}"
        if sum(chances) > retries + 1:
            yield f"{payload} was the oldest in {sum(chances)} failures, of {retries + 1}"
