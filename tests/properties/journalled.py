"""The journal of a shard, whatever happens to it: its rules find nothing, and it ends where the payloads lie."""

from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from lowkiq_lambda.operate.verify.verifier import Verifier
from tests.properties.expiring import ExpiringMachine, ExpiringModel
from tests.properties.model import Limits

DAY = 86_400.0


class JournalledModel(ExpiringModel):
    """A shard that tells of each recovery."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.recoveries: list[tuple[str, list[str], list[str], list[str]]] = []
        """How the holder ended, what it left, whose crash was counted, and what died of that."""
        self._was_evicted = False

    def acquire(self, holder: object, limits: Limits) -> str:
        """An eviction is known until somebody else comes."""
        self._was_evicted = self.evicted
        return super().acquire(holder, limits)

    def _recover(self, former: object) -> None:
        ids, dead = sorted(self.flight), self.counters["dead"]
        is_lone = not self.abandoned and self.claim is not None and self.claim.kind == "LONE"
        counted = [id_ for id_ in ids if is_lone and self.trouble[id_].get("at_risk")]
        how = "died" if not self.abandoned else "evicted" if self._was_evicted else "stopped"
        super()._recover(former)
        if ids:
            self.recoveries.append((how, ids, counted, counted if self.counters["dead"] > dead else []))


class JournalledMachine(ExpiringMachine):
    """All that happens is recorded."""

    model: JournalledModel

    verified: ClassVar[list[int]] = []
    """How many payloads each journal told of."""

    @initialize(merge=st.sampled_from(["min", "max", "never"]))
    def begin(self, merge: str) -> None:
        """A shard that records from its beginning."""
        super().begin(merge)
        self.shard.operator().journal("all", seconds=DAY)

    def new_model(self, **fields: Any) -> JournalledModel:
        """One that knows what is told of a recovery."""
        return JournalledModel(**fields)

    def teardown(self) -> None:
        """What was recorded is judged, and compared with what is there, and with what the model tells."""
        verifier = Verifier(self.shard.operator().reader)
        report = verifier.report()
        assert [] == report.violations
        entries = (entry for entry in verifier.entries_of(self.shard.ref) if entry.kind == "recovered")
        recovered = [
            (one["how"], sorted(one["ids"]), one["crash_counted"], one["dead"], one["count"], one["owner"])
            for entry in entries
            for one in entry.items
        ]
        assert [(*each, len(each[1]), "somebody") for each in self.model.recoveries] == recovered
        assert [] == report.deleted
        self.verified.append(report.payloads)
        super().teardown()
