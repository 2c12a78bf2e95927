"""The journal of a shard, whatever happens to it: its rules find nothing, and it ends where the payloads lie."""

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.properties.expiring import ExpiringMachine

DAY = 86_400.0


class JournalledMachine(ExpiringMachine):
    """All that happens is recorded."""

    verified: ClassVar[list[int]] = []
    """How many payloads each journal told of."""

    @initialize(merge=st.sampled_from(["min", "max", "never"]))
    def begin(self, merge: str) -> None:
        """A shard that records from its beginning."""
        super().begin(merge)
        self.shard.operator().journal("all", seconds=DAY)

    def teardown(self) -> None:
        """What was recorded is judged, and compared with what is there."""
        report = self.shard.operator().verify()
        assert [] == report.violations
        assert [] == report.deleted
        self.verified.append(report.payloads)
        super().teardown()
