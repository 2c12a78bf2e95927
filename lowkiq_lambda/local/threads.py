"""The threads of a daemon: one drains, another runs duties."""

import logging
import math
from dataclasses import dataclass, field
from functools import partial
from random import Random
from threading import Event
from typing import Final

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import BackendError, BackendUnavailable, LowkiqError, QueueMismatch
from lowkiq_lambda.duties.runner import LONGEST_RUN, DutyRunner
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.local.lifecycle import call_hook
from lowkiq_lambda.local.outage import Outage
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.protocols import Scheduler
from lowkiq_lambda.store.server.faults import backoff
from lowkiq_lambda.store.shard.keys import ShardRef

logger = logging.getLogger(__name__)

LONGEST_WAIT: Final = 60.0
_SPREAD: Final = 0.25


@dataclass
class DrainThread:
    """Runs until its board is closed. A shard that Redis refuses, or with a handler that exits, rests for a while.

    Any other error ends the thread, and it may run again at once: the shard rests then, too.
    """

    drainer: Drainer
    board: ShardBoard
    scheduler: Scheduler | None
    outage: Outage
    config: Config
    clock: Clock
    has_worked: bool = field(default=False, init=False)
    """Whether a visit came to its end, or its shard was put to rest, since this was set to False."""

    def run(self) -> None:
        """Visit shards as long as there are any to take."""
        while (shard := self.board.take(self.scheduler)) is not None:
            self._visit(shard)
        self.drainer.history.flush()

    def _visit(self, shard: ShardRef) -> None:
        try:
            result = self.drainer.visit(shard, self._budget(shard))
            ready_in = self.drainer.ready_in(shard, result)
        except BaseException as error:
            self.board.failed(shard, error)
            self.has_worked = True
            if not isinstance(error, LowkiqError):
                raise
            self._tell(shard, error)
        else:
            self.outage.worked(shard)
            self.board.visited(shard, result, ready_in)
            self.has_worked = True
            if result.exit is not None:
                self._last_words(result.exit)

    def _tell(self, shard: ShardRef, error: LowkiqError) -> None:
        if isinstance(error, BackendUnavailable):
            self.outage.failed(shard, error)
        elif isinstance(error, QueueMismatch):
            # The queue was declared anew since: what else is on the board is not to wait for another thread.
            logger.error("shard %d of queue %r may not be drained here: %s", shard.number, shard.queue_name, error)
        else:
            logger.error("a shard cannot be drained", exc_info=error, extra=_named(shard))
            self._last_words(error)

    def _last_words(self, error: BaseException) -> None:
        call_hook("last_words", self.config.last_words, error)

    def _budget(self, shard: ShardRef) -> Budget:
        stopping = lambda: self.board.is_closed  # noqa: E731 - asked for each batch
        budget = Budget(self.clock, self.config.visit_seconds, stopping=stopping).for_turn(
            self.board.turn(), partial(self.board.note_claim, shard)
        )
        # The listener hears when a shard is offered a place.
        budget.patience = math.inf
        return budget


def _named(shard: ShardRef) -> dict[str, object]:
    return {"queue": shard.queue_name, "shard": shard.number}


@dataclass
class DutyThread:
    """Runs until it is stopped, and survives the loss of Redis. A run that is under way then has no time left."""

    runner: DutyRunner
    outage: Outage
    rng: Random
    stopping: Event
    has_worked: bool = field(default=False, init=False)

    def run(self) -> None:
        """Run the duties that are due, and wait for the next ones."""
        attempt = 0
        while not self.stopping.is_set():
            try:
                next_in = self.runner.run_due(self._remaining).next_in
            except BackendError as error:
                self.outage.failed(self.runner.name, error)
                self.stopping.wait(backoff(attempt, self.rng))
                attempt += 1
            else:
                self.outage.worked(self.runner.name)
                self.has_worked, attempt = True, 0
                # Later by some chance, so that many daemons don't ask at once.
                self.stopping.wait(min(next_in, LONGEST_WAIT) + self.rng.uniform(0.0, _SPREAD))

    def _remaining(self) -> float:
        return 0.0 if self.stopping.is_set() else LONGEST_RUN
