"""Slots for plain handlers: threads that are kept, so that what a handler keeps for its thread lasts."""

import os
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from queue import SimpleQueue
from time import thread_time
from typing import TypeAlias

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.engine.perform import BatchResult, Performer
from lowkiq_lambda.engine.slots import Ended, NoSlot, OnEnd, SlotBatch, SlotCall

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
    """A thread for each slot."""

    def __init__(self, performer: Performer, clock: Clock, threads: SlotThreads) -> None:
        self._performer = performer
        self._clock = clock
        self._threads = threads

    def check(self) -> None:
        """Nothing stands against it."""

    def begin(self, batches: Sequence[SlotBatch], variables: Context, on_end: OnEnd) -> None:
        """Perform each in a thread."""
        for batch in batches:
            batch.call = self._new_call()
            try:
                self._threads.start(partial(self._work, batch, variables, on_end))
            except NoSlot:
                batch.call = None
                raise

    def _new_call(self) -> SlotCall:
        return ThreadCall()

    def _work(self, batch: SlotBatch, variables: Context, on_end: OnEnd) -> None:
        """In the thread: the batch, and those that follow it."""
        following = variables.copy().run(self._perform, batch, on_end)
        while following is not None:
            following.call = self._new_call()
            following = variables.copy().run(self._perform, following, on_end)

    def _perform(self, batch: SlotBatch, on_end: OnEnd) -> SlotBatch | None:
        if not batch.begin():
            return None
        began_at = self._clock.monotonic()
        try:
            result, computed = self._run(batch)
        except BaseException as error:  # noqa: BLE001 - raised by the visit, in its own thread
            return on_end(batch, error)
        return on_end(batch, Ended(result, began_at, self._clock.monotonic(), computed))

    def _run(self, batch: SlotBatch) -> tuple[BatchResult, float | None]:
        """What came of the batch, and for how many seconds a processor worked for it, if that can be told."""
        computing = thread_time()
        result = self._performer.run(batch.deliveries, batch)
        return result, thread_time() - computing
