"""The journal of a shard, whatever happens to it: its rules find nothing, and it ends where the payloads lie."""

from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.kit.servers import Server
from tests.properties.operated import EXAMPLES, run
from tests.properties.test_expiring import ExpiringMachine

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


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_a_journal_never_contradicts_its_shard(server: Server) -> None:
    """No rule of `lowkiq verify` cries wolf over merges, ends in part, deaths, operators and expiries."""
    run(JournalledMachine, server, EXAMPLES // 3)
    assert sum(JournalledMachine.verified) > EXAMPLES
