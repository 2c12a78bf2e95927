"""Pushes that are stored only if their id has no work, beside the model of a shard; its journal is judged."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import invariant

from tests.kit.stored import Entry
from tests.properties.disturbing import disturbance
from tests.properties.expiring import LIFE_OF, LIVES
from tests.properties.journalled import JournalledMachine, JournalledModel
from tests.properties.machine import DELAYS, IDS, JOBS, PAYLOADS, SCORES, Job
from tests.properties.model import NewJob

SUPERSEDED: Final = "superseded"
PLAIN: Final = ("", "")
POLICIES: Final = st.sampled_from(
    [PLAIN, ("waiting", "drop"), ("busy", "drop"), ("waiting", "replace"), ("busy", "replace")]
)
POLICY_OF: Final = {'"x"': ("busy", "drop"), '"y"': ("waiting", "replace")}
"""Of payloads in the other pushes, by their text."""
UniqueJob: TypeAlias = tuple[str, str, float | None, float | None, float | None, tuple[str, str]]


class PushAnswer(NamedTuple):
    """What a push says of one job."""

    merged: bool
    due_at: float
    dropped: str


class UniqueModel(JournalledModel):
    """A shard with such pushes."""

    def push_unless(self, jobs: Sequence[tuple[NewJob, str, str]]) -> list[PushAnswer]:
        """Each job with `unless` and `on_conflict`."""
        default, first, answers = max(self.now, self.last_default), self.arrival, list[PushAnswer]()
        for number, (new, unless, on_conflict) in enumerate(jobs, first + 1):
            if new.score is None:
                self.last_default = default
            reason = self.conflict(new.id, unless, on_conflict)
            waiting = self.waiting.get(new.id)
            if reason:
                answers.append(PushAnswer(merged=False, due_at=0.0, dropped=reason))
                continue
            entry = Entry(default if new.score is None else new.score, number, new.payload)
            if waiting and on_conflict == "replace" and not self.is_over(new.id):
                self.replace(new.id, entry)
                self.expires(entry, new.expires_at)
            else:
                self.expires(entry, new.expires_at)
                self._put(new.id, [entry], self.now if new.due_at is None else new.due_at)
            answers.append(PushAnswer(merged=waiting is not None, due_at=self.waiting[new.id].due_at, dropped=""))
        self.arrival = first + len(jobs)
        return [
            answer._replace(due_at=self._due_after(new.id)) if answer.dropped else answer
            for (new, *_), answer in zip(jobs, answers, strict=True)
        ]

    def _due_after(self, id_: str) -> float:
        """When the id is due after the call, whose later payloads may have been stored."""
        return self.waiting[id_].due_at if id_ in self.waiting else self.now

    def conflict(self, id_: str, unless: str, on_conflict: str) -> str:
        """Why the push is dropped, or ""."""
        if not unless:
            return ""
        if on_conflict == "replace":
            return "cursor" if id_ in self.waiting and self.waiting[id_].handed else ""
        if unless == "busy" and id_ in self.flight:
            return "running"
        return "waiting" if id_ in self.waiting and not self.is_over(id_) else ""

    def is_over(self, id_: str) -> bool:
        """Whether nothing that waits under the id will be handed over."""
        job = self.waiting[id_]
        times = [self.expiries.get(entry.arrival, float("inf")) for entry in job.entries]
        return not job.handed and max(times) <= self.now

    def replace(self, id_: str, entry: Entry) -> None:
        """One payload stays, with the count of the id."""
        job = self.waiting[id_]
        count = self.retry_count(job)
        self._forget_counts(job.entries)
        self.counters[SUPERSEDED] += len(job.entries)
        job.entries, job.touched = [entry], 0
        if count >= 0:
            self.counts[entry.arrival] = count


class UniqueMachine(JournalledMachine):
    """All that may happen, and such pushes at any time of it."""

    model: UniqueModel
    policies: ClassVar[Counter[str]] = Counter()
    """How often what became of such a push."""

    def new_model(self, **fields: Any) -> UniqueModel:
        """One that knows of conflicts."""
        return UniqueModel(**fields)

    @invariant()
    def superseded_are_counted(self) -> None:
        """Each payload that another took the place of."""
        counted = self.server.admin.hget(self.shard.ref.key("meta"), SUPERSEDED)
        assert self.model.counters[SUPERSEDED] == int(str((counted or b"0").decode()))  # type: ignore[union-attr]  # no future here

    @disturbance(given=JOBS)
    def push(self, given: list[Job]) -> None:
        """Some payloads always expire, and some always ask, so that much of what a holder works on does."""
        self.push_unless([(*job, LIFE_OF.get(job[1]), POLICY_OF.get(job[1], PLAIN)) for job in given], twice=False)

    @disturbance(lambda self: self.started_waiting(), data=st.data(), payload=PAYLOADS, policy=POLICIES)
    def push_unless_started(self, data: st.DataObject, payload: str, policy: tuple[str, str]) -> None:
        """A payload arrives for a started job that waits."""
        id_ = data.draw(st.sampled_from(self.started_waiting()), label="id")
        self.push_unless([(id_, payload, None, None, None, policy)], twice=True)

    @disturbance(
        given=st.lists(st.tuples(IDS, PAYLOADS, SCORES, DELAYS, LIVES, POLICIES), min_size=1, max_size=4),
        twice=st.booleans(),
    )
    def push_unless(self, given: list[UniqueJob], *, twice: bool) -> None:
        """Payloads arrive for ids that may have work, perhaps in a call that is repeated."""
        now = self.pushed_at = self.model.now
        jobs = [
            (NewJob(id_, payload, score, *(None if at is None else now + at for at in times)), *policy)
            for id_, payload, score, *times, policy in given
        ]
        pushed = self.shard.push_unless(jobs)
        expected = self.model.push_unless(jobs)
        for (_, unless, on_conflict), answer in zip(jobs, expected, strict=True):
            if unless:
                self.policies[answer.dropped or (on_conflict if answer.merged else "stored")] += 1
        assert expected == [PushAnswer(one.merged, one.due_at, one.dropped) for one in pushed]
        # What was sent in several calls cannot be sent again as one.
        if twice and len({job.id for job, *_ in jobs}) == len(jobs):
            self.shard.backend.push_again()
