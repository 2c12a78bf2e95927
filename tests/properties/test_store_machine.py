"""The store against a model of it, step by step."""

import pytest

from tests.kit.servers import Server
from tests.properties.cancelling import CancellingMachine
from tests.properties.laned import LaneMachine
from tests.properties.operated import EXAMPLES, OperatedMachine, run


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_store_does_what_the_model_does(server: Server) -> None:
    """Whatever is pushed, claimed, settled, lost, recovered and operated, the shard is as the model says.

    Of the settlements many are of several ids at once, as faults hide there.
    """
    run(OperatedMachine, server, 2 * EXAMPLES)
    several = sum(count for flown, count in OperatedMachine.settled.items() if flown > 1)
    # Counts, as shares of a run at random vary: there are some three of the first for each of twice as many examples.
    assert several >= EXAMPLES, OperatedMachine.settled
    assert {"DUE", "LONE", "TOGETHER"} <= OperatedMachine.kinds.keys()
    assert sum(OperatedMachine.ended_in_part.values()) >= EXAMPLES, OperatedMachine.ended_in_part
    beside = OperatedMachine.claims_beside
    assert beside[True] >= EXAMPLES / 2, beside


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_a_cancelled_id_is_as_in_the_model(server: Server) -> None:
    """Whether it waits, is in flight, failed or was left by a dead holder: it goes, and what came later stays."""
    run(CancellingMachine, server, EXAMPLES // 6, derandomize=True)
    asked, honoured = CancellingMachine.honoured[False], CancellingMachine.honoured[True]
    assert asked >= honoured > EXAMPLES // 64, (asked, honoured)


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_b2_tenants_are_served_alike_as_in_the_model(server: Server) -> None:
    """B-2, E-100: whatever happens to a shard of tenants, claims go in fair order; lines and lanes hold what waits."""
    run(LaneMachine, server, EXAMPLES // 3)
    assert {"DUE", "LONE"} <= LaneMachine.kinds.keys()
