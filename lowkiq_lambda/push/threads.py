"""`apush_many`: the same push, in a thread beside the event loop.

A push waits for the server: less than a millisecond as a rule, up to `2 * redis_timeout` seconds in an outage. On a
loop's own thread that would hold up all that runs on the loop.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Result = TypeVar("Result")


class PushThreads:
    """At most `size` threads of one app, made when they are needed; a forked child makes its own."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._pid = 0
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, push: Callable[[], Result]) -> Result:
        """The push's result, or its exception. It sees the caller's context variables.

        If the task is cancelled while the push runs, the push goes on, but its result is lost.
        """
        return await asyncio.wrap_future(self._running().submit(copy_context().run, push))

    def end(self) -> None:
        """Wait for the pushes that are under way, and let the threads go."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor and self._pid == os.getpid():
            executor.shutdown()

    def _running(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._executor = ThreadPoolExecutor(self._size, thread_name_prefix="lowkiq-push")
            return self._executor
