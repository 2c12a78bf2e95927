"""Slots for coroutine handlers: tasks on their event loop, or, within plain middlewares, threads that wait for them."""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import HandlerError
from lowkiq_lambda.base.forks import awaited_in_parent_alone
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.engine.coroutines import NOT_AWAITED, AwaitedCall, call, dispose, told
from lowkiq_lambda.engine.event_loop import STANDSTILL, HandlerLoop, LoopCall, Task
from lowkiq_lambda.engine.perform import BatchResult, Chain, Performer
from lowkiq_lambda.engine.slots import Ended, LoopEnded, OnEnd, SlotBatch
from lowkiq_lambda.engine.thread_slots import SlotThreads, ThreadSlots
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

    def begin(self, batches: Sequence[SlotBatch], variables: Context, on_end: OnEnd) -> None:
        """Perform each on the loop, which is woken once for all of them."""
        loop = self._loop.get()
        middlewares = [around_coroutines(middleware) for middleware in self._middlewares]
        plain = [middleware for middleware in middlewares if not is_awaited(middleware)]
        rest = [middleware for middleware in middlewares if is_awaited(middleware)]
        if plain:
            threads = _ThreadsAroundLoop(self._performer, self._clock, self._threads, loop, (plain, rest))
            threads.begin(batches, variables, on_end)
            return
        tasks = _LoopTasks(
            loop=loop,
            performer=self._performer,
            middlewares=rest,
            now=self._clock.monotonic,
            variables=variables,
            on_end=on_end,
            may_run_at_once=loop.get_task_factory() is not None,
        )
        loop.call_soon_threadsafe(_begin_each, [_BatchTask(tasks, batch) for batch in batches])


class _LoopTasks(msgspec.Struct, frozen=True, eq=False):
    """What the tasks of slots that began together have in common."""

    loop: AbstractEventLoop
    performer: Performer
    middlewares: Sequence[ServerMiddleware]
    now: Callable[[], float]
    variables: Context
    on_end: OnEnd
    may_run_at_once: bool
    """Whether a task may make its first steps while it is made, as the factory of the loop's tasks decides."""

    def begin(self, following: SlotBatch) -> None:
        """On the loop: begin the task of a batch that follows another one."""
        task = _BatchTask(self, following)
        if self.may_run_at_once:
            # Not within the one before it, and so on: the stack is not that deep.
            self.loop.call_soon(task.begin)
        else:
            task.begin()


class _BatchTask(LoopCall):
    """One batch in a slot on the loop. Its task begins that of the batch that follows it."""

    def __init__(self, tasks: _LoopTasks, batch: SlotBatch) -> None:
        super().__init__(tasks.loop)
        self._tasks = tasks
        self._batch = batch
        self._has_begun = False
        batch.call = self
        # It may have come before there was a call to cancel.
        self.is_cancelled = batch.cancelled is not None

    def begin(self) -> None:
        """On the loop."""
        self.start(self._perform(), self._tasks.variables.copy(), self._end_unbegun)

    async def _perform(self) -> None:
        tasks, performer = self._tasks, self._tasks.performer
        self._has_begun = True
        self.forget(self._end_unbegun)
        ended: Ended | BaseException
        began_at = tasks.now()
        try:
            if self.is_cancelled or not self._batch.begin():
                result = self._unbegun()
            else:
                batch, result = performer.begin(self._batch.deliveries, self._batch)
                if batch is not None:
                    try:
                        outcome = await call(performer, tasks.middlewares, batch)
                    except GeneratorExit as raised:
                        # Thrown into coroutines that await each other it closes the inner ones, and comes out of the
                        # outermost alone.
                        outcome = raised, raised
                    result = performer.end(batch, result, *outcome)
            ended = Ended(result, began_at, tasks.now())
        except BaseException as error:  # noqa: BLE001 - raised by the visit, in its own thread
            ended = error
        if (following := tasks.on_end(self._batch, ended)) is not None:
            tasks.begin(following)

    def _unbegun(self) -> BatchResult:
        ids = [delivery.id for delivery in self._batch.deliveries]
        # A cancellation of ours is not a sign against the ids.
        return BatchResult(returned=ids, exited_ids=[] if self.is_cancelled else ids, exit=asyncio.CancelledError())

    def _end_unbegun(self, _task: Task) -> None:
        """Its task was cancelled before its first step."""
        if not self._has_begun:
            now = self._tasks.now()
            self._tasks.on_end(self._batch, Ended(self._unbegun(), now, now))


