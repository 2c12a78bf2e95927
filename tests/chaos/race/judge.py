"""Judges a race by its notes alone: it knows no Redis and no engine."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from lowkiq_lambda.jobs.job import shard_for
from tests.chaos.race.actors import SHARDS
from tests.chaos.race.notes import RaceNote

MAX_CRASHES = 3
"""Deaths that kill an id that ran alone."""


class Run(msgspec.Struct, eq=False):
    """One call of the handler for one id; `lost_at`: when its holder was evicted, or killed."""

    note: RaceNote
    ended_at: float = math.inf
    lost_at: float = math.inf
    outcome: str = ""
    was_told: bool = False
    is_settled: bool = False


class RaceStory(msgspec.Struct):
    """What is known of one id by now. `undone`: numbers whose push was acknowledged, and which no run has done."""

    sent: set[int] = msgspec.field(default_factory=set)
    undone: set[int] = msgspec.field(default_factory=set)
    done_by: dict[int, Run] = msgspec.field(default_factory=dict)
    runs: list[Run] = msgspec.field(default_factory=list)
    open: list[Run] = msgspec.field(default_factory=list)


class Judge:
    """Goes through the notes once, in the order of time. `longest`: seconds that a lease lasts without its holder."""

    def __init__(self, notes: Sequence[RaceNote], longest: float) -> None:
        self._longest = longest
        self.stories: dict[str, RaceStory] = defaultdict(RaceStory)
        self.found: list[str] = []
        self._overlaps: list[tuple[Run, Run]] = []
        self.most = 0
        """Calls for an id at once."""
        self._open = 0
        self._evicted: dict[int, RaceNote] = {}
        """The last eviction of each shard."""
        self._dying: dict[int, float] = {}
        """Since when processes are about to end."""
        for note in notes:
            self._take(note)
        self.found += [text for before, after in self._overlaps for text in self._overlap(before, after)]

    @property
    def runs(self) -> int:
        """How many there were."""
        return sum(len(story.runs) for story in self.stories.values())

    def losses(self) -> list[str]:
        """P2: what was never done, at the end of all; but for an id that died, as its processes died."""
        lost = {job_id: story.undone for job_id, story in self.stories.items() if story.undone}
        return [f"{job_id}: {sorted(numbers)} were lost" for job_id, numbers in lost.items() if not self._died(job_id)]

    def _died(self, job_id: str) -> bool:
        return sum(not run.outcome for run in self.stories[job_id].runs) >= MAX_CRASHES

    def _take(self, note: RaceNote) -> None:
        story = self.stories[note.id] if note.id else RaceStory()
        if note.what == "pushing":
            story.sent.update(note.numbers)
        elif note.what == "pushed":
            # It may have been done before the push was answered.
            story.undone.update(set(note.numbers) - story.done_by.keys())
        elif note.what == "begin":
            self._begin(note, story)
        elif note.what in ("done", "failed", "left"):
            self._end(note, story)
        elif note.what == "settled":
            self._settle(note, story)
        elif note.what in ("killing", "evicting"):
            self._lose(note)

    def _lose(self, note: RaceNote) -> None:
        if note.what == "evicting":
            self._evicted[shard_for(note.id, SHARDS)] = note
        else:
            self._dying[note.pid] = note.at
        for job_id, story in self.stories.items():
            for run in (*story.open, *story.done_by.values()):
                is_meant = run.note.pid == note.pid
                if note.what == "evicting":
                    is_meant = run.note.token <= note.token and shard_for(job_id, SHARDS) == shard_for(note.id, SHARDS)
                if is_meant:
                    run.lost_at = min(run.lost_at, note.at)
            if note.what == "killing":
                self._open -= sum(run.note.pid == note.pid for run in story.open)
                story.open = [run for run in story.open if run.note.pid != note.pid]

    def _begin(self, note: RaceNote, story: RaceStory) -> None:
        evicted = self._evicted.get(shard_for(note.id, SHARDS))
        run = Run(note, lost_at=self._dying.get(note.pid, math.inf))
        if evicted and note.token <= evicted.token:
            run.lost_at = min(run.lost_at, evicted.at)
        self._overlaps += [(before, run) for before in story.open]
        self.found += [f"{note.id}: {text}" for text in self._disorder(note, story)]
        story.runs.append(run)
        if note.pid in self._dying:
            # It ends with its process, if not by itself.
            return
        story.open.append(run)
        self._open += 1
        self.most = max(self.most, self._open)

    def _disorder(self, note: RaceNote, story: RaceStory) -> Iterator[str]:
        numbers = note.numbers
        if numbers != sorted(set(numbers)) or not set(numbers) <= story.sent:
            yield f"{numbers} were handed over"
        if skipped := {number for number in story.undone if number < numbers[-1]} - set(numbers):
            yield f"{numbers} were handed over before {sorted(skipped)}"
        for number in numbers:
            run = story.done_by.get(number)
            if run and run.is_settled:
                yield f"{number} came again after its end was acknowledged"
            elif run and not run.was_told and run.lost_at == math.inf:
                yield f"{number} came again, and nothing had happened to process {run.note.pid}, which did it"

    def _end(self, note: RaceNote, story: RaceStory) -> None:
        # One that is about to be killed may come to its end before.
        run = next(run for run in reversed(story.runs) if not run.outcome and _holder(run.note) == _holder(note))
        if run in story.open:
            story.open.remove(run)
            self._open -= 1
        run.ended_at, run.outcome, run.was_told = note.at, note.what, note.stopping
        if note.what == "done":
            story.undone -= set(note.numbers)
            story.done_by.update(dict.fromkeys(note.numbers, run))

    def _settle(self, note: RaceNote, story: RaceStory) -> None:
        for run in reversed(story.runs):
            if _holder(run.note) == _holder(note) and run.outcome == "done":
                run.is_settled = True
                return
        self.found.append(f"{note.id}: an end was acknowledged that nobody had noted")

    def _overlap(self, before: Run, after: Run) -> Iterator[str]:
        """P1: unless the one that began first had lost its lease, and could not know it yet."""
        was_late = before.was_told and before.ended_at - before.note.at > self._longest / 2
        if min(before.lost_at, after.lost_at) > after.note.at and not was_late:
            pids = f"process {after.note.pid} while process {before.note.pid}"
            yield f"{after.note.id}: {after.note.numbers} began in {pids} ran {before.note.numbers}"


def _holder(note: RaceNote) -> tuple[int, int]:
    return note.pid, note.token
