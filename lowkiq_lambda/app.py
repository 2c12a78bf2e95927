"""The app: settings, workers and middlewares, and all that can be done with them."""

import math
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, Unpack, overload
from weakref import WeakSet

from lowkiq_lambda.app_operations import AppOperations
from lowkiq_lambda.app_schedules import AppSchedules
from lowkiq_lambda.clock import Clock
from lowkiq_lambda.config import Config
from lowkiq_lambda.declaring import check_queue_name, register
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.drain import Drain
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.errors import BackendUnavailable
from lowkiq_lambda.job import Pushed
from lowkiq_lambda.push.middlewares import Jobs, push_through
from lowkiq_lambda.worker import FunctionWorker, P, Worker, WorkerOptions, worker_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from datetime import timedelta

    from starlette.types import ASGIApp

    from lowkiq_lambda.dashboard import Auth, Mask
    from lowkiq_lambda.dashboard.tasks_api import Authorize
    from lowkiq_lambda.engine.batch import Batch
    from lowkiq_lambda.gather import Gather
    from lowkiq_lambda.inboxes import Inboxes
    from lowkiq_lambda.ingest import MappingFunction, MappingFunctions
    from lowkiq_lambda.protocols import ClientMiddleware, Observer, ServerMiddleware
    from lowkiq_lambda.remote import RemoteWorker
    from lowkiq_lambda.tasks.task import Task
    from lowkiq_lambda.tasks.tasks import Tasks

    class WorkerDecorator(Protocol):
        """What `app.worker(...)` with options returns."""

        @overload
        def __call__(self, target: Callable[[Batch[P]], object], /) -> FunctionWorker[P]: ...
        @overload
        def __call__(self, target: "Handler", /) -> FunctionWorker: ...


W = TypeVar("W", bound=type[Worker[Any]])
M = TypeVar("M", bound="MappingFunction")
Handler: TypeAlias = Callable[[Any], object]
Flushed = TypeVar("Flushed", bound=Callable[..., Any])


