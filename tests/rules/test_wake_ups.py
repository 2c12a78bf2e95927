"""A slot that goes on may leave its coordinator asleep, but never with something that is due: in all orders of steps.

The code of the slot and of the inbox is real. It stops before each of its lines, as does a coordinator that looks in
the order of `ConcurrentVisit._next_batch`; each schedule of few changes between the two is tried.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from itertools import combinations
from queue import Empty
from types import FrameType
from typing import Any, Final

import pytest

from lowkiq_lambda import Worker
from lowkiq_lambda.engine import inbox as inboxes
from lowkiq_lambda.engine import slots_in_use
from lowkiq_lambda.engine.inbox import Inbox
from lowkiq_lambda.engine.perform import ALL_DONE
from lowkiq_lambda.engine.running import RunningBatch
from lowkiq_lambda.engine.slots import Ended, OnEnd, SlotBatch
from lowkiq_lambda.engine.slots_in_use import SlotsInUse
from lowkiq_lambda.jobs.job import Delivery

FILES: Final = {__file__, inboxes.__file__, slots_in_use.__file__}
STEPS_IN: Final = {"_end", "ring", "wait", "work", "coordinate", "get"}
TIMEOUT: Final = 20.0
CHANGES: Final = 2
"""Between the two threads, of one's own accord; any number where the coordinator sleeps."""


class Stepping(threading.Thread):
    """Stops before each line of the functions in STEPS_IN."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self._may_go, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        self.is_over = False
        self.start()
        assert self._stands.acquire(timeout=TIMEOUT)

    def run(self) -> None:
        """As a thread."""
        sys.settrace(self._trace)
        try:
            self._call()
        finally:
            sys.settrace(None)
            self.is_over = True
            self._stands.release()

    def _trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_name not in STEPS_IN or frame.f_code.co_filename not in FILES:
            return None
        if event == "line":
            self._stands.release()
            assert self._may_go.acquire(timeout=TIMEOUT)
        return self._trace

    def step(self) -> None:
        """Make one step."""
        self._may_go.release()
        assert self._stands.acquire(timeout=TIMEOUT)


class Bell:
    """That of the inbox; who waits for it sleeps, step by step."""

    def __init__(self) -> None:
        self._rings: deque[None] = deque()
        self.is_awaited = False

    def put(self, ring: None) -> None:
        """Ring."""
        self._rings.append(ring)

    def get(self, timeout: float) -> None:
        """Wait for a ring; with 0 there has to be one. What is later than that does not come in these tests."""
        self.is_awaited = bool(timeout)
        while self.is_awaited and not self._rings:
            pass
        self.is_awaited = False
        if not self._rings:
            raise Empty
        self._rings.popleft()

    @property
    def lets_sleep(self) -> bool:
        """Whether who waits has to wait on."""
        return self.is_awaited and not self._rings


class OneSlot:
    """Slots that begin nothing by themselves: the test ends batches in them."""

    def check(self) -> None:
        """Nothing stands against it."""

    def begin(self, batches: Sequence[SlotBatch], variables: object, on_end: OnEnd) -> None:
        """Remember the batch, and who is told of its end."""
        (self.batch,), self.variables, self.on_end = batches, variables, on_end


class SleepingCase:
    """A coordinator, and a slot that performs all of the batches, one after the other."""

    def __init__(self, batches: int, *, low: int) -> None:
        self.left = batches
        self.low = low
        self.noted = self.claims = 0
        self.performs = False
        """Whether the handler runs in the slot, for as long as it likes."""
        self.inbox, self.slot, self.bell = Inbox(), OneSlot(), Bell()
        self.inbox._bell = self.bell  # type: ignore[assignment]  # as a queue, for one that puts and one that gets
        worker = type("Alone", (Worker,), {"queue_name": "alone", "concurrency": 1})
        self.slots = SlotsInUse(self, self.slot, worker, self.inbox, 1)
        each = [[Delivery(str(number), [b""], 0.0, -1.0)] for number in range(batches)]
        self.slots.offer(deque(each[1:]))
        self.slots.begin(each[:1], copy_context())

    def may_go_on(self) -> bool:
        """Nothing is against the next one."""
        return True

    def new_batch(self, deliveries: Sequence[Delivery]) -> RunningBatch:
        """As the visit."""
        return RunningBatch(self, deliveries, 0.0, is_suspect=False)  # type: ignore[arg-type]  # no handler asks it

    def note_end(self, _running: RunningBatch, _ended: Ended | BaseException, *, is_free: bool) -> None:
        """As the visit."""
        self.noted += 1
        self.slots.count -= is_free
        if self.slots.unsettled_since is None:
            self.slots.unsettled_since = 1.0

    def work(self) -> None:
        """In the slot."""
        following: SlotBatch | None = self.slot.batch
        while following is not None:
            self.performs = True
            self.performs = False
            following = self.slot.on_end(following, Ended(ALL_DONE, 0.0, 1.0))

    def coordinate(self) -> None:
        """Look, sleep, and make the calls, until the slot is free; claim once, as soon as few wait; settle at once."""
        while self.slots.count:
            self.slots.low = 0 if self.claims else self.low
            if len(self.slots) < self.slots.low:
                self.claims += 1
                self.slots.unsettled_since = None
                continue
            # It is time to settle as soon as there is anything, so that it never sleeps with a time to wake up at.
            is_timed = self.slots.unsettled_since is not None
            self.inbox.wait(0.0 if is_timed else 0.1)
            self.inbox.make_calls()
            if is_timed:
                self.slots.unsettled_since = None


def schedules(steps: int) -> Iterator[frozenset[int]]:
    """At which steps the turn changes."""
    for changes in range(CHANGES + 1):
        yield from map(frozenset, combinations(range(steps), changes))


def play(case: SleepingCase, changes: frozenset[int]) -> int:
    """Play it to its end; how many steps that took. Where the coordinator sleeps, what is due has been noted."""
    slot, coordinator = Stepping(case.work), Stepping(case.coordinate)
    is_slots, steps = False, 0
    while not (slot.is_over and coordinator.is_over):
        is_slots ^= steps in changes
        is_asleep = case.bell.lets_sleep
        if is_asleep and slot.is_over:
            raise AssertionError(f"sleeps for ever: {case.noted} of {case.left} are noted")
        if is_asleep and case.performs:
            assert not case.inbox._calls, "what ended is not noted"
            assert len(case.slots) >= case.slots.low, "nothing is claimed before all that waits has begun"
        if slot.is_over or (not is_slots and not is_asleep and not coordinator.is_over):
            coordinator.step()
        else:
            slot.step()
        steps += 1
    return steps


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_no_order_of_steps_lets_the_coordinator_sleep_over_an_end() -> None:
    """While a handler runs, it sleeps only if all that ended is noted, and enough waits."""
    for changes in schedules(play(SleepingCase(3, low=1), frozenset())):
        case = SleepingCase(3, low=1)
        play(case, changes)
        assert 3 == case.noted, sorted(changes)
