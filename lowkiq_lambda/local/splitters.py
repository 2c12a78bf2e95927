"""Which drain thread of which node takes which shards."""

from collections.abc import Sequence
from typing import TypeVar

from lowkiq_lambda.base.errors import ConfigError

S = TypeVar("S")


class DefaultSplitter:
    """Deals the shards to the threads in turn, like cards."""

    def split(self, shards: Sequence[S], threads: int) -> list[list[S]]:
        """One list of shards for each thread; a thread may get none."""
        return _deal(shards, threads)


class ByNodeSplitter:
    """Deals the shards to the nodes first, then those of this node to its threads.

    Leases keep nodes apart in any case: this only spares them from asking for one another's shards.
    """

    def __init__(self, number_of_nodes: int, node_number: int) -> None:
        if not 0 <= node_number < number_of_nodes:
            message = (
                f"node_number={node_number} is refused: nodes count from 0 to number_of_nodes - 1, "
                f"and number_of_nodes={number_of_nodes}"
            )
            raise ConfigError(message, setting="node_number")
        self.number_of_nodes = number_of_nodes
        self.node_number = node_number

    def split(self, shards: Sequence[S], threads: int) -> list[list[S]]:
        """One list of this node's shards for each of its threads; a thread may get none."""
        return _deal(_deal(shards, self.number_of_nodes)[self.node_number], threads)


def _deal(cards: Sequence[S], players: int) -> list[list[S]]:
    return [list(cards[player::players]) for player in range(players)]