class Lowkiq(AppSchedules, AppOperations):
    """One app. Without a config the settings are read from the environment, at first use.

    `clock` is for tests: with one, time is what it says, on the server too.
    """

    _made: ClassVar["WeakSet[Lowkiq]"] = WeakSet()
    _hooks: ClassVar["list[Callable[[Lowkiq], object]]"] = []

    def __init__(self, config: Config | None = None, *, clock: Clock | None = None) -> None:
        super().__init__(config, clock)
        self._mapping_functions: MappingFunctions | None = None
        self._inboxes: Inboxes | None = None
        self.server_middlewares: list[ServerMiddleware] = []
        """Around each batch; the first is outermost."""
        self.client_middlewares: list[ClientMiddleware] = []
        """Around each push; the first is outermost."""
        self.observers: list[Observer] = []
        """Told of each settling, once Redis has acknowledged it; what one raises is logged, and stops nothing."""
        self.before_answer: list[Callable[[float], object]] = []
        """Called with the seconds that they may take before a function on Lambda answers, as it is frozen then."""
        self._made.add(self)
        for hook in self._hooks:
            hook(self)

    @classmethod
    def for_each(cls, hook: "Callable[[Lowkiq], object]") -> None:
        """Call the hook with each app of the process: those there are, and each that is made from now on.

        For what instruments a process without knowing its apps.
        """
        cls._hooks.append(hook)
        for app in list(cls._made):
            hook(app)

    @classmethod
    def no_longer_for_each(cls, hook: "Callable[[Lowkiq], object]") -> None:
        """Leave the apps that are made from now on alone."""
        cls._hooks.remove(hook)

    # A worker class can be called too, but the first form that fits counts.
    @overload
    def worker(self, target: W) -> W: ...  # type: ignore[overload-overlap]  # the first that fits
    @overload
    def worker(self, target: "Callable[[Batch[P]], object]") -> FunctionWorker[P]: ...
    @overload
    def worker(self, target: Handler) -> FunctionWorker: ...
    @overload
    def worker(self, **options: Unpack[WorkerOptions]) -> "WorkerDecorator": ...

    def worker(self, target: Any = None, **options: Any) -> Any:
        """Declare a worker: on a subclass of Worker, or, with a worker's fields as options, on a function.

        Raises DeclarationError where the declaration cannot work.
        """
        return partial(self._bind, options) if target is None else self._bind(options, target)

    @overload
    def ingest(self, target: M) -> M: ...
    @overload
    def ingest(self, target: str | None = None, *, via: str | None = None) -> Callable[[M], M]: ...

    def ingest(self, target: Any = None, *, via: str | None = None) -> Any:
        """Declare a mapping function: it is given what comes in from outside, and yields workers with jobs for them.

        `@app.ingest` is for all sources; `@app.ingest("orders-*")` for those whose ARN or name fits: that of a queue, a
        table, a bucket, or the `source` of events. `via` is the ARN or the name of a queue of SQS, or a pattern, by
        which notifications of S3 come for it, too: whoever may send to that queue can claim any object.
        The ingest function calls it. Raises DeclarationError.
        """
        return self.mapping_functions.declare(target, via)

    def inbox(self, pattern: str, *, queues: "Collection[str] | None" = None) -> None:
        """Declare a queue of SQS of yours an inbox, as `SqsInbox` sends to: its messages may name any queue of the app.

        `pattern` is its ARN or name; `*` and `?` stand for any letters. `queues` are the names of the app's queues that
        its messages may name. The inbox of the template is one without this. Raises DeclarationError.
        """
        self.inboxes.declare(pattern, queues)

    @property
    def inboxes(self) -> "Inboxes":
        """Those that `inbox` has declared."""
        with self._lock:
            if self._inboxes is None:
                from lowkiq_lambda.inboxes import Inboxes  # noqa: PLC0415 - imported lazily: cold start

                self._inboxes = Inboxes()
            return self._inboxes

    @property
    def mapping_functions(self) -> "MappingFunctions":
        """Those that `ingest` has declared."""
        with self._lock:
            if self._mapping_functions is None:
                from lowkiq_lambda.ingest import MappingFunctions  # noqa: PLC0415 - imported lazily: cold start

                self._mapping_functions = MappingFunctions()
            return self._mapping_functions

    def task(
        self,
        name: str,
        on_complete: "tuple[type[Worker[Any]] | FunctionWorker[Any], object] | None" = None,
        expires_in: "float | timedelta | None" = None,
    ) -> "Task":
        """A new task: jobs pushed through it are followed together, as items.

        `on_complete`: a worker of this app and a payload; a job with the task's id and that payload is pushed once all
        items have ended. `expires_in`: for how long it is kept then (seconds; default `task_max_age`).
        Raises DeclarationError, JobError, BackendError.
        """
        return self.tasks.new(name, on_complete, expires_in)

    @property
    def tasks(self) -> "Tasks":
        """The tasks: found by their ids, and listed."""
        with self._lock:
            if self._tasks is None:
                from lowkiq_lambda.tasks.tasks import Tasks  # noqa: PLC0415 - imported lazily: cold start

                self._tasks = Tasks(self)
            return self._tasks

    def remote(self, queue_name: str, *, gather: "Gather | None" = None) -> "RemoteWorker":
        """A worker that another program declares, to push to by the name of its queue: docs/ways-in.md.

        Its first push reads from Redis how the queue was made, and raises NoSuchQueue where nobody has made it.
        Payloads are JSON, and nobody here checks their type. `gather` is what the worker declares, if it does.
        Raises DeclarationError for what no queue can be called.
        """
        from lowkiq_lambda.remote import RemoteWorker  # noqa: PLC0415 - only where it is asked for

        check_queue_name(queue_name, "The name of a queue")
        return RemoteWorker(self, queue_name, gather)

    def push(self, worker: "type[Worker[Any]] | FunctionWorker[Any]", jobs: Jobs) -> list[Pushed]:
        """What `perform_async` does: through the client middlewares to Redis."""
        return push_through(self.client_middlewares, self._push, worker_of(worker), jobs)

    def push_or_raise(self, worker: "type[Worker[Any]] | FunctionWorker[Any]", jobs: Jobs) -> list[Pushed]:
        """As `push`, but Redis has the jobs when this returns: else it raises, whatever `when_unavailable` says.

        For callers that can push again, and must know that they have to.
        """
        return push_through(self.client_middlewares, self.push_past_middlewares, worker_of(worker), jobs)

    def push_past_middlewares(self, worker: type[Worker[Any]], jobs: Jobs) -> list[Pushed]:
        """As `push_or_raise`, for jobs that have been through the client middlewares elsewhere."""
        # What this process pushed before, and keeps, goes first.
        if self.flush(0.0):
            raise BackendUnavailable
        return self._parts.push_client(self.queue_of(worker)).push(jobs)

    async def apush(self, worker: "type[Worker[Any]] | FunctionWorker[Any]", jobs: Jobs) -> list[Pushed]:
        """What `aperform_async` does: `push` in a thread, so that the event loop goes on.

        Where it is cancelled the push goes on, and nobody learns whether the jobs were written.
        """
        return await self._parts.push_threads.run(partial(self.push, worker, list(jobs)))

    def flush(self, seconds: float = 5.0) -> int:
        """Write the jobs that wait in this process for Redis; how many are left after so many seconds.

        Jobs wait where the settings say `when_unavailable="buffer"`. The last attempt is not broken off, so this may
        take `redis_timeout` longer.
        """
        redelivery = self._parts.redelivery
        return redelivery.flush(seconds) if redelivery else 0

    def give_up_pushes(self) -> None:
        """Hand to `on_lost` what waits in this process: for one that ends at once, without its exit handlers."""
        if self._parts.redelivery:
            self._parts.redelivery.give_up()

    def flushes(self, handler: Flushed) -> Flushed:
        """Around a handler on Lambda, where a frozen process delivers nothing: flush before it returns or raises.

        It raises NotFlushed where jobs are left then, unless the handler has raised.
        """
        from lowkiq_lambda.push.flushing import flushing  # noqa: PLC0415 - only where it is asked for

        return flushing(self.flush, handler)

    def drain(self, seconds: float | None = None) -> dict[str, int]:
        """Perform what is due, here and now, until nothing is or `seconds` (default `max_runtime`) are over.

        Returns how many ids had each outcome: done, retried, buried, refused (ended with `Failed`), returned (as they
        were before the claim), suspected (to be run alone before it counts), later (to go on later). Also failed, which
        is retried and buried together, checkpointed (of later, those whose cursor had moved), and recovered, which a
        dead holder had left.

        Raises ValueError for NaN; RuntimeError on the thread of the loop on which coroutine handlers of the app run;
        KeyboardInterrupt at once; and when the other shards are drained BackendError, QueueMismatch, or what a handler
        exited with (SystemExit).
        """
        if self.drainer.is_on_handlers_loop():
            from lowkiq_lambda.engine.event_loop import WOULD_WAIT  # noqa: PLC0415 - imported lazily: cold start

            raise RuntimeError(WOULD_WAIT)
        return self._drain(self._budget(seconds))

    async def adrain(self, seconds: float | None = None) -> dict[str, int]:
        """As `drain`, for code on an event loop: the loop goes on meanwhile, and coroutine handlers run on it.

        `seconds` ends it as it ends `drain`: what runs then comes to its end. Where it is cancelled, what runs is
        cancelled, and its end is waited for.
        """
        from lowkiq_lambda.engine.event_loop import drain_beside  # noqa: PLC0415 - imported lazily: cold start

        cancelled = threading.Event()
        budget = self._budget(seconds, stopping=cancelled.is_set)
        budget.is_cancelled = cancelled.is_set
        return await drain_beside(partial(self._drain, budget), cancelled.set)

    def use_loop(self, loop: "AbstractEventLoop | None") -> None:
        """Have coroutine handlers run on this event loop, which runs in another thread; None: on one of the app's own.

        For handlers that share with other code what is bound to its loop. What runs by then ends where it began.
        `adrain` uses its caller's loop whatever is given here. Raises TypeError for what is no event loop.
        """
        self.drainer.slot_pool.loop.use(loop)

    def _budget(self, seconds: float | None, **options: Callable[[], bool]) -> Budget:
        given: object = seconds
        # A number that is not itself is none; `math.isnan` takes no int that no float holds.
        if given is not None and (not isinstance(given, int | float) or given != given):  # noqa: PLR0124 - as NaN does
            kind = ValueError if isinstance(given, float) else TypeError
            raise kind(f"seconds must be a number, not {given!r}: a drain visits all queues of the app.")
        limit = self.config.max_runtime if seconds is None else seconds
        return Budget(self._parts.clock, math.inf if limit > sys.float_info.max else max(limit, 0.0), **options)

    def _drain(self, budget: Budget) -> dict[str, int]:
        drain = Drain(self.drainer, self.drainer.shards).run(budget)
        for error in (*drain.exits.values(), *drain.errors.values()):
            raise error
        return dict(drain.counts)

    def dashboard(
        self,
        *,
        auth: "Auth | None" = None,
        base_path: str | None = None,
        mask: "Mask | None" = None,
        clock: Clock | None = None,
    ) -> "ASGIApp":
        """The dashboard as an ASGI app, to be served or mounted under any path; `dashboard.dashboard` says the rest.

        Raises ConfigError where nobody may come in.
        """
        from lowkiq_lambda.dashboard import dashboard  # noqa: PLC0415 - an entrance, and a drain has no use for it

        return dashboard(self, auth=auth, base_path=base_path, mask=mask, clock=clock or self._parts.clock)

    def tasks_api(self, *, authorize: "Authorize | None" = None, mask: "Mask | None" = None) -> "ASGIApp":
        """Tasks as JSON, for a front end of your own: an ASGI app to be mounted; `dashboard.tasks_api` says the rest.

        `authorize` is asked with each request and the id of its task (None: the list of all) and returns whether its
        sender may see that. Raises ConfigError without it: nobody may come in.
        """
        from lowkiq_lambda.dashboard.tasks_api import tasks_api  # noqa: PLC0415 - an entrance, as the dashboard is

        return tasks_api(self, authorize=authorize, mask=mask)

    @property
    def drainer(self) -> Drainer:
        """Makes visits to shards, for entrances that drain in a manner of their own."""
        return self._parts.drainer(self._queues, self.server_middlewares, self.observers, self._look_at_tasks)

    def _look_at_tasks(self, tasks: Collection[bytes], remaining: Callable[[], float]) -> None:
        self.tasks.look_at(tasks, remaining)

    def _push(self, worker: type[Worker[Any]], jobs: Jobs) -> list[Pushed]:
        if self.config.when_unavailable != "raise":
            return self._parts.reliable_client(self._queues.of(worker)).push(jobs)
        return self._parts.push_client(self.queue_of(worker)).push(jobs)

    def _bind(self, options: Mapping[str, Any], target: Any) -> Any:  # noqa: ANN401 - a class or a function
        with self._lock:
            declared = register(self, target, options, self.workers)
            worker = worker_of(declared)
            self._queues[worker.queue_name] = Queue(worker, self._advice)
            return declared
