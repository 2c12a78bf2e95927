"""The threads and the event loop of an app, on which its batches and visits run side by side."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.declare.worker import is_coroutine
from lowkiq_lambda.engine.perform import Performer
from lowkiq_lambda.engine.thread_slots import SlotThreads, ThreadSlots
from lowkiq_lambda.settings.protocols import LoopFactory, ServerMiddleware

if TYPE_CHECKING:
    from lowkiq_lambda.engine.event_loop import HandlerLoop
    from lowkiq_lambda.engine.slots import Slots


class SlotPool:
    """Shared by all visits of the app's workers; made for the first that need it."""

    def __init__(self, clock: Clock, loop_factory: LoopFactory | None, middlewares: Sequence[ServerMiddleware]) -> None:
        self.threads = SlotThreads()
        self._clock = clock
        self._loop_factory = loop_factory
        self._middlewares = middlewares
        self._loop: HandlerLoop | None = None
        self._lock = threading.Lock()

    @property
    def loop(self) -> "HandlerLoop":
        """The loop of coroutine handlers."""
        with self._lock:
            if self._loop is None:
                from lowkiq_lambda.engine.event_loop import HandlerLoop  # noqa: PLC0415 - imported lazily: cold start

                self._loop = HandlerLoop(self._loop_factory)
            return self._loop

    def end(self) -> None:
        """Let its threads and its loop go, if nothing runs any more."""
        self.threads.end()
        if self._loop is not None:
            self._loop.end()

    def slots_for(self, performer: Performer) -> "Slots":
        """The slots for the batches of this worker."""
        if not is_coroutine(performer.worker):
            return ThreadSlots(performer, self._clock, self.threads)
        from lowkiq_lambda.engine.loop_slots import LoopSlots  # noqa: PLC0415 - imported lazily: cold start

        return LoopSlots(performer, self._clock, self.loop, self.threads, self._middlewares)