def _begin_each(tasks: Sequence[_BatchTask]) -> None:
    for task in tasks:
        task.begin()


class _ThreadsAroundLoop(ThreadSlots):
    """Threads for the plain middlewares, which wait for the tasks that have the others and the handlers."""

    def __init__(
        self,
        performer: Performer,
        clock: Clock,
        threads: SlotThreads,
        loop: AbstractEventLoop,
        middlewares: tuple[Sequence[ServerMiddleware], Sequence[ServerMiddleware]],
    ) -> None:
        super().__init__(performer, clock, threads)
        self._loop = loop
        self._plain, self._rest = middlewares

    def _run(self, batch: SlotBatch) -> tuple[BatchResult, float | None]:
        batch.call = call = _CallInThread(self._loop)
        # A cancellation that came before is of another call.
        call.is_cancelled = batch.cancelled is not None

        def chain(run_handler: Chain) -> Chain:
            return compose(self._plain, lambda worker, batch: run_handler(_Awaited(call, self._rest, worker), batch))  # type: ignore[arg-type]  # all that is asked of it is `perform`

        result = msgspec.structs.replace(self._performer, chain=chain).run(batch.deliveries, batch)
        if call.broken is not None:
            raise LoopEnded(call.broken)
        return result, None


class _CallInThread(LoopCall):
    """A batch within plain middlewares, in a thread that sees by itself when its loop runs no more."""

    broken: str | None = None
    """Why its thread gave up."""

    def fault(self) -> str | None:
        """Its thread ends in any case."""
        return None


class _Awaited:
    """A worker whose `perform` waits in a thread for the handler of another one, which runs on the loop.

    `middlewares`, coroutine functions all, are around it there.
    """

    def __init__(self, call: _CallInThread, middlewares: Sequence[ServerMiddleware], worker: Worker) -> None:
        self._call = call
        self._handler = AwaitedCall()
        self._handle = compose(middlewares, self._handler.run)
        self._worker = worker

    def perform(self, batch: Batch) -> object:
        """The result of the handler, or its exception."""
        ended: SimpleQueue[Task] = SimpleQueue()
        self._call.loop.call_soon_threadsafe(self._begin, batch, copy_context(), ended.put)
        task = self._ended(ended)
        if task is None or task.cancelled():
            raise asyncio.CancelledError
        outcome = task.result()
        if isinstance(outcome, BaseException):
            raise outcome
        return None

    def _begin(self, batch: Batch, variables: Context, on_done: Callable[[Task], object]) -> None:
        self._call.start(self._awaited(batch), variables, on_done)

    def _ended(self, ended: "SimpleQueue[Task]") -> "asyncio.Task[object] | None":
        while True:
            try:
                return ended.get(timeout=STANDSTILL)
            except Empty:
                self._call.broken = LoopCall.fault(self._call)
                if self._call.broken is not None:
                    return None

    async def _awaited(self, batch: Batch) -> BaseException | None:
        if self._call.is_cancelled:
            return asyncio.CancelledError()
        # Exceptions of the handler are handed over: an exit must not leave the loop's thread.
        try:
            dispose(await awaited_in_parent_alone(self._handle(self._worker, batch)))
        except BaseException as error:  # noqa: BLE001 - handed over
            return told(error)
        return None if self._handler.has_begun else HandlerError(NOT_AWAITED)
