"""Ids that fail together, and processes that die of what they run alone: rare by chance, so they are played here."""

from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule
from hypothesis.strategies import SearchStrategy

from tests.properties.machine import ALL_IDS, DUE_JOBS, PAYLOADS, Job
from tests.properties.model import Limits, OutcomeRecord
from tests.properties.operated import OperatedMachine

ALL = Limits(4, 100, 9_999)
ALONE = Limits(4, 2, 9_999)
"""A claim that may cut an id in two."""


class TroubledMachine(OperatedMachine):
    """Batches fail and name no id, what they had fails alike alone; or its processes die of it."""

    happened: ClassVar[set[str]] = set()
    """What became of suspects."""

    @rule(data=st.data(), payload=PAYLOADS, side=st.sampled_from([1, 1, 2]))
    def fail_together(self, data: st.DataObject, payload: str, side: int) -> None:
        """A batch fails; then each of its ids alone, mostly for the same reason."""
        # What has failed before waits for so long.
        self.wait(7.0)
        self.push([(id_, payload, None, None) for id_ in ALL_IDS])
        limits = ALL._replace(concurrency=side)
        if not self.has_claim():
            self.make_free()
            self.acquire(limits, twice=False)
        for _ in range(8):
            self.store_is_as_the_model()
            if not self.has_claim():
                return
            self.start_alone(data)
            self.settle(data, "claim", limits)

    @rule(jobs=DUE_JOBS, limits=st.sampled_from([ALL, ALONE]), deaths=st.integers(1, 5), data=st.data())
    def die_again(self, jobs: list[Job], limits: Limits, deaths: int, data: st.DataObject) -> None:
        """One process after the other dies of what it was handed, which may have come some way before."""
        self.push(jobs)
        if self.has_claim() and self.model.claim and self.model.claim.kind == "DUE" and data.draw(st.booleans()):
            self.checkpoint(data)
        for _ in range(deaths):
            self.store_is_as_the_model()
            self.lose_and_acquire(limits)
            if self.start_alone(data):
                self.happened.add(
                    f"died with {'progress' if self.model.flight.keys() & self.model.progress else 'nothing'}"
                )
        # What was not to blame ends, and the rest of what was halved goes on.
        for _ in range(2):
            self.store_is_as_the_model()
            if self.has_claim():
                self.settle(data, "claim", limits)

    def start_alone(self, data: st.DataObject) -> bool:
        """The handler of a lone suspect begins, if there is one; mostly."""
        is_alone = self.has_claim() and self.model.claim and self.model.claim.kind == "LONE" and self.model.flight
        if is_alone and data.draw(st.sampled_from([True, True, True, False]), label="starts"):
            self.start(twice=False)
            return True
        return False

    def outcome_of(self, id_: str) -> SearchStrategy[OutcomeRecord | None]:
        """Mostly what a common cause makes of it."""
        claim, usual = self.model.claim, super().outcome_of(id_)
        if not claim or claim.kind in {"CHARGE", "TOGETHER"}:
            self.happened.update({claim.kind} if claim else ())
            return usual
        alike: list[Any] = [(id_, "suspected", 0)]
        if claim.kind == "LONE":
            due_at = self.model.now + 7.0
            alike = [
                (id_, "retried", self.count_of(id_) + 1, due_at, "no", "s", blamed, "n") for blamed in (False, True)
            ]
        # Branches of `one_of` are drawn alike, those that a branch has among them.
        return st.sampled_from([st.sampled_from(alike)] * 7 + [usual]).flatmap(lambda drawn: drawn)
