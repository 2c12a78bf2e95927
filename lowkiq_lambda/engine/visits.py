"""The visits of one drain that are under way at once, each in a thread of its own.

The drain's own thread begins them and gets the result of each; it alone keeps the board and the report.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, NoReturn, TypeAlias, TypeVar

from lowkiq_lambda.base.clock import at_most
from lowkiq_lambda.base.error_text import loggable
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.slots import NoSlot
from lowkiq_lambda.engine.thread_slots import SlotThreads
from lowkiq_lambda.store.shard.keys import ShardRef

Result = TypeVar("Result")
End: TypeAlias = Callable[[], Result]
"""The end of a visit: a call that returns what the visit returned, or raises what it raised."""

logger = logging.getLogger(__name__)


class VisitsAtOnce(Generic[Result]):
    """Used by one thread."""

    def __init__(self, threads: SlotThreads) -> None:
        self._threads = threads
        self._ended: SimpleQueue[tuple[ShardRef, End[Result]]] = SimpleQueue()
        self._is_broken_off = False
        self.shards: set[ShardRef] = set()
        """Those that are visited."""

    def begin(self, shard: ShardRef, visit: Callable[[ShardRef, Budget], Result], budget: Budget) -> bool:
        """Make the visit, with the context variables of the caller; whether there is a thread for it.

        The budget is for this visit alone.
        """
        is_over = budget.stopping
        budget.stopping = lambda: self._is_broken_off or is_over()
        try:
            self._threads.start(partial(copy_context().run, self._make, shard, partial(visit, shard, budget)))
        except NoSlot as error:
            logger.warning("no more than %s shards are visited at once: %s", len(self.shards) + 1, error)
            return False
        self.shards.add(shard)
        return True

    def wait(self, seconds: float | None = None) -> Iterator[tuple[ShardRef, End[Result]]]:
        """The visits that have ended; waits for the first of them, for ever if no time is given."""
        wait = at_most(seconds)
        with suppress(Empty):
            while True:
                shard, end = self._ended.get(timeout=wait)
                self.shards.discard(shard)
                yield shard, end
                wait = 0.0

    def break_off(self) -> None:
        """Tell the handlers that run to stop, and wait for all visits to end."""
        self._is_broken_off = True
        while self.shards:
            for shard, end in self.wait():
                try:
                    end()
                except BaseException as error:
                    fields = {"queue": shard.queue_name, "shard": shard.number}
                    logger.exception("another visit of the drain raised", extra=fields, exc_info=loggable(error))

    def _make(self, shard: ShardRef, visit: Callable[[], Result]) -> None:
        try:
            result = visit()
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the drain
            self._ended.put((shard, partial(_raise, error)))
        else:
            self._ended.put((shard, lambda: result))


def _raise(error: BaseException) -> NoReturn:
    raise error
