"""Slots for coroutine handlers: tasks on their event loop, or, within plain middlewares, threads that wait for them."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from queue import Empty, SimpleQueue

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import HandlerError
from lowkiq_lambda.base.forks import AwaitedInParentAlone
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.engine.coroutines import NOT_AWAITED, AsyncHandler, call_handler, dispose, run, told
from lowkiq_lambda.engine.event_loop import STANDSTILL, HandlerLoop, LoopCall, Task
from lowkiq_lambda.engine.perform import BatchResult, Chain, Performer
from lowkiq_lambda.engine.slots import Ended, LoopEnded, OnEnd, SlotBatch
from lowkiq_lambda.engine.thread_slots import SlotThreads
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.settings.protocols import ServerMiddleware, around_coroutines, compose, is_awaited


class LoopSlots:
    """A task for each batch that runs. `middlewares` are those of the app, which may grow."""

    def __init__(
        self,
        performer: Performer,
        clock: Clock,
        loop: HandlerLoop,
        threads: SlotThreads,
        middlewares: Sequence[ServerMiddleware],
    ) -> None:
        self._performer = performer
        self._clock = clock
        self._loop = loop
        self._threads = threads
        self._middlewares = middlewares

    def check(self) -> None:
        """Raises RuntimeError if the thread that calls would wait for itself, and for a loop that cannot run."""
        self._loop.check()

    def begin(self, deliveries: Sequence[Delivery], context: SlotBatch, variables: Context, on_end: OnEnd) -> None:
        """Perform the batch on the loop."""
        call = LoopCall(self._loop.get())
        middlewares = [around_coroutines(middleware) for middleware in self._middlewares]
        plain = [middleware for middleware in middlewares if not is_awaited(middleware)]
        rest = [middleware for middleware in middlewares if is_awaited(middleware)]
        if plain:
            context.call = _CallInThread(call)
            self._threads.start(
                lambda: variables.run(self._due_at_thread, call, (plain, rest), deliveries, context, on_end)
            )
            return
        context.call = call
        began_at = self._clock.monotonic()
        is_cancelled: Callable[[], bool] = lambda: call.is_cancelled or not context.begin()  # noqa: E731 - asked on the loop
        coroutine = partial(run, self._performer, partial(compose, rest), deliveries, context, is_cancelled)
        call.start(coroutine, variables, partial(self._tell_end, call, deliveries, began_at, on_end))

    def _tell_end(
        self, call: LoopCall, deliveries: Sequence[Delivery], began_at: float, on_end: OnEnd, task: Task
    ) -> None:
        if task.cancelled():
            # Cancelled before it began: its handler never ran. A cancellation of ours is not a sign against the ids.
            ids = [delivery.id for delivery in deliveries]
            exited_ids = [] if call.is_cancelled else ids
            result = BatchResult(returned=ids, exited_ids=exited_ids, exit=asyncio.CancelledError())
            on_end(Ended(result, began_at, self._clock.monotonic()))
        elif (error := task.exception()) is not None:
            on_end(error)
        else:
            on_end(Ended(task.result(), began_at, self._clock.monotonic()))

    def _due_at_thread(
        self,
        call: LoopCall,
        middlewares: tuple[Sequence[ServerMiddleware], Sequence[ServerMiddleware]],
        deliveries: Sequence[Delivery],
        context: SlotBatch,
        on_end: OnEnd,
    ) -> None:
        """In a thread: the plain middlewares, which wait for the task that has the others and the handler."""
        if not context.begin():
            return
        plain, rest = middlewares

        def chain(run_handler: Chain) -> Chain:
            return compose(plain, lambda worker, batch: run_handler(_Awaited(call, rest, worker), batch))  # type: ignore[arg-type]  # all that is asked of it is `perform`

        began_at = self._clock.monotonic()
        try:
            result = msgspec.structs.replace(self._performer, chain=chain).run(deliveries, context)
        except BaseException as error:  # noqa: BLE001 - raised by the visit, in its own thread
            on_end(error)
        else:
            ended = Ended(result, began_at, self._clock.monotonic())
            on_end(ended if call.broken is None else LoopEnded(call.broken))


class _CallInThread:
    """A batch within plain middlewares, in a thread that sees by itself when its loop runs no more."""

    def __init__(self, call: LoopCall) -> None:
        self._call = call

    def cancel(self) -> None:
        """Cancel what runs on the loop."""
        self._call.cancel()

    def fault(self) -> str | None:
        """Its thread ends in any case."""
        return None


class _Awaited:
    """A worker whose `perform` waits in a thread for the handler of another one, which runs on the loop.

    `middlewares`, coroutine functions all, are around it there.
    """

    def __init__(self, call: LoopCall, middlewares: Sequence[ServerMiddleware], worker: Worker) -> None:
        self._call = call
        self._handle: AsyncHandler = compose(middlewares, self._call_handler)
        self._called = False
        self._worker = worker

    def perform(self, batch: Batch) -> object:
        """The result of the handler, or its exception."""
        ended: SimpleQueue[Task] = SimpleQueue()
        self._call.start(lambda: self._awaited(batch), copy_context(), ended.put)
        task = self._ended(ended)
        if task is None or task.cancelled():
            raise asyncio.CancelledError
        outcome = task.result()
        if isinstance(outcome, BaseException):
            raise outcome
        return None

    def _ended(self, ended: "SimpleQueue[Task]") -> "asyncio.Task[object] | None":
        while True:
            try:
                return ended.get(timeout=STANDSTILL)
            except Empty:
                self._call.broken = self._call.fault()
                if self._call.broken is not None:
                    return None

    async def _awaited(self, batch: Batch) -> BaseException | None:
        if self._call.is_cancelled:
            return asyncio.CancelledError()
        # Exceptions of the handler are handed over: an exit must not leave the loop's thread.
        try:
            dispose(await AwaitedInParentAlone(self._handle(self._worker, batch)))
        except BaseException as error:  # noqa: BLE001 - handed over
            return told(error)
        return None if self._called else HandlerError(NOT_AWAITED)

    async def _call_handler(self, worker: Worker, batch: Batch) -> object:
        self._called = True
        return await call_handler(worker, batch)
