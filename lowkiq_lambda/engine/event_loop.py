"""The event loop on which coroutine handlers run: one for all of them, kept as long as the process.

So a client or a pool that a handler keeps in its module works in the next batch, too.
"""

import asyncio
import logging
import os
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from lowkiq_lambda.base.forks import awaited_by
from lowkiq_lambda.settings.protocols import LoopFactory

Result = TypeVar("Result")
Task: TypeAlias = "asyncio.Task[Any]"

logger = logging.getLogger(__name__)

PATIENCE: Final = 1.0
"""Seconds until a coroutine that does not heed its cancellation is logged."""
STANDSTILL: Final = 1.0
"""Seconds for which a loop may stand still: between two tests, for example, that share it."""

WOULD_WAIT: Final = "A drain on the thread of its handlers' loop would wait for itself: await app.adrain()."

_LAST_WORDS: Final = 1.0
"""Seconds that cancelled tasks have when their loop ends."""
_callers_loop: ContextVar[AbstractEventLoop | None] = ContextVar("lowkiq_callers_loop", default=None)
"""Of who awaits the drain in whose context this is."""


class HandlerLoop:
    """The loop of one app: in a thread of its own, made when it is needed first, unless another one is given."""

    def __init__(self, factory: LoopFactory | None) -> None:
        self._new_loop = factory or asyncio.new_event_loop
        self._lock = threading.Lock()
        self._pid = 0
        self._own: AbstractEventLoop | None = None
        self._ended = threading.Event()
        self._given: AbstractEventLoop | None = None

    def use(self, loop: AbstractEventLoop | None) -> None:
        """Run handlers on this loop, which runs in another thread; None: on the app's own. Raises TypeError."""
        if loop is not None and not isinstance(loop, AbstractEventLoop):
            raise TypeError(f"use_loop takes an event loop, as asyncio.get_running_loop() is, or None, not {loop!r}.")
        self._given = loop

    def get(self) -> AbstractEventLoop:
        """The loop of handlers now. Raises RuntimeError for a loop that cannot run them."""
        loop = _callers_loop.get() or self._given
        if loop is None:
            return self._running()
        if loop.is_closed() or not loop.is_running():
            state = "closed" if loop.is_closed() else "not running"
            raise RuntimeError(f"The event loop that handlers are to run on is {state}: give another to app.use_loop.")
        return loop

    def check(self) -> None:
        """Raises RuntimeError if the thread that calls would wait for itself, and for a loop that cannot run."""
        self.get()
        if self.is_here():
            raise RuntimeError(WOULD_WAIT)

    def is_here(self) -> bool:
        """Whether the thread that calls is the one on which handlers run now, or would."""
        running = asyncio._get_running_loop()  # noqa: SLF001 - the public one raises where there is none
        return running is not None and running is (_callers_loop.get() or self._given or self._own)

    def end(self) -> None:
        """Close the app's own loop, on which no handler may run; the tasks that handlers have left are cancelled."""
        with self._lock:
            loop, self._own = self._own, None
            if loop is not None and self._pid == os.getpid():
                self._ended.set()
                loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> AbstractEventLoop:
        with self._lock:
            # After a fork the thread is not alive in the child.
            if self._own is None or self._pid != os.getpid():
                self._own, self._pid, self._ended = self._new_loop(), os.getpid(), threading.Event()
                arguments = (self._own, self._ended)
                threading.Thread(target=_run, args=arguments, name="lowkiq-loop", daemon=True).start()
            return self._own


def _run(loop: AbstractEventLoop, ended: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    while not (ended.is_set() or loop.is_closed()):
        try:
            loop.run_forever()
        except BaseException:
            # A task that a handler has started ended so: it ends no other.
            logger.exception("a task ended the event loop of handlers, which runs on")
    if not loop.is_closed():
        _close(loop)


def _close(loop: AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    try:
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_LAST_WORDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


class LoopCall:
    """One coroutine on a loop, begun and cancelled from other threads."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self._task: Task | None = None
        self._stands_since: float | None = None
        self.is_cancelled = False
        """Whether `cancel` was called: a loop that was blocked since hears of it only when it has begun the task."""

    def start(self, call: Coroutine[Any, Any, object], variables: Context, on_done: Callable[[Task], object]) -> None:
        """On the loop: run it with these context variables; `on_done` is called when it has ended."""
        self._task = self.loop.create_task(call, context=variables)
        self._task.add_done_callback(on_done)
        if self.is_cancelled:
            self._cancel()

    def forget(self, on_done: Callable[[Task], object]) -> None:
        """On the loop: `on_done` is not called any more."""
        if self._task is not None:
            self._task.remove_done_callback(on_done)

    def cancel(self) -> None:
        """Cancel it, be it begun or not."""
        self.is_cancelled = True
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self._cancel)

    def fault(self) -> str | None:
        """Why it may never end: its loop is closed, or has stood still for some time. To be asked again."""
        if self.loop.is_running():
            self._stands_since = None
            return None
        now = time.monotonic()
        self._stands_since = now if self._stands_since is None else self._stands_since
        if self.loop.is_closed():
            return "The event loop of handlers was closed while they ran: their jobs are given back."
        if now - self._stands_since < STANDSTILL:
            return None
        return "The event loop of handlers was stopped while they ran: their jobs are given back."

    def _cancel(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            self.loop.call_later(PATIENCE, _complain, self._task)


def _complain(task: Task) -> None:
    if not task.done():
        places = "\n".join(_places(task.get_coro()))
        logger.warning("a handler goes on though it was cancelled, and its drain waits for it:\n%s", places)


def _places(awaited: object) -> Iterator[str]:
    """The place in the code of each coroutine of those that await each other, from the outermost."""
    while awaited is not None:
        if frame := getattr(awaited, "cr_frame", None):
            yield f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}'
        awaited = getattr(awaited, "cr_await", None) or awaited_by(awaited)


async def drain_beside(drain: Callable[[], Result], stop: Callable[[], object]) -> Result:
    """The result, or the exception, of the drain, which runs in a thread; its handlers run on this loop.

    If this call is cancelled, it calls `stop` and waits for the drain's end.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Result] = loop.create_future()
    variables = copy_context()
    variables.run(_callers_loop.set, loop)

    def run() -> None:
        try:
            tell = partial(ended.set_result, variables.run(drain))
        except BaseException as error:  # noqa: BLE001 - raised by who awaits it
            tell = partial(ended.set_exception, error)
        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:
            logger.exception("a drain ended when the event loop of its caller was closed")

    threading.Thread(target=run, name="lowkiq-adrain", daemon=True).start()
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        stop()
        while not ended.done():
            # A cancel scope of anyio cancels again and again until it is left.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([ended])
        if ended.exception() is not None:
            error = ended.exception()
            logger.error("the drain that was cancelled ended with an error", exc_info=error)  # noqa: TRY400 - it is another one that is raised
        raise
