"""The slots of a visit: what runs in them, and the batches that each slot begins by itself once it has ended one.

The coordinator offers these, and takes them back where something may be against the next one. Each end is added to its
inbox, and it is woken only if it has to do something about that now.
"""

import logging
from collections import deque
from collections.abc import Sequence
from contextvars import Context
from functools import partial
from threading import Lock
from typing import Any, Protocol

from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.inbox import Inbox
from lowkiq_lambda.engine.running import RunningBatch, RunningBatches
from lowkiq_lambda.engine.slots import Ended, NoSlot, Slots
from lowkiq_lambda.jobs.job import Delivery

logger = logging.getLogger(__name__)


class SlotsVisit(Protocol):
    """The visit, as its slots know it."""

    def may_go_on(self) -> bool:
        """In a slot: whether the next batch may begin there."""
        ...

    def new_batch(self, deliveries: Sequence[Delivery]) -> RunningBatch:
        """In a slot, or for one: the batch, which begins now."""
        ...

    def note_end(self, running: RunningBatch, ended: Ended | BaseException, *, is_free: bool) -> None:
        """For the coordinator: a batch has ended, or there was a fault of the library; whether its slot is free."""
        ...


class SlotsInUse:
    """All but what is said to happen in a slot is for the coordinator alone."""

    def __init__(self, visit: SlotsVisit, slots: Slots, worker: type[Worker[Any]], inbox: Inbox, most: int) -> None:
        self._visit = visit
        self._slots = slots
        self._queue_name = worker.queue_name
        self._inbox = inbox
        self.most = most
        """How many there may be."""
        self.count = 0
        """How many have a batch, as far as the coordinator has noted."""
        self.running = RunningBatches()
        self.low = 0
        """With fewer batches that wait it is time to claim more."""
        self.unsettled_since: float | None = None
        """When the first batch ended, of those that are noted, whose outcome is not written."""
        self._lock = Lock()
        self._waiting: deque[list[Delivery]] = deque()
        self._holds = 0
        self._room: int | None = None
        """How many the system has threads for, once it had none for another."""

    def resize(self, most: int) -> None:
        """So many from now on, if there are threads for them; what runs in others comes to its end."""
        self.most = most if self._room is None else min(most, self._room)

    def __len__(self) -> int:
        """How many batches wait that slots may begin by themselves."""
        return len(self._waiting)

    @property
    def are_full(self) -> bool:
        """Whether none is free."""
        return self.count >= self.most

    def offer(self, batches: deque[list[Delivery]]) -> None:
        """Slots may begin these too, which are taken out of what is given."""
        with self._lock:
            self._waiting.extend(batches)
            batches.clear()

    def take_back(self, batches: deque[list[Delivery]]) -> None:
        """No slot begins any now: they are put in front of what is given."""
        with self._lock:
            batches.extendleft(reversed(self._waiting))
            self._waiting.clear()

    def begin(self, batches: Sequence[Sequence[Delivery]], variables: Context) -> list[list[Delivery]]:
        """Begin each in a slot of its own; those for which there is none. Raises NoSlot without any slot."""
        # Noted before they begin: whatever comes between, they are waited for, or withdrawn.
        begun = [self._new_batch(batch) for batch in batches]
        self.count += len(begun)
        try:
            self._slots.begin(begun, variables, self._end)
        except NoSlot as error:
            left = [running for running in begun if running.call is None]
            for running in left:
                self.running.remove(running)
            self.count -= len(left)
            if not self.count:
                raise
            self.most = self._room = self.count
            text = "%s: no more than %s calls run side by side: %s"
            logger.warning(text, self._queue_name, self.most, error)
            return [[*running.deliveries] for running in left]
        return []

    def note_end(self, running: RunningBatch, *, is_free: bool) -> None:
        """This batch has ended."""
        self.running.remove(running)
        self.count -= is_free

    def release(self) -> None:
        """It is noted what came of a batch that ended badly."""
        with self._lock:
            self._holds -= 1

    def _end(self, running: RunningBatch, ended: Ended | BaseException) -> RunningBatch | None:
        """In the slot: tell the coordinator what came of a batch; the next one, if nothing is against it."""
        following = None
        try:
            if isinstance(ended, Ended) and not ended.is_bad and running.broken is None:
                following = self._begin_next()
            else:
                self._hold()
        except BaseException as error:  # noqa: BLE001 - raised by the coordinator
            ended = error
        self._inbox.add(partial(self._visit.note_end, running, ended, is_free=following is None))
        # After it is added: a coordinator that settles or claims just now finds it when it looks next.
        if following is None or self.unsettled_since is None or len(self._waiting) < self.low:
            self._inbox.ring()
        return following

    def _begin_next(self) -> RunningBatch | None:
        with self._lock:
            if not self._waiting or self._holds or self.count > self.most or not self._visit.may_go_on():
                return None
            return self._new_batch(self._waiting.popleft())

    def _hold(self) -> None:
        """No slot begins any until the coordinator has taken note of what ended badly: others may come first then."""
        with self._lock:
            self._holds += 1

    def _new_batch(self, deliveries: Sequence[Delivery]) -> RunningBatch:
        running = self._visit.new_batch(deliveries)
        self.running.add(running)
        return running
