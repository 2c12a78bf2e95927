"""Pushes that are stored only if their id has no work, whatever happens to its shard."""

import pytest

from tests.kit.servers import Server
from tests.properties.operated import EXAMPLES, run
from tests.properties.unique import UniqueMachine


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_conflicts_are_as_in_the_model(server: Server) -> None:
    """Nothing is lost but what a push says, also if it replaces while the id begins; no journal contradicts it."""
    policies = {"stored", "waiting", "running", "cursor", "replace"}
    # Few examples meet a job with a cursor: go on until one did.
    for _ in range(10):
        run(UniqueMachine, server, EXAMPLES // 3)
        if policies <= UniqueMachine.policies.keys():
            break
    assert policies <= UniqueMachine.policies.keys()
