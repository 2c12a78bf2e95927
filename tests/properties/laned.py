"""A shard of tenants and the model of it alike."""

from typing import Any, ClassVar

from hypothesis.stateful import invariant

from tests.properties.lanes import LaneModel, stored_lanes
from tests.properties.operated import OperatedMachine


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
