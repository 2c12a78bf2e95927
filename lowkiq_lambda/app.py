"""The face of the library: declares workers, schedules and ways in, pushes, drains, and opens the rest."""

import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, Unpack, overload
from weakref import WeakSet

from msgspec import UNSET

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.core import Core, ListOfCore
from lowkiq_lambda.declare.declaring import check_queue_name, register
from lowkiq_lambda.declare.pushable import AnyWorker, FunctionWorker, P, one_job
from lowkiq_lambda.declare.worker import Worker, worker_of
from lowkiq_lambda.engine.budget import budget_for
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.protocols import ClientMiddleware, Jobs, Observer, ServerMiddleware

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from datetime import datetime, timedelta
    from pathlib import Path
    from uuid import UUID

    from lowkiq_lambda.declare.duty import Duty
    from lowkiq_lambda.declare.ingest import MappingFunction
    from lowkiq_lambda.declare.options import Id, JobOptions, WorkerOptions
    from lowkiq_lambda.engine.batch import Batch
    from lowkiq_lambda.jobs.debounce import Debounce
    from lowkiq_lambda.jobs.limiting import Limit
    from lowkiq_lambda.limiters.limiter import Limiter
    from lowkiq_lambda.operate.operations import Operations
    from lowkiq_lambda.push.remote import RemoteWorker
    from lowkiq_lambda.schedules.entry import DeclaredOptions
    from lowkiq_lambda.schedules.schedules import Schedules
    from lowkiq_lambda.tasks.making import TaskOptions
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


