"""After a drain: listens at the doorbell, and drains what is rung for or becomes due, until the budget is over.

It subscribes, then looks, then listens, so that whatever is pushed is either seen or heard. A bell that is lost costs
at most one poll.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.engine.board import Tour
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.errors import BackendError
from lowkiq_lambda.patience import at_most
from lowkiq_lambda.store.shard.bell import Bell
from lowkiq_lambda.store.shard.keys import ShardRef

logger = logging.getLogger(__name__)


@dataclass
class Linger:
    """Goes on with a tour for as long as its budget lasts."""

    drainer: Drainer
    bell: Bell
    poll_interval: float
    clock: Clock
    _is_open: bool = False
    _has_warned: bool = False

    def drain(self, budget: Budget, tour: Tour) -> None:
        """Drain the tour's shards until the budget is over."""
        with self.bell:
            for rung in self._rounds(budget, tour):
                self.drainer.drain(budget, tour, rung)

    def _rounds(self, budget: Budget, tour: Tour) -> Iterator[Iterable[ShardRef] | None]:
        """The shards that are worth a look, as time brings them; None: all."""
        while budget.remaining() > 0:
            self._open()
            yield None
            looks_at = self.clock.monotonic() + self.poll_interval
            while (left := min(looks_at - self.clock.monotonic(), budget.remaining())) > 0:
                due_in = self._due_in(tour)
                rung = self._hear(min(left, *due_in.values()) if due_in else left, tour)
                due = [shard for shard, seconds in due_in.items() if seconds <= 0]
                if rung or due:
                    yield dict.fromkeys(chain(rung, due))

    def _due_in(self, tour: Tour) -> dict[ShardRef, float]:
        """In how many seconds shards have work by themselves; those with work already are not among them."""
        try:
            return {shard: at - self.drainer.now(shard) for shard, at in tour.next_at.items()}
        except BackendError:
            return {}

    def _hear(self, seconds: float, tour: Tour) -> set[ShardRef]:
        """The shards that were rung for; all that is to be heard already, where there is something."""
        if not self._is_open:
            self.clock.sleep(at_most(seconds))
            return set()
        try:
            rung = more = self.bell.hear(seconds)
            while more:
                more = self.bell.hear(0.0)
                rung = [*rung, *more]
        except BackendError as error:
            self._lost(error)
            return set()
        return set(rung).intersection(tour.shards)

    def _open(self) -> None:
        if self._is_open:
            return
        try:
            self.bell.open()
            self._is_open = True
        except BackendError as error:
            self._lost(error)

    def _lost(self, error: BackendError) -> None:
        self._is_open = False
        if self._has_warned:
            return
        self._has_warned = True
        logger.warning("the doorbell is not heard, work is found by polling: %s", error)
