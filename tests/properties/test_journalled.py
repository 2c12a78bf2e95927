"""The journal of a shard, whatever happens to it: its rules find nothing, and it ends where the payloads lie."""

import pytest

from tests.kit.servers import Server
from tests.properties.journalled import JournalledMachine
from tests.properties.operated import EXAMPLES, run


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_a_journal_never_contradicts_its_shard(server: Server) -> None:
    """No rule of `lowkiq verify` cries wolf over merges, ends in part, deaths, operators and expiries."""
    run(JournalledMachine, server, EXAMPLES // 3)
    assert sum(JournalledMachine.verified) > EXAMPLES
