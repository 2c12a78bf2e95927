"""The work of one drain thread: choose a shard with work, visit it, choose again."""

import logging
from dataclasses import dataclass, field
from random import Random
from typing import Final

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.config import Config
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.drainer import TURN, Drainer
from lowkiq_lambda.engine.visit import DrainResult
from lowkiq_lambda.error_text import headline
from lowkiq_lambda.errors import BackendUnavailable, LowkiqError, QueueMismatch
from lowkiq_lambda.local.outage import Outage
from lowkiq_lambda.local.roster import LOOKS, Roster
from lowkiq_lambda.local.watch import call_hook
from lowkiq_lambda.patience import doubled
from lowkiq_lambda.protocols import Scheduler
from lowkiq_lambda.store.server.faults import backoff
from lowkiq_lambda.store.shard.keys import ShardRef

logger = logging.getLogger(__name__)

LONGEST_REST: Final = 60.0


@dataclass
class DrainThread:
    """Runs until its roster is closed. A shard that Redis refuses, or with a handler that exits, rests for a while.

    Any other error ends the thread, and it may run again at once: the shard rests then, too.
    """

    drainer: Drainer
    roster: Roster
    scheduler: Scheduler
    outage: Outage
    config: Config
    clock: Clock
    rng: Random
    has_worked: bool = field(default=False, init=False)
    """Whether a visit came to its end, or its shard was put to rest, since this was set to False."""

    def run(self) -> None:
        """Visit shards as long as there are any to take."""
        while (shard := self.roster.take(self.scheduler)) is not None:
            self._visit(shard)
        self.drainer.history.flush()

    def _visit(self, shard: ShardRef) -> None:
        began_at = self.clock.monotonic()
        try:
            result = self.drainer.visit(shard, self._budget(shard, began_at))
            ready_in = self._ready_in(shard, result)
        except BackendUnavailable as error:
            self.roster.failed(shard, backoff(self.roster.failures(shard), self.rng))
            self.outage.failed(shard, error)
        except QueueMismatch as error:
            # The queue was declared anew since: the thread's others are not to wait for another thread.
            logger.error("shard %d of queue %r may not be drained here: %s", shard.index, shard.queue_name, error)  # noqa: TRY400 - the sentence says all
            self.roster.failed(shard, LONGEST_REST)
        except LowkiqError as error:
            self._put_to_rest(shard)
            logger.exception("a shard cannot be drained", extra=_named(shard))
            self._last_words(error)
        except BaseException:
            self._put_to_rest(shard)
            raise
        else:
            self.outage.worked(shard)
            if result.exit is None:
                self.roster.visited(shard, began_at, ready_in)
                self.has_worked = True
            else:
                # Not longer each time: an id that exits is bounded by itself, and its shard has others.
                self.roster.exited(shard, self.config.poll_interval / LOOKS)
                self.has_worked = True
                logger.warning("a handler exited with %s", headline(result.exit), extra=_named(shard))
                self._last_words(result.exit)

    def _put_to_rest(self, shard: ShardRef) -> None:
        # Longer each time, so that what goes wrong each time does not become a busy loop; the thread's other shards do
        # not rest.
        self.roster.failed(shard, self._rest(shard))
        self.has_worked = True

    def _last_words(self, error: BaseException) -> None:
        call_hook("last_words", self.config.last_words, error)

    def _budget(self, shard: ShardRef, began_at: float) -> Budget:
        over_at = began_at + TURN
        return Budget(
            self.clock,
            self.config.max_runtime,
            stopping=lambda: self.roster.is_closed,
            turn_over=lambda: self.clock.monotonic() >= over_at and self.roster.others_have_work(shard),
        )

    def _ready_in(self, shard: ShardRef, result: DrainResult) -> float | None:
        if result.until is not None:
            return result.until - self.drainer.now(shard)
        return None if result.reason == "empty" else self.config.poll_interval / LOOKS

    def _rest(self, shard: ShardRef) -> float:
        rest = doubled(self.config.poll_interval / LOOKS, self.roster.failures(shard), LONGEST_REST)
        return rest * self.rng.uniform(0.75, 1.0)


def _named(shard: ShardRef) -> dict[str, object]:
    return {"queue": shard.queue_name, "shard": shard.index}
