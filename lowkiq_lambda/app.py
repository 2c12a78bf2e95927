"""The app: settings, workers and middlewares, and all that can be done with them."""

import math
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, Unpack, overload
from weakref import WeakSet

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.config import Config
from lowkiq_lambda.declaring import register
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.drain import Drain
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.engine.queue import Queue, QueueRegistry
from lowkiq_lambda.errors import BackendUnavailable
from lowkiq_lambda.job import Pushed
from lowkiq_lambda.push.client import Jobs, push_through
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import TASKS, ShardRef
from lowkiq_lambda.wiring import Parts, reset_advice
from lowkiq_lambda.worker import FunctionWorker, Worker, WorkerOptions, worker_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta
    from pathlib import Path
    from uuid import UUID

    from starlette.types import ASGIApp

    from lowkiq_lambda.dashboard import Auth, Mask
    from lowkiq_lambda.dashboard.tasks_api import Authorize
    from lowkiq_lambda.duties.duty import Duty
    from lowkiq_lambda.ingest import MappingFunction, MappingFunctions
    from lowkiq_lambda.protocols import ClientMiddleware, Observer, ServerMiddleware
    from lowkiq_lambda.schedules.options import DeclaredOptions
    from lowkiq_lambda.schedules.schedules import Schedules
    from lowkiq_lambda.store.inspect.actions import Actions
    from lowkiq_lambda.store.inspect.duties import DutyState
    from lowkiq_lambda.store.inspect.inspector import Inspector
    from lowkiq_lambda.store.inspect.limits import QueueLimits
    from lowkiq_lambda.store.inspect.queries import Queries
    from lowkiq_lambda.tasks.task import Task
    from lowkiq_lambda.tasks.tasks import Tasks
    from lowkiq_lambda.views import Overview, QueueMetrics, Span, Stats

W = TypeVar("W", bound=type[Worker])
M = TypeVar("M", bound="MappingFunction")
Handler: TypeAlias = Callable[[Any], object]
Flushed = TypeVar("Flushed", bound=Callable[..., Any])


