"""Slots for plain handlers: threads that are kept, so that what a handler keeps for its thread lasts."""

import os
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from queue import SimpleQueue
from time import thread_time
from typing import TypeAlias

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.engine.perform import Performer
from lowkiq_lambda.engine.slots import Ended, NoSlot, OnEnd, SlotBatch
from lowkiq_lambda.jobs.job import Delivery

_Calls: TypeAlias = "SimpleQueue[Callable[[], object] | None]"
"""None: the thread that takes it ends."""


class SlotThreads:
    """As many threads as ever ran at once; the process does not wait for them when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def start(self, call: Callable[[], object]) -> None:
        """Make the call, which must not raise, in a thread of its own. Raises NoSlot if there can be none."""
        with self._lock:
            if self._pid != os.getpid():
                # After a fork the threads are not alive in the child.
                self._forget()
            if self._idle.acquire(blocking=False):
                self._calls.put(call)
                return
            self._count += 1
            name = f"lowkiq-slot-{self._count}"
        thread = threading.Thread(target=_work, args=(call, self._calls, self._idle), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise NoSlot(str(error)) from error

    def end(self) -> None:
        """End the idle threads; busy ones are not used again, and no call may begin now."""
        with self._lock:
            while self._idle.acquire(blocking=False):
                self._calls.put(None)
            self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._calls: _Calls = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0


def _work(call: Callable[[], object] | None, calls: _Calls, idle: threading.Semaphore) -> None:
    while call is not None:
        call()
        # The thread does not keep the objects of its last batch until the next one.
        call = None
        idle.release()
        call = calls.get()


class ThreadCall:
    """A batch in a thread, which cannot be stopped, and ends by itself."""

    def cancel(self) -> None:
        """Nothing asks a thread to end but `batch.stopping`."""

    def fault(self) -> str | None:
        """Nothing keeps it from ending."""
        return None


class ThreadSlots:
    """A thread for each batch that runs."""

    def __init__(self, performer: Performer, clock: Clock, threads: SlotThreads) -> None:
        self._performer = performer
        self._clock = clock
        self._threads = threads

    def check(self) -> None:
        """Nothing stands against it."""

    def begin(self, deliveries: Sequence[Delivery], context: SlotBatch, variables: Context, on_end: OnEnd) -> None:
        """Perform the batch in a thread."""
        context.call = ThreadCall()
        self._threads.start(lambda: variables.run(self._perform, deliveries, context, on_end))

    def _perform(self, deliveries: Sequence[Delivery], context: SlotBatch, on_end: OnEnd) -> None:
        if not context.begin():
            return
        began_at, computing = self._clock.monotonic(), thread_time()
        try:
            result = self._performer.run(deliveries, context)
        except BaseException as error:  # noqa: BLE001 - raised by the visit, in its own thread
            on_end(error)
        else:
            on_end(Ended(result, began_at, self._clock.monotonic(), thread_time() - computing))
