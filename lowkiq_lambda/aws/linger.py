"""After a drain: listens for pushes, and drains pushed jobs and jobs that become due, until the budget is over.

It subscribes, then probes, then listens, so that each push is found by the probe or by its notification. A lost
notification costs at most one poll.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lowkiq_lambda.base.clock import at_most
from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.notifications import Heard, Notifications

logger = logging.getLogger(__name__)


@dataclass
class Linger:
    """Lets a drain run for as long as its budget lasts."""

    subscription: Notifications
    _has_warned: bool = False
    _heard_of: Sequence[ShardRef] = ()

    def run(self, loop: Loop, budget: Budget) -> None:
        """Drain the shards until the budget is over."""
        with self.subscription:
            self._open(loop)
            loop.run(budget, self._wait)

    def _wait(self, loop: Loop, budget: Budget) -> bool:
        """Wait for a push, for what becomes due, or for the next poll."""
        if not loop.is_notified and self._open(loop):
            # What was pushed before, nobody heard.
            loop.probe(budget)
            return True
        polls_at = max(loop.stale_at, loop.probed_at + loop.drainer.config.poll_interval)
        if loop.shards is not self._heard_of:
            self._heard_of = loop.shards
            self.subscription.go_by(loop.shards)
        wakes_at = min(polls_at, loop.board.wait_until())
        for message in self._hear(min(wakes_at - loop.drainer.clock.monotonic(), budget.remaining()), loop):
            loop.board.hear(message)
        return True

    def _hear(self, seconds: float, loop: Loop) -> list[Heard]:
        """What is said; all that is to be heard already, where there is something."""
        if not loop.is_notified:
            loop.drainer.clock.sleep(at_most(seconds))
            return []
        try:
            messages = [self.subscription.receive(seconds)]
            while messages[-1].shards:
                messages.append(self.subscription.receive(0.0))
        except BackendError as error:
            self._lost(error, loop)
            return []
        return messages

    def _open(self, loop: Loop) -> bool:
        try:
            self.subscription.open()
        except BackendError as error:
            self._lost(error, loop)
        else:
            loop.is_notified = True
        return loop.is_notified

    def _lost(self, error: BackendError, loop: Loop) -> None:
        loop.is_notified = False
        if self._has_warned:
            return
        self._has_warned = True
        logger.warning("notifications are not received, work is found by polling: %s", error)
