"""Which drain thread takes which shards."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from random import Random
from typing import Protocol, TypeVar

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.shard_queue import Rests
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.shard.keys import ShardRef

S = TypeVar("S")


class Dealer(Protocol):
    """Deals the shards of an app to the drain threads of one process."""

    @property
    def processes(self) -> int:
        """How many processes the daemon has."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether this process warns of what concerns all of them."""
        ...

    def boards(self, config: Config, shards: list[ShardRef], clock: Clock, rng: Random) -> list[ShardBoard]:
        """The board of each thread. Raises ConfigError."""
        ...


class NodeDealer:
    """For a daemon of one process: its threads share the shards of its node, unless the user deals them."""

    processes = 1
    is_first = True

    def boards(self, config: Config, shards: list[ShardRef], clock: Clock, rng: Random) -> list[ShardBoard]:
        """The board of each thread. Raises ConfigError."""
        if config.build_splitter is not None:
            return [new_board(hand, config, clock, rng) for hand in hands(config, shards, config.threads_per_node)]
        return [new_board(shards_of_node(config, shards), config, clock, rng)] * config.threads_per_node


def shards_of_node(config: Config, shards: list[ShardRef]) -> list[ShardRef]:
    """The shards that are this daemon's, in order."""
    (own,) = ByNodeSplitter(config.number_of_nodes, config.node_number).split(shards, 1)
    return own


def hands(config: Config, shards: list[ShardRef], threads: int) -> list[list[ShardRef]]:
    """The shards of each thread, as the user's splitter deals them. Raises ConfigError."""
    dealt = config.build_splitter().split(shards, threads) if config.build_splitter else []
    if len(dealt) != threads or set(chain.from_iterable(dealt)) - set(shards):
        raise ConfigError(
            "The splitter must return one list for each thread, made of the shards that it was given.",
            setting="build_splitter",
        )
    return dealt


def new_board(
    shards: Iterable[ShardRef], config: Config, clock: Clock, rng: Random, kind: Callable[..., ShardBoard] = ShardBoard
) -> ShardBoard:
    """A board of these shards, with the rests of a daemon."""
    return kind(shards, clock, config.poll_interval, Rests.of_daemon(config.poll_interval), rng)


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