class Lowkiq:
    """One app. Without a config the settings are read from the environment, at first use.

    `clock` is for tests: with one, time is what it says, on the server too.
    """

    _made: ClassVar["WeakSet[Lowkiq]"] = WeakSet()
    _hooks: ClassVar["list[Callable[[Lowkiq], object]]"] = []

    def __init__(self, config: Config | None = None, *, clock: Clock | None = None) -> None:
        self._parts = Parts(config, clock)
        self._queues = QueueRegistry()
        self._duties: dict[str, Duty] = {}
        self._schedules: Schedules | None = None
        self._mapping_functions: MappingFunctions | None = None
        self._tasks: Tasks | None = None
        self._lock = threading.RLock()
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

    @property
    def config(self) -> Config:
        """The settings. Raises ConfigError where the environment has a bad one."""
        return self._parts.config

    def configure(self, **changes: Any) -> None:  # noqa: ANN401 - any setting
        """Change settings, as a command line does, before the first use of Redis. Raises ConfigError."""
        self._parts.configure(**changes)

    @property
    def redis_url(self) -> str:
        """The URL of the server that the app uses; an embedded one runs from then on, until the process ends.

        Raises ConfigError, and EmbeddedServerError where that server does not start.
        """
        return self._parts.url

    @property
    def workers(self) -> list[type[Worker]]:
        """The workers, in order of declaration."""
        return self._queues.workers

    # A worker class can be called too, but the first form that fits counts.
    @overload
    def worker(self, target: W) -> W: ...  # type: ignore[overload-overlap]  # the first that fits
    @overload
    def worker(self, target: Handler) -> FunctionWorker: ...
    @overload
    def worker(self, **options: Unpack[WorkerOptions]) -> Callable[[Handler], FunctionWorker]: ...

    def worker(self, target: Any = None, **options: Any) -> Any:
        """Declare a worker: on a subclass of Worker, or, with a worker's fields as options, on a function.

        Raises DeclarationError where the declaration cannot work.
        """
        return partial(self._bind, options) if target is None else self._bind(options, target)

    def add_duty(self, duty: "Duty") -> None:
        """Have it run once in each period by one of the app's processes: a tick of the dispatcher, or a daemon.

        Raises DeclarationError where the duty cannot work, or the app has one of that name.
        """
        from lowkiq_lambda.duties.duty import check_duty  # noqa: PLC0415 - imported lazily: cold start

        with self._lock:
            check_duty(duty, self._duties)
            self._duties[duty.name] = duty

    @property
    def declared_duties(self) -> "list[Duty]":
        """The duties, in order of declaration."""
        return [*self._duties.values()]

    def duties(self) -> "list[DutyState]":
        """When each duty ran last, what came of it, and when it runs next. Raises BackendError."""
        from lowkiq_lambda.store.inspect.duties import duty_states  # noqa: PLC0415 - imported lazily: cold start

        periods = [(duty.name, duty.every) for duty in self._duties.values()]
        if self.follows_tasks:
            from lowkiq_lambda.tasks.duty import TaskDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((TaskDuty.name, TaskDuty.every))
        states = duty_states(self.backend, self._queues, periods, self.config.retry_for)
        return [*states, *self.schedules.duty_states()] if self.fires_schedules else states

    @property
    def schedules(self) -> "Schedules":
        """The schedule entries: what has been declared, what is made at run time, and what became of it."""
        with self._lock:
            if self._schedules is None:
                from lowkiq_lambda.schedules.schedules import Schedules  # noqa: PLC0415 - imported lazily: cold start

                self._schedules = Schedules(self, self._parts)
            return self._schedules

    @property
    def fires_schedules(self) -> bool:
        """Whether daemons and dispatchers of this app fire schedule entries, as `config.schedules` says."""
        asked = self.config.schedules
        return self.declares_schedules if asked is None else asked

    @property
    def declares_schedules(self) -> bool:
        """Whether the code of this app declares schedule entries."""
        return bool(self._schedules and self._schedules.declared)

    def cron(
        self,
        expression: str,
        worker: "type[Worker] | FunctionWorker",
        *,
        id: "str | int | UUID",
        **options: Unpack["DeclaredOptions"],
    ) -> None:
        """Push a job at the times of a cron expression: five fields, or six with the seconds first.

        `app.cron("0 4 * * *", SyncOrder, id="nightly", tz="Europe/Berlin")`. The job's score is the planned time. A new
        entry fires first at its next planned time. Raises DeclarationError; what only an evaluation shows, `check` of
        `app.schedules` tells.
        """
        from lowkiq_lambda.schedules.times import parse_cron  # noqa: PLC0415 - imported lazily: cold start

        self.schedules.declare(worker, parse_cron(expression, options.get("tz", "UTC")), id, options)

    def every(
        self,
        period: "float | timedelta",
        worker: "type[Worker] | FunctionWorker",
        *,
        id: "str | int | UUID",
        offset: "float | timedelta" = 0.0,
        **options: Unpack["DeclaredOptions"],
    ) -> None:
        """Push a job once in each period (seconds), counted from 1970, `offset` seconds later; no restart moves that.

        Raises DeclarationError.
        """
        from lowkiq_lambda.schedules.times import parse_every  # noqa: PLC0415 - imported lazily: cold start

        self.schedules.declare(worker, parse_every(period, offset, options.get("tz", "UTC")), id, options)

    def at(
        self,
        moment: "datetime | float",
        worker: "type[Worker] | FunctionWorker",
        *,
        id: "str | int | UUID",
        **options: Unpack["DeclaredOptions"],
    ) -> None:
        """Push a job once, ever: at an aware datetime, or Unix seconds. Raises DeclarationError."""
        from lowkiq_lambda.schedules.times import parse_at  # noqa: PLC0415 - imported lazily: cold start

        self.schedules.declare(worker, parse_at(moment, options.get("tz", "UTC")), id, options)

    def entries_from(self, path: "str | Path") -> None:
        """Declare the schedule entries of a TOML file, as if code did. Raises DeclarationError, OSError."""
        self.schedules.declare_from(path)

    @overload
    def ingest(self, target: M) -> M: ...
    @overload
    def ingest(self, target: str) -> Callable[[M], M]: ...

    def ingest(self, target: Any) -> Any:
        """Declare a mapping function: it is given what comes in from outside, and yields workers with jobs for them.

        `@app.ingest` is for all sources; `@app.ingest("orders-*")` for those whose ARN or name fits: that of a queue, a
        table, a bucket, or the `source` of events. The ingest function calls it. Raises DeclarationError.
        """
        return self.mapping_functions.declare(target)

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
        on_complete: "tuple[type[Worker] | FunctionWorker, object] | None" = None,
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

    @property
    def follows_tasks(self) -> bool:
        """Whether there are tasks to look after: this process has made one, or has seen their items in a queue."""
        return bool(self._tasks and self._tasks.has_made_one) or self._parts.has_seen(TASKS)

    def push(self, worker: "type[Worker] | FunctionWorker", jobs: Jobs) -> list[Pushed]:
        """What `perform_async` does: through the client middlewares to Redis."""
        return push_through(self.client_middlewares, self._push, worker_of(worker), jobs)

    def push_or_raise(self, worker: "type[Worker] | FunctionWorker", jobs: Jobs) -> list[Pushed]:
        """As `push`, but Redis has the jobs when this returns: else it raises, whatever `when_unavailable` says.

        For callers that can push again, and must know that they have to.
        """
        return push_through(self.client_middlewares, self.push_past_middlewares, worker_of(worker), jobs)

    def push_past_middlewares(self, worker: type[Worker], jobs: Jobs) -> list[Pushed]:
        """As `push_or_raise`, for jobs that have been through the client middlewares elsewhere."""
        # What this process pushed before, and keeps, goes first.
        if self.flush(0.0):
            raise BackendUnavailable
        return self._parts.push_client(self.queue_of(worker)).push(jobs)

    async def apush(self, worker: "type[Worker] | FunctionWorker", jobs: Jobs) -> list[Pushed]:
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
        if seconds is not None and math.isnan(seconds):
            raise ValueError("seconds must be a number, not nan.")
        return Budget(self._parts.clock, self.config.max_runtime if seconds is None else seconds, **options)

    def _drain(self, budget: Budget) -> dict[str, int]:
        drain = Drain(self.drainer, self.drainer.shards()).run(budget)
        for error in (*drain.exits.values(), *drain.errors.values()):
            raise error
        return dict(drain.counts)

    def stats(self) -> "Stats":
        """How much waits, how much is in the morgue, and the lag, in total and by queue name.

        Raises QueueMismatch, BackendError.
        """
        return self.inspector.stats(self._agreed_shards())

    def metrics(self) -> "dict[str, QueueMetrics]":
        """All that is counted, by queue name. Raises QueueMismatch, BackendError."""
        return self.inspector.metrics(self._agreed_shards())

    def overview(self, span: "Span" = "10m") -> "AbstractContextManager[Overview]":
        """All queues, their recent history, and the servers, in a `with` block: one round trip for each node.

        The queues come one by one, once, and end with the block; until then one of the app's connections is in use.
        Raises BackendError, there and from the queues.
        """
        queues = {name: queue.shards for name, queue in self._queues.items()}
        declarations = [queue.declaration(self.config.codec_name) for queue in self._queues.values()]
        return self.inspector.overview(queues, declarations, span)

    def queries(self, worker: "type[Worker] | FunctionWorker") -> "Queries":
        """The worker's jobs, for people to look at. Raises QueueMismatch, BackendError."""
        return self.inspector.queries(self.queue_of(worker).shards)

    def actions(self, worker: "type[Worker] | FunctionWorker") -> "Actions":
        """The changes that an operator may make to the worker's jobs. Raises QueueMismatch, BackendError."""
        queue = self.queue_of(worker)
        return self.inspector.actions(queue.shards, queue.worker.merge)

    def limits(self, worker: "type[Worker] | FunctionWorker") -> "QueueLimits":
        """The limits of the worker's queue: set at run time, and explained. Raises QueueMismatch, BackendError."""
        queue = self.queue_of(worker)
        return self.inspector.limits(queue.worker, queue.shards)

    def redeclare(self, worker: "type[Worker] | FunctionWorker") -> None:
        """Make an empty queue anew with the `shards_count` and the `merge` that the worker has now.

        For when producers have stopped and everything is drained: whoever still goes by the old ones is refused from
        then on (QueueMismatch). Raises QueueMismatch where jobs are left, the queue was made with another codec, or
        another call came between, and BackendError; what broke off half-way is finished by another call.
        """
        self._queues.of(worker_of(worker)).redeclare(self.backend, self.config.codec_name, self.config.retry_for)
        self.limits(worker).keep()

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

    @property
    def backend(self) -> Backend:
        """The connections that pushes and people's looks go through."""
        return self._parts.backend

    @property
    def inspector(self) -> "Inspector":
        """Reads queues, and changes them, for people."""
        return self._parts.inspector

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queue of each worker by its name, whether Redis agrees with its declaration or not."""
        return self._queues

    def worker_named(self, queue_name: str) -> type[Worker] | None:
        """The worker of the queue; None if the app has no queue of that name."""
        queue = self._queues.get(queue_name)
        return None if queue is None else queue.worker

    def queue_of(self, worker: "type[Worker] | FunctionWorker") -> Queue:
        """The queue of a worker of this app, known to agree with Redis. Raises QueueMismatch, BackendError."""
        queue = self._queues.of(worker_of(worker))
        if not queue.is_agreed:
            queue.ensure_declared(self.backend, self.config.codec_name, self.config.retry_for)
        return queue

    def _agreed_shards(self) -> dict[str, list[ShardRef]]:
        return {worker.queue_name: self.queue_of(worker).shards for worker in self.workers}

    def _look_at_tasks(self, tasks: Collection[bytes], remaining: Callable[[], float]) -> None:
        self.tasks.look_at(tasks, remaining)

    def _push(self, worker: type[Worker], jobs: Jobs) -> list[Pushed]:
        if self.config.when_unavailable != "raise":
            return self._parts.reliable_client(self._queues.of(worker)).push(jobs)
        return self._parts.push_client(self.queue_of(worker)).push(jobs)

    def _bind(self, options: Mapping[str, Any], target: Any) -> Any:  # noqa: ANN401 - a class or a function
        with self._lock:
            declared = register(self, target, options, self.workers)
            worker = worker_of(declared)
            self._queues[worker.queue_name] = Queue(worker, lambda queue_name: reset_advice(self.config, queue_name))
            return declared
