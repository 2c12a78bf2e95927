"""The store against a model of it, step by step."""

from typing import Any, ClassVar

import pytest
from hypothesis.stateful import invariant

from tests.kit.servers import Server
from tests.properties.lanes import LaneModel, stored_lanes
from tests.properties.operated import EXAMPLES, OperatedMachine, run


class LaneMachine(OperatedMachine):
    """A shard of tenants: ids are claimed in the fair order of their lanes."""

    model: LaneModel
    declared: ClassVar[dict[str, object]] = {"tenants": "spread"}

    def new_model(self, **fields: Any) -> LaneModel:
        """One that knows of lanes."""
        return LaneModel(**fields)

    @invariant()
    def lanes_are_as_the_model(self) -> None:
        """The same ids wait in lines as are due, and each lane its time."""
        ids, served_from, remembered = stored_lanes(self.server.admin, self.shard.ref.keys[-3:])
        assert self.model.waiting.keys() == ids
        assert self.model.served_from == served_from
        assert self.model.served_at.keys() == remembered


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_store_does_what_the_model_does(server: Server) -> None:
    """Whatever is pushed, claimed, settled, lost, recovered and operated, the shard is as the model says.

    Of the settlements many are of several ids at once, as faults hide there.
    """
    run(OperatedMachine, server, EXAMPLES)
    several = sum(count for flown, count in OperatedMachine.settled.items() if flown > 1)
    # Counts, as shares of a run at random vary: there are some three of the first for each example.
    assert several >= EXAMPLES, OperatedMachine.settled
    assert {"DUE", "LONE", "TOGETHER"} <= OperatedMachine.kinds.keys()
    assert sum(OperatedMachine.ended_in_part.values()) >= EXAMPLES, OperatedMachine.ended_in_part
    beside = OperatedMachine.claims_beside
    assert beside[True] >= EXAMPLES / 2, beside


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_b2_tenants_are_served_alike_as_in_the_model(server: Server) -> None:
    """B-2, E-100: whatever happens to a shard of tenants, claims go in fair order; lines and lanes hold what waits."""
    run(LaneMachine, server, EXAMPLES // 3)
    assert {"DUE", "LONE"} <= LaneMachine.kinds.keys()
