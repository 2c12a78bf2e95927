"""The core of an app: its settings, its queues, its pushes, and its drains. All code below the face takes one.

Private: users write `Lowkiq`, which holds one.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.declare.declaring import check_middlewares, check_together
from lowkiq_lambda.declare.worker import AnyWorker, Worker, worker_of
from lowkiq_lambda.engine.drainer import Drainer, LookAtTasks
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.engine.queue import Queue, QueueRegistry
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.providers.connections import Connections, reset_advice
from lowkiq_lambda.push.middlewares import Jobs, push_through
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import TASKS, key_prefix

if TYPE_CHECKING:
    from lowkiq_lambda.declare.duty import Duty
    from lowkiq_lambda.push.clients import PushClients
    from lowkiq_lambda.settings.protocols import ClientMiddleware, Observer, ServerMiddleware, StartDrain
    from lowkiq_lambda.store.shard.waking import Waker

SPARE_CONNECTIONS: Final = 3
"""Beside one for each drain thread: for the thread that renews leases, for probes, and at the stop."""
Part = TypeVar("Part")
Item = TypeVar("Item")


class ListOfCore(Generic[Item]):
    """A list of the core as an attribute of the app: assigning to it replaces the items."""

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, app: Any, _owner: type) -> list[Item]:  # noqa: ANN401 - the app, a class above this module
        items: list[Item] = getattr(app.core, self._name)
        return items

    def __set__(self, app: Any, items: Iterable[Item]) -> None:  # noqa: ANN401 - as above
        getattr(app.core, self._name)[:] = items


class Core:
    """What code needs of an app. `look_at_tasks` is told of tasks that may be complete; `clock` is for tests."""

    def __init__(self, config: Config | None, clock: Clock | None, look_at_tasks: LookAtTasks) -> None:
        self.server_middlewares: list[ServerMiddleware] = []
        self.client_middlewares: list[ClientMiddleware] = []
        self.observers: list[Observer] = []
        self.before_answer: list[Callable[[float], object]] = []
        """Called with the seconds that they may take before a function on Lambda answers, as it is frozen then."""
        self.duties: Final[dict[str, Duty]] = {}
        """The duties that the app has been given, by name."""
        self.declares_schedules = False
        """Whether the code of this app declares schedule entries."""
        self.look_at_tasks = look_at_tasks
        self.connections = Connections(config, clock)
        self._parts: dict[Callable[[Core], Any], Any] = {}
        self._registries: dict[Callable[[], Any], Any] = {}
        self._queues = QueueRegistry()
        self._lock = threading.RLock()

    @property
    def config(self) -> Config:
        """The settings. Raises ConfigError for a bad one in the environment."""
        return self.connections.config

    def configure(self, **changes: Any) -> None:  # noqa: ANN401 - any setting
        """Change settings, as a command line does, before the first use of Redis. Raises ConfigError."""
        self.connections.configure(**changes)
        for queue in self._queues.values():
            queue.forget_shards()

    @property
    def clock(self) -> Clock:
        """What drains and duties go by."""
        return self.connections.clock

    @property
    def backend(self) -> Backend:
        """The connections that pushes and operators' requests share."""
        return self.connections.backend

    @property
    def redis_url(self) -> str:
        """The URL of the server that the app uses; an embedded one runs from then on, until the process ends.

        For a client that the caller passed, the address of that client's server, without a password.

        Raises ConfigError, and EmbeddedServerError if that server does not start.
        """
        return self.connections.url

    def part(self, make: "Callable[[Core], Part]") -> Part:
        """What `make` returned at its first call: one for as long as the app has these settings and connections."""
        try:
            part: Part = self._parts[make]
        except KeyError:
            with self._lock:
                if make not in self._parts:
                    self._parts[make] = make(self)
                part = self._parts[make]
        return part

    def registry(self, make: Callable[[], Part]) -> Part:
        """What `make` returned at its first call: one for as long as the app lives, as declarations are."""
        with self._lock:
            if make not in self._registries:
                self._registries[make] = make()
            registry: Part = self._registries[make]
            return registry

    # Queues

    def add(self, worker: type[Worker[Any]]) -> None:
        """Give the worker its queue."""
        with self._lock:
            self._queues[worker.queue_name] = Queue(worker, self._codec, self._prefix, self.advice)

    @property
    def workers(self) -> list[type[Worker[Any]]]:
        """The workers, in order of declaration."""
        return self._queues.workers

    @property
    def queues(self) -> QueueRegistry:
        """The queue of each worker by its name, whether Redis agrees with its declaration or not."""
        return self._queues

    def worker_named(self, queue_name: str) -> type[Worker[Any]] | None:
        """The worker of the queue; None if the app has no queue of that name."""
        queue = self._queues.get(queue_name)
        return None if queue is None else queue.worker

    def declared_queue(self, worker: AnyWorker) -> Queue:
        """The queue of a worker of this app, whether Redis agrees with it or not. Raises DeclarationError."""
        return self._queues.of(worker_of(worker))

    def queue_of(self, worker: AnyWorker) -> Queue:
        """The queue of a worker of this app, known to agree with Redis. Raises QueueMismatch, BackendError."""
        queue = self._queues.of(worker_of(worker))
        if not queue.is_agreed:
            queue.ensure_declared(self.backend, self.config.redis_retry_for)
        return queue

    def current_queue_of(self, worker: AnyWorker) -> Queue:
        """As `queue_of`, for readers: a queue that has been resharded has the shards that it has now."""
        queue = self._queues.of(worker_of(worker))
        queue.look_again(self.backend, self.config.redis_retry_for)
        return queue

    def current_queues(self) -> tuple[dict[str, Queue], dict[str, str]]:
        """All queues, for readers: those that Redis agrees with, and why it does not with the others, by name.

        One round trip, however many there are. Raises BackendError.
        """
        refused = self._queues.look_again(self.backend, self.config.redis_retry_for)
        return {name: queue for name, queue in self._queues.items() if name not in refused}, refused

    def advice(self, queue_name: str) -> str | None:
        """How to remove the queue if it has another declaration; None on a server whose jobs may matter."""
        return reset_advice(self.config, queue_name)

    # Pushes

    def push_many(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """Push jobs through the client middlewares, as `when_unavailable` says."""
        return push_through(self.client_middlewares, self._push, worker_of(worker), jobs)

    def push_or_raise(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """As `push_many`, but Redis has the jobs when this returns: else it raises, whatever `when_unavailable` says.

        For callers that can push again, and must know that they have to.
        """
        return push_through(self.client_middlewares, self.push_past_middlewares, worker_of(worker), jobs)

    def push_past_middlewares(self, worker: type[Worker[Any]], jobs: Jobs) -> list[Pushed]:
        """As `push_or_raise`, for jobs that have been through the client middlewares elsewhere."""
        # The jobs that this process buffered before go first.
        if self.flush(0.0):
            raise BackendUnavailable
        return self.push_clients.of(self.queue_of(worker)).push(jobs)

    async def apush_many(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """`push_many` in a thread, beside the event loop. If cancelled, the push goes on, and its result is lost."""
        return await self.push_clients.threads.run(partial(self.push_many, worker, list(jobs)))

    def flush(self, seconds: float) -> int:
        """Write the jobs that are buffered in this process; how many are left after so many seconds."""
        redelivery = self._redelivery
        return redelivery.flush(seconds) if redelivery else 0

    def give_up_pushes(self) -> None:
        """Hand to `on_lost` the jobs that are buffered: for a process that ends at once, without its exit handlers."""
        if redelivery := self._redelivery:
            redelivery.give_up()

    @property
    def push_clients(self) -> "PushClients":
        """The clients that push to the queues."""
        return self.part(_push_clients)

    @property
    def waker(self) -> "Waker | None":
        """Starts drains of shards that jobs are pushed to, if the settings ask for it; it knows which it has woken."""
        return self.part(_waker)

    # Drains

    @property
    def drainer(self) -> Drainer:
        """Makes visits to shards; middlewares and observers count as of its first use."""
        return self.part(_drainer)

    def loop(self) -> Loop:
        """A drain of all shards, not yet begun."""
        return Loop(self.drainer, self.drainer.shards)

    def drop_drainer(self) -> None:
        """Make the next drain start as that of another process does, without what earlier drains have learned."""
        with self._lock:
            drainer: Drainer | None = self._parts.pop(_drainer, None)
        if drainer:
            drainer.end()

    @property
    def fires_schedules(self) -> bool:
        """Whether daemons and ticks of this app fire schedule entries, as `config.schedules` says."""
        setting = self.config.schedules
        return self.declares_schedules if setting is None else setting

    @property
    def follows_tasks(self) -> bool:
        """Whether there are tasks to look after: this process has made one, or has seen their items in a queue."""
        return self.connections.has_made_task or self.connections.uses(TASKS)

    @property
    def follows_moves(self) -> bool:
        """Whether a queue is on its way to another number of shards, as far as this process knows."""
        return any(queue.shards.layout.is_moving for queue in self._queues.values())

    # Tests

    @contextmanager
    def rebound(
        self, config: Config, clock: Clock | None = None, *, new_backend: "Callable[..., Backend]" = Backend
    ) -> Iterator[None]:
        """The app has other settings, another server and another clock, until the block ends.

        Workers, schedule entries, middlewares and observers stay. Connections opened before wait, and are used
        again afterwards; those opened in the block are closed at its end. `new_backend` makes the connections' face.
        """
        others = Connections(config, clock, new_backend)
        before = self._swap(others, {}, {name: queue.anew() for name, queue in self._queues.items()})
        try:
            yield
        finally:
            if _push_clients in self._parts:
                self.push_clients.end()
            self.drop_drainer()
            others.close()
            added = {name: queue.anew() for name, queue in self._queues.items() if name not in before[2]}
            self._swap(before[0], before[1], before[2] | added)

    def _swap(
        self, connections: Connections, parts: dict[Any, Any], queues: Mapping[str, Queue]
    ) -> tuple[Connections, dict[Any, Any], dict[str, Queue]]:
        with self._lock:
            before = self.connections, self._parts, dict(self._queues)
            self.connections, self._parts = connections, parts
            self._queues.update(queues)
            self._queues.remote.clear()
            for queue in queues.values():
                queue.note_shards()
        return before

    def _codec(self) -> str:
        return self.config.codec_name

    def _prefix(self) -> str:
        return key_prefix(self.config.namespace)

    @property
    def _redelivery(self) -> Any:  # noqa: ANN401 - a Redelivery, which no push without a buffer imports
        return self.push_clients.redelivery if _push_clients in self._parts else None

    def _push(self, worker: type[Worker[Any]], jobs: Jobs) -> list[Pushed]:
        if self.config.when_unavailable != "raise":
            return self.push_clients.reliable(self._queues.of(worker)).push(jobs)
        return self.push_clients.of(self.queue_of(worker)).push(jobs)


def _push_clients(core: Core) -> "PushClients":
    from lowkiq_lambda.push.clients import PushClients  # noqa: PLC0415 - drains that push nothing start without it

    return PushClients(core.connections, core.waker)


def _waker(core: Core) -> "Waker | None":
    if core.config.start_drain is None and core.config.wake_function is None:
        return None
    from lowkiq_lambda.store.shard.waking import WINDOW, Waker  # noqa: PLC0415 - imported lazily: cold start

    return Waker(core.backend, core.config.start_drain or _lambda_starter(core.config), WINDOW)


def _lambda_starter(config: Config) -> "StartDrain":
    from lowkiq_lambda.providers.aws.waking import LambdaStarter  # noqa: PLC0415 - imported lazily: needs an extra

    return LambdaStarter(str(config.wake_function))


def _drainer(core: Core) -> Drainer:
    check_middlewares(core.server_middlewares, core.workers)
    check_together(core.workers)
    config = core.config
    backend = core.connections.open(config.threads_per_node + SPARE_CONNECTIONS, config.lease_timeout)
    drainer = Drainer(config, core.clock, backend, core.queues, core.server_middlewares)
    drainer.observers = core.observers
    drainer.look_at_tasks = core.look_at_tasks
    return drainer
