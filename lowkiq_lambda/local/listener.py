"""Updates boards with shards that have work: one thread that listens for pushes, and probes now and then itself.

It subscribes, then probes, then waits: each push is either seen by the probe or notified. A lost notification costs at
most one poll.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Event
from typing import Final

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import BackendError, BackendUnavailable, QueueMismatch
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.engine.shard_queue import CHECKS
from lowkiq_lambda.local.outage import Outage
from lowkiq_lambda.store.server.faults import backoff
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.notifications import Notifications
from lowkiq_lambda.store.shard.state import ProbeResult

logger = logging.getLogger(__name__)

SLICE: Final = 0.2
"""Seconds after which the listener looks whether it should end."""
PROBED_AT_ONCE: Final = 120
"""Shards: to probe more takes milliseconds, in which no notification is received."""
PROBE: Final = "probe"


@dataclass
class Listener:
    """Runs until it is stopped, and survives the loss of Redis."""

    drainer: Drainer
    boards: Sequence[ShardBoard]
    subscription: Notifications
    outage: Outage
    poll_interval: float
    clock: Clock
    rng: Random
    stopping: Event
    deal_anew: Callable[[], None]
    """Gives the boards their shards where a queue is seen to be resharded."""
    check: Callable[[], Iterable[str]]
    """Asked once, as soon as Redis answers: what about the server should be known."""
    has_worked: bool = field(default=False, init=False)
    _left_out: set[str] = field(default_factory=set, init=False)
    """Queues that may not be drained here."""
    _layout: list[QueueShards] = field(default_factory=list, init=False)
    _to_probe: list[ShardRef] = field(default_factory=list, init=False)
    """The rest of the poll that is under way."""
    _is_deaf: bool = field(default=False, init=False)
    _is_checked: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Know what to probe, and when."""
        self._probes_at = self._probed_at = self.clock.monotonic() - self.poll_interval
        self._layout = self.drainer.layout

    def run(self) -> None:
        """Listen and look until `stopping` is set."""
        attempt = 0
        with self.subscription:
            while not self.stopping.is_set():
                try:
                    self.subscription.open()
                    attempt = 0
                    self._listen()
                except BackendError as error:
                    self._lost(error, attempt)
                    self._sit_out(backoff(attempt, self.rng))
                    attempt += 1

    def _listen(self) -> None:
        if self._is_deaf:
            logger.info("notifications are received again")
        self._is_deaf = False
        # Notifications of earlier pushes were missed.
        self._probes_at = self._probed_at + self.poll_interval / CHECKS
        while not self.stopping.is_set():
            self._probe_if_due()
            message = self.subscription.receive(min(SLICE, self._until_probe()))
            if message.is_request:
                self.drainer.ask(message.shards)
            elif message.shards:
                if not message.is_offer:
                    self.drainer.ring(message.shards)
                # Last, so that the thread that wakes does not wait for this one to wait.
                for board in self.boards:
                    board.hear(message)

    def _lost(self, error: BackendError, attempt: int) -> None:
        # Connections break now and then, and of an outage there is a report already.
        is_passing = isinstance(error, BackendUnavailable) and (attempt == 0 or self.outage.is_on)
        if not (self._is_deaf or is_passing):
            self._is_deaf = True
            logger.warning("notifications are not received, work is found by polling: %s", error)

    def _sit_out(self, seconds: float) -> None:
        """Wait before the next subscription; polls go on meanwhile."""
        ends_at = self.clock.monotonic() + seconds
        while not self.stopping.is_set():
            self._probe_if_due()
            left = ends_at - self.clock.monotonic()
            if left <= 0:
                return
            self.stopping.wait(min(left, self._until_probe()))

    def _until_probe(self) -> float:
        return 0.0 if self._to_probe else max(0.0, self._probes_at - self.clock.monotonic())

    def _probe_if_due(self) -> None:
        if self._until_probe() > 0:
            return
        if not self._to_probe:
            self._begin_poll()
        shards = self._to_probe[:PROBED_AT_ONCE]
        del self._to_probe[:PROBED_AT_ONCE]
        events = [board.events for board in self.boards]
        try:
            results = self.drainer.probe(shards)
        except QueueMismatch as error:
            self._leave_out(error)
        except BackendError as error:
            self._to_probe.clear()
            self.outage.failed(PROBE, error)
        else:
            if not self._to_probe:
                self.outage.worked(PROBE)
            self.has_worked = True
            self._tell(results, events)
            self._check_once()
        if self.drainer.layout != self._layout:
            self._follow()

    def _begin_poll(self) -> None:
        dealt = dict.fromkeys(shard for board in self.boards for shard in board.shards)
        self._to_probe = [shard for shard in dealt if shard.queue_name not in self._left_out]
        self._probed_at = self.clock.monotonic()
        # Earlier by some chance, so that many daemons don't ask at once; never later than promised.
        self._probes_at = self._probed_at + self.poll_interval * self.rng.uniform(0.75, 1.0)

    def _check_once(self) -> None:
        if not self._is_checked:
            self._is_checked = True
            for warning in self.check():
                logger.warning("%s", warning)

    def _tell(self, results: Sequence[ProbeResult], events: Iterable[int]) -> None:
        for result in results:
            if not result.has_work:
                # No visit will follow, so no visit would report that it is reachable again.
                self.outage.worked(result.ref)
        for board, event in zip(self.boards, events, strict=True):
            board.update(results, event)

    def _leave_out(self, error: QueueMismatch) -> None:
        """Leave out a queue that may not be drained here, so that the others are still probed."""
        logger.error("queue %r is left out until this daemon is started anew: %s", error.queue_name, error)
        self._left_out.add(error.queue_name or "")
        self._to_probe.clear()
        self._probes_at = self._probed_at + self.poll_interval / CHECKS

    def _follow(self) -> None:
        """Use the present shards, because a queue has been or is being resharded."""
        self._layout = self.drainer.layout
        self.deal_anew()
        self.subscription.go_by(shard for board in self.boards for shard in board.shards)
        # Notifications of pushes to the other shards were missed.
        self._begin_poll()