class Lowkiq:
    """One app. Without a config the settings are read from the environment, at first use.

    `clock` is for tests: with one, time is what it says, on the server too.
    """

    server_middlewares = ListOfCore[ServerMiddleware]("drains", "middlewares")
    """Around each batch; the first is outermost."""
    client_middlewares = ListOfCore[ClientMiddleware]("pushes", "middlewares")
    """Around each push; the first is outermost."""
    before_answer = ListOfCore[Callable[[float], object]]("drains", "before_answer")
    """Called with the seconds that each may take, before a function on Lambda answers: it is frozen then."""
    observers = ListOfCore[Observer]("drains", "observers")
    """Told of each settling, once Redis has acknowledged it; what one raises is logged, and stops nothing."""

    def __init__(self, config: Config | None = None, *, clock: Clock | None = None) -> None:
        self.core: Final = Core(config, clock, self._look_at_tasks)
        """What code below the face needs; private."""
        self._schedules: Schedules | None = None
        self._lock = threading.RLock()
        _made.add(self)
        for hook in _hooks:
            hook(self)

    @property
    def config(self) -> Config:
        """The settings. Raises ConfigError for a bad one in the environment."""
        return self.core.config

    @property
    def workers(self) -> list[type[Worker[Any]]]:
        """The workers, in order of declaration."""
        return self.core.queues.workers

    # A worker class can be called too, but the first form that fits counts.
    @overload
    def worker(self, target: W) -> W: ...  # type: ignore[overload-overlap]  # the first that fits
    @overload
    def worker(self, target: "Callable[[Batch[P]], object]") -> FunctionWorker[P]: ...
    @overload
    def worker(self, target: Handler) -> FunctionWorker: ...
    @overload
    def worker(self, **options: Unpack["WorkerOptions"]) -> "WorkerDecorator": ...

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
        """Declare a mapping function: it takes an incoming record, and yields workers with jobs for them.

        `@app.ingest` is for all sources; `@app.ingest("orders-*")` for those whose ARN or name fits: that of a queue, a
        table, a bucket, or the `source` of events. `via` is the ARN or the name of an SQS queue, or a pattern, if
        notifications of S3 come by that queue, too: any sender with access to the queue can claim any object.
        The ingest function calls it. Raises DeclarationError.
        """
        from lowkiq_lambda.declare.ingest import MappingFunctions  # noqa: PLC0415 - imported lazily: cold start

        return self.core.registry(MappingFunctions).declare(target, via)

    def inbox(self, pattern: str, *, queues: "Collection[str] | None" = None) -> None:
        """Declare a queue of SQS of yours an inbox, as `SqsInbox` sends to: its messages may name any queue of the app.

        `pattern` is its ARN or name; `*` and `?` stand for any letters. `queues` are the names of the app's queues that
        its messages may name. The inbox of the template is one without this. Raises DeclarationError.
        """
        from lowkiq_lambda.declare.ingest import Inboxes  # noqa: PLC0415 - imported lazily: cold start

        self.core.registry(Inboxes).declare(pattern, queues)

    def cron(
        self,
        expression: str,
        worker: AnyWorker,
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

        self.schedules.declare(worker, lambda: parse_cron(expression, options.get("tz", UNSET)), id, options)

    def every(
        self,
        period: "float | timedelta",
        worker: AnyWorker,
        *,
        id: "str | int | UUID",
        offset: "float | timedelta" = 0.0,
        **options: Unpack["DeclaredOptions"],
    ) -> None:
        """Push a job once in each period (seconds), counted from 1970, `offset` seconds later; no restart moves that.

        Raises DeclarationError.
        """
        from lowkiq_lambda.schedules.times import parse_every  # noqa: PLC0415 - imported lazily: cold start

        self.schedules.declare(worker, lambda: parse_every(period, offset, options.get("tz", "UTC")), id, options)

    def at(
        self,
        moment: "datetime | float",
        worker: AnyWorker,
        *,
        id: "str | int | UUID",
        **options: Unpack["DeclaredOptions"],
    ) -> None:
        """Push a job once, ever: at an aware datetime, or Unix seconds. Raises DeclarationError."""
        from lowkiq_lambda.schedules.times import parse_at  # noqa: PLC0415 - imported lazily: cold start

        self.schedules.declare(worker, lambda: parse_at(moment, options.get("tz", "UTC")), id, options)

    def entries_from(self, path: "str | Path") -> None:
        """Declare the schedule entries of a TOML file, as if code did. Raises DeclarationError, OSError."""
        self.schedules.declare_from(path)

    def add_duty(self, duty: "Duty") -> None:
        """Have it run once in each period by one of the app's processes: a tick, or a daemon.

        Raises DeclarationError where the duty cannot work, or the app has one of that name.
        """
        from lowkiq_lambda.declare.duty import check_duty  # noqa: PLC0415 - imported lazily: cold start

        with self._lock:
            check_duty(duty, self.core.housekeeping.duties)
            self.core.housekeeping.duties[duty.name] = duty

    def push_many(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """Queue jobs, through the client middlewares; what `push_many` of the worker does."""
        return self.core.pushes.push_many(worker, jobs)

    async def apush_many(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """`push_many` beside the event loop. If cancelled, the push still completes, but its result is lost."""
        return await self.core.pushes.apush_many(worker, jobs)

    def push(self, worker: AnyWorker, id: "Id", payload: object = UNSET, **options: Unpack["JobOptions"]) -> Pushed:
        """Queue one job; what `push` of the worker does."""
        return self.core.pushes.push_many(worker, [one_job(id, payload, options)])[0]

    async def apush(
        self, worker: AnyWorker, id: "Id", payload: object = UNSET, **options: Unpack["JobOptions"]
    ) -> Pushed:
        """`push` beside the event loop."""
        return (await self.core.pushes.apush_many(worker, [one_job(id, payload, options)]))[0]

    def remote(self, queue_name: str, *, debounce: "Debounce | None" = None) -> "RemoteWorker":
        """A worker that another program declares, to push to by the name of its queue: docs/push.md.

        Its first push reads from Redis how the queue was made, and raises NoSuchQueue where nobody has made it.
        Payloads are JSON, and nobody here checks their type. `debounce` is what the worker declares, if it does.
        Raises DeclarationError for what no queue can be called.
        """
        from lowkiq_lambda.push.remote import RemoteWorker  # noqa: PLC0415 - only where it is asked for

        check_queue_name(queue_name, "The name of a queue")
        return RemoteWorker(self.core, queue_name, debounce)

    def task(
        self,
        name: str,
        on_complete: "tuple[AnyWorker, object] | None" = None,
        expires_in: "float | timedelta | None" = None,
        **options: Unpack["TaskOptions"],
    ) -> "Task":
        """A new task: jobs pushed through it are followed together, as items.

        `on_complete`: a worker of this app and a payload; a job with the task's id and that payload is pushed once all
        items have ended. `on_success`: the same once all have also ended well, as done, merged or superseded.
        `on_failure`: the same the first time that an item fails, dies or is lost. `expires_in`: for how long it is kept
        after its completion (seconds; default `task_max_age`). With `keep_params=True` items keep the first KiB of
        their payloads.
        Raises DeclarationError, JobError, BackendError.
        """
        return self.tasks.new(name, on_complete, expires_in, **options)

    def limiter(self, name: str, limit: "Limit | None" = None, *, strict: bool = False) -> "Limiter":
        """A limit that handlers ask while they run, as of an API key: docs/limits.md.

        `app.limiter("stripe", Rate(100, per=1))` declares it; without a limit, the one that was declared. With `strict`
        free points are kept for a second for the job whose turn it is. Raises DeclarationError.
        """
        from lowkiq_lambda.limiters.limiter import Limiters  # noqa: PLC0415 - only where it is asked for

        return self.core.registry(Limiters).declare(self.core, name, limit, strict=strict)

    def flush(self, seconds: float = 5.0) -> int:
        """Write the jobs that wait in this process for Redis; how many are left after so many seconds.

        Jobs wait where the settings say `when_unavailable="buffer"`. The last attempt is not broken off, so this may
        take `redis_timeout` longer.
        """
        return self.core.pushes.flush(seconds) if self.core.has_pushed else 0

    def flushes(self, handler: Flushed) -> Flushed:
        """Around a handler on Lambda, where a frozen process delivers nothing: flush before it returns or raises.

        It raises NotFlushed where jobs are left then, unless the handler has raised.
        """
        from lowkiq_lambda.push.flushing import flushing  # noqa: PLC0415 - only where it is asked for

        return flushing(self.flush, handler)

    def drain(self, seconds: float | None = None) -> dict[str, int]:
        """Perform what is due, here and now, until nothing is or `seconds` (default `visit_seconds`) are over.

        Returns how many ids had each outcome that docs/glossary.md explains: done, retried, dead, blocked, rejected,
        returned, suspected, later. Also failed, the sum of retried, dead and blocked; checkpointed, those of later
        whose cursor had moved; and recovered, which a dead holder had left.

        Raises ValueError for NaN; RuntimeError on the thread of the loop on which coroutine handlers of the app run;
        KeyboardInterrupt at once; and when the other shards are drained BackendError, QueueMismatch, or what a handler
        exited with (SystemExit).
        """
        if self.core.drains.drainer.is_on_handlers_loop():
            from lowkiq_lambda.engine.event_loop import WOULD_WAIT  # noqa: PLC0415 - imported lazily: cold start

            raise RuntimeError(WOULD_WAIT)
        return self.core.drains.loop().run(budget_for(self.core.clock, seconds, self.config)).totals()

    async def adrain(self, seconds: float | None = None) -> dict[str, int]:
        """As `drain`, for code on an event loop: the loop goes on meanwhile, and coroutine handlers run on it.

        `seconds` ends it as it ends `drain`: what runs then comes to its end. Where it is cancelled, what runs is
        cancelled, and its end is waited for.
        """
        from lowkiq_lambda.engine.event_loop import drain_beside  # noqa: PLC0415 - imported lazily: cold start

        cancelled = threading.Event()
        budget = budget_for(self.core.clock, seconds, self.config, stopping=cancelled.is_set)
        budget.is_cancelled = cancelled.is_set
        return await drain_beside(lambda: self.core.drains.loop().run(budget).totals(), cancelled.set)

    def use_loop(self, loop: "AbstractEventLoop | None") -> None:
        """Run coroutine handlers on this event loop, which runs in another thread; None: on a loop of the app.

        For handlers that share loop-bound objects with other code. Handlers that run already end on their first loop.
        `adrain` uses its caller's loop in any case. Raises TypeError for an object that is not an event loop.
        """
        self.core.drains.drainer.slot_pool.loop.use(loop)

    @property
    def operate(self) -> "Operations":
        """What operators see of the queues, and do to them."""
        from lowkiq_lambda.operate.operations import Operations  # noqa: PLC0415 - no push or drain has a use for it

        return Operations(self.core, lambda: self.schedules)

    @property
    def schedules(self) -> "Schedules":
        """The schedule entries: what has been declared, what is made at run time, and what became of it."""
        with self._lock:
            if self._schedules is None:
                from lowkiq_lambda.schedules.schedules import Schedules  # noqa: PLC0415 - imported lazily: cold start

                self._schedules = Schedules(self.core)
            return self._schedules

    @property
    def tasks(self) -> "Tasks":
        """The tasks: found by their ids, and listed."""
        from lowkiq_lambda.tasks.tasks import Tasks  # noqa: PLC0415 - imported lazily: cold start

        return self.core.part(Tasks)

    def _look_at_tasks(self, tasks: Collection[bytes], remaining: Callable[[], float]) -> None:
        self.tasks.look_at(tasks, remaining)

    def _bind(self, options: Mapping[str, Any], target: Any) -> Any:  # noqa: ANN401 - a class or a function
        with self._lock:
            declared = register(self, target, options, self.workers)
            self.core.queues.add(worker_of(declared))
            return declared


_made: Final["WeakSet[Lowkiq]"] = WeakSet()
_hooks: Final[list[Callable[[Lowkiq], object]]] = []


def for_each_app(hook: Callable[[Lowkiq], object]) -> None:
    """Call the hook with each app of the process, now and later: for instruments that do not know the apps."""
    _hooks.append(hook)
    for app in list(_made):
        hook(app)


def no_longer_for_each_app(hook: Callable[[Lowkiq], object]) -> None:
    """Leave the apps that are made from now on alone."""
    _hooks.remove(hook)
