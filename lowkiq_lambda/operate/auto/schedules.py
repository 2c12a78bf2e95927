"""Schedules that drain single shards on AWS, as far as a move has to care for them."""

from collections.abc import Mapping
from typing import Literal, Protocol


class ShardSchedules(Protocol):
    """The schedules of an app whose function is invoked for single shards."""

    @property
    def whose(self) -> Literal["none", "own", "foreign"]:
        """Nobody needs them, this process may make them, or only somebody else may."""
        ...

    def before(self, queue_name: str, to: int) -> None:
        """Make those that are missing for so many shards. Raises LowkiqError."""
        ...

    def after(self, queue_name: str, counts: Mapping[str, int]) -> None:
        """Delete those that no queue needs with so many shards of each. Raises LowkiqError."""
        ...
