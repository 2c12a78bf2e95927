"""Workers whose handlers run side by side, and what they note of each other."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeAlias

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.waiting import eventually
from tests.kit.workers import declare

TIMEOUT = 20.0
"""Seconds after which a handler that waits for others gives up."""

Declare: TypeAlias = Callable[..., type[Worker]]
"""As `declare`, with `concurrency` 4: of handlers of one kind."""


def declare_threads(app: Lowkiq, queue_name: str, handler: Callable[[Batch], object], **fields: Any) -> type[Worker]:
    """The handler runs in threads."""
    return declare(app, queue_name, handler, **{"concurrency": 4, **fields})


class Crowd:
    """Notes which ids run, how many at once, and which ever ran beside themselves."""

    def __init__(self, then: Callable[[Batch], object] | None = None) -> None:
        self.then = then
        self.most = 0
        """Ids at once."""
        self.overlaps: list[str] = []
        self.beside: dict[str, int] = {}
        """How many others ran when an id began last."""
        self.begun: list[str] = []
        self.ended: list[str] = []
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, batch: Batch) -> None:
        """Note the ids, do as the test says, and note the end."""
        with self._lock:
            self.beside.update(dict.fromkeys(batch, self._running.total()))
            self._running.update(list(batch))
            self.begun += batch
            self.overlaps += [job_id for job_id in batch if self._running[job_id] > 1]
            self.most = max(self.most, self._running.total())
        try:
            if self.then:
                self.then(batch)
        finally:
            with self._lock:
                self._running.subtract(list(batch))
                self.ended += batch


class Gathering:
    """Handlers that wait for each other: each goes on when so many have come."""

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count, timeout=TIMEOUT)

    def __call__(self, _batch: Batch) -> None:
        """Wait for the others."""
        self._barrier.wait()


def wait_for(event: threading.Event) -> None:
    """In a handler: wait, but not for ever."""
    if not event.wait(TIMEOUT):
        raise TimeoutError("what the handler waits for does not come")


def move_until(clock: ManualClock, predicate: Callable[[], bool]) -> None:
    """In a handler: let time pass until it is so."""

    def moved() -> bool:
        clock.advance(0.2)
        return predicate()

    eventually(moved)


def declare_coroutines(app: Lowkiq, queue_name: str, handler: Callable[[Batch], object], **fields: Any) -> type[Worker]:
    """The handler is a coroutine, which waits while the test's part of it runs in a thread: cancelled or not."""

    async def perform(_self: Worker, batch: Batch) -> None:
        part = asyncio.get_running_loop().run_in_executor(None, copy_context().run, handler, batch)
        try:
            await asyncio.shield(part)
        finally:
            await asyncio.wait([part])

    return declare_threads(app, queue_name, handler, **{"perform": perform, **fields})
