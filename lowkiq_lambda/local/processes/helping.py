"""The shards of a process that is one of several: its own first, then those that wait for another process."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Final, Self

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.budget import VisitResult
from lowkiq_lambda.local.splitters import ByNodeSplitter, hands, new_board, shards_of_node
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult

HELP_AFTER: Final = 0.2
"""Seconds that a job of another process's shard is due before this one helps."""


@dataclass(frozen=True)
class ProcessDealer:
    """For the child `number`, from 0, of `processes`: of the daemon's shards it prefers every `processes`-th.

    Leases keep processes apart in any case, so two of them may prefer the same shard, as they do while one replaces
    the other.
    """

    number: int
    processes: int

    @property
    def is_first(self) -> bool:
        """Whether this process warns of what concerns all of them."""
        return self.number == 0

    def boards(self, config: Config, shards: list[ShardRef], clock: Clock, rng: Random) -> list[ShardBoard]:
        """The board of each thread. What the user's splitter deals to a thread, no other helps with. ConfigError."""
        threads = config.threads_per_node
        if config.build_splitter is not None:
            dealt = hands(config, shards, threads * self.processes)
            own = dealt[threads * self.number : threads * (self.number + 1)]
            return [new_board(hand, config, clock, rng) for hand in own]
        of_node = shards_of_node(config, shards)
        (mine,) = ByNodeSplitter(self.processes, self.number).split(of_node, 1)
        kind = partial(HelpingBoard, frozenset(of_node).difference(mine))
        return [new_board(of_node, config, clock, rng, kind)] * threads


class HelpingBoard(ShardBoard):
    """A board where some shards are others' to visit: only probes that show them waiting count, and visits of ours."""

    def __init__(self, others: frozenset[ShardRef], *shards_and_more: Any) -> None:  # noqa: ANN401 - as ShardBoard has them
        super().__init__(*shards_and_more)
        self._others = others

    def deal_as(self, other: Self) -> None:
        """As for any board; others' shards are those of that one."""
        self._others = other._others
        super().deal_as(other)

    def notify(self, shards: Iterable[ShardRef]) -> None:
        """Somebody pushed: whose shard it is, visits it."""
        super().notify([shard for shard in shards if shard not in self._others])

    def update(self, results: Iterable[ProbeResult], asked: int) -> None:
        """As for any shard; of others' those count that wait. They queue as if due now, so behind our own."""
        super().update(map(self._as_counted, results), asked)

    def visited(self, shard: ShardRef, result: VisitResult, ready_in: float | None) -> None:
        """As for any shard; of others' those are forgotten that have nothing due now, or were not to be had."""
        if shard in self._others and result.exit is None:
            if ready_in is None or ready_in > 0:
                result, ready_in = VisitResult("empty"), None
            else:
                ready_in = 0.0
        super().visited(shard, result, ready_in)

    def own(self) -> Sequence[ShardRef]:
        """The shards that are this process's to visit."""
        return [shard for shard in self.shards if shard not in self._others]

    def _as_counted(self, result: ProbeResult) -> ProbeResult:
        if result.ref not in self._others:
            return result
        is_waiting = result.obstacle is None and result.lag > HELP_AFTER
        return replace(result, ready_in=0.0 if is_waiting else None)
