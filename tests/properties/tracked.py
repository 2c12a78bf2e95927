"""Items of tasks, whatever happens to their shard: each has its payload until it ends as its job does (A-40)."""

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant

from lowkiq_lambda.jobs.job import ItemRef
from tests.kit.stored import Entry
from tests.kit.tracking import check_items, refs_of
from tests.properties.disturbing import disturbance
from tests.properties.lanes import LaneModel
from tests.properties.machine import DIGITS, JOBS, Job
from tests.properties.model import NewJob, OutcomeRecord
from tests.properties.operated import SEVERAL, OperatedMachine

TASKS: Final = (b"first task..", b"second task.")


class TrackedMachine(OperatedMachine):
    """Most of what is pushed is an item; when one ends, it is known what has ended it."""

    ended: ClassVar[Counter[str]] = Counter()
    """How many items ended with each status."""

    @initialize(merge=st.sampled_from(["min", "max", "never"]))
    def begin(self, merge: str) -> None:
        """A shard of its own, without items."""
        super().begin(merge)
        self.pushed: dict[bytes, tuple[Job, ItemRef]] = {}
        self.open: dict[bytes, str] = {}
        self.closed: dict[bytes, str] = {}
        self.ends: dict[str, str] = {}
        self.marked: dict[int, str] = {}
        self.placed: dict[bytes, int] = {}
        self.deletes = False

    @invariant()
    def store_is_as_the_model(self) -> None:
        """So are its items: where their payloads are, or ended as these did, and never changed since."""
        super().store_is_as_the_model()
        found = {
            (task, int(label)): item for (task, label), item in check_items(self.server.admin, self.shard.ref).items()
        }
        items = {task + struct.pack(">I", number): item for (task, number), item in found.items()}
        assert self.pushed.keys() == items.keys()
        placed = {ref: at for at, refs in refs_of(self.server.admin, self.shard.ref).items() for ref in refs}
        payloads = {entry.arrival: (id_, entry.payload) for id_, entry in self.entries()}
        for ref, at in placed.items():
            assert self.pushed[ref][0][:2] == payloads[at]
        for ref, before in self.open.items():
            if ref not in placed:
                self.check_end(items[ref].id, before, items[ref].status)
                marked = self.marked.get(self.placed.get(ref, 0))
                assert marked in {None, items[ref].status}
                self.closed[ref] = items[ref].status
        assert self.closed == {ref: items[ref].status for ref in self.closed}
        self.open = {ref: items[ref].status for ref in placed}
        assert items.keys() == self.open.keys() | self.closed.keys()
        self.ends, self.marked, self.placed, self.deletes = {}, {}, placed, False

    def check_end(self, id_: str, before: str, status: str) -> None:
        """It ended in this step, as far as the step can end what was there before."""
        self.ended[status] += 1
        if status == "c":
            assert self.deletes
            assert before in {"e", "x"}
        elif status in {"d", "f"}:
            assert before == "r"
            assert status in self.ends.get(id_, "d")
        else:
            assert (status, self.deletes) == ("x", False)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """What there is under each id, wherever it lies."""
        for id_, job in self.model.waiting.items():
            yield from ((id_, entry) for entry in [*job.handed, *job.entries])
        for id_, flown in self.model.flight.items():
            yield from ((id_, entry) for entry in flown.entries)
        for id_, dead in self.model.morgue.items():
            yield from ((id_, entry) for entry in dead.entries)

    @disturbance(given=JOBS)
    def push(self, given: list[Job]) -> None:
        """Payloads arrive: three of four are items."""
        now = self.pushed_at = self.model.now
        jobs = [NewJob(*job[:3], None if job[3] is None else now + job[3]) for job in given]
        items = [self.next_item(job) for job in given]
        pushed = self.shard.push(jobs, items)
        assert self.model.push(jobs) == [(one.merged, one.due_at) for one in pushed]

    def next_item(self, job: Job) -> ItemRef | None:
        """An item for the job, or None."""
        number = self.model.arrival + len(self.pushed)
        if number % 4 == 3:
            return None
        item = ItemRef(TASKS[number % 2], len(self.pushed), str(len(self.pushed)))
        ref = item.task + struct.pack(">I", item.number)
        self.pushed[ref], self.open[ref] = (job, item), "e"
        return item

    @disturbance(lambda self: self.pushed, data=st.data())
    def push_late(self, data: st.DataObject) -> None:
        """An item is pushed once more, as its client has never heard that it was: that changes nothing."""
        (id_, payload, *_), item = self.pushed[data.draw(st.sampled_from([*self.pushed]), label="ref")]
        (pushed,) = self.shard.push([NewJob(id_, payload, 1.0, None)], [item])
        assert pushed.repeated
        self.model.arrival += 1

    def outcome_of(self, id_: str) -> "st.SearchStrategy[OutcomeRecord | None]":
        """It may be refused, too, wholly or in part."""
        outcome = super().outcome_of(id_)
        if self.model.claim and self.model.claim.kind == "CHARGE":
            return outcome
        refused = st.builds(
            lambda which, error: (id_, "rejected", DIGITS, which, "no", error),
            *(st.sampled_from([0, 1]), st.sampled_from(["", "", "not qualified"])),
        )
        return (outcome | refused).map(self.note_end)

    def before_outcomes(self, data: st.DataObject) -> list[OutcomeRecord]:
        """Items of payloads that end before their id are done, or have the reason of their payload."""
        before = super().before_outcomes(data)
        for id_, kind, *details in before:
            if kind == "ended":
                self.ends[id_] = "df"
                self.marked |= {at: "f" if why else "d" for at, why in zip(details[::4], details[1::4], strict=True)}
        return before

    def note_end(self, outcome: OutcomeRecord | None) -> OutcomeRecord | None:
        """Remember how items of the id may end by it."""
        if outcome and outcome[1] == "rejected" and outcome[0] not in self.ends:
            self.ends[outcome[0]] = "df" if outcome[3] else "f"
        elif outcome and outcome[1] == "discarded" and outcome[0] not in self.ends:
            self.ends[outcome[0]] = "f"
        return outcome

    @disturbance(lambda self: self.seen, ids=SEVERAL)
    def delete(self, ids: list[str]) -> None:
        """Items of what is deleted are cancelled."""
        self.deletes = True
        super().delete(ids)

    @disturbance(lambda self: self.seen)
    def delete_failed(self) -> None:
        """Here, too."""
        self.deletes = True
        super().delete_failed()

    @disturbance(lambda self: self.seen, ids=SEVERAL)
    def delete_dead(self, ids: list[str]) -> None:
        """And here."""
        self.deletes = True
        super().delete_dead(ids)


class TrackedLaneMachine(TrackedMachine):
    """In a shard of tenants."""

    declared: ClassVar[dict[str, object]] = {"tenants": "spread"}

    def new_model(self, **fields: Any) -> LaneModel:
        """One that knows of lanes."""
        return LaneModel(**fields)
