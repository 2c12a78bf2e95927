"""The core of an app: its settings, its queues, its pushes, and its drains. All code below the face takes one.

Private: users write `Lowkiq`, which holds one.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.declare.declaring import check_middlewares, check_together
from lowkiq_lambda.engine.queue import Queue, QueueRegistry
from lowkiq_lambda.providers.connections import Connections, reset_advice
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import TASKS, ShardRef, key_prefix

if TYPE_CHECKING:
    from lowkiq_lambda.declare.duty import Duty
    from lowkiq_lambda.engine.drainer import Drainer, LookAtTasks
    from lowkiq_lambda.engine.loop import Loop
    from lowkiq_lambda.push.clients import PushClients
    from lowkiq_lambda.push.pushes import Pushes
    from lowkiq_lambda.settings.protocols import Observer, ServerMiddleware, StartDrain
    from lowkiq_lambda.store.shard.waking import Waker

SPARE_CONNECTIONS: Final = 3
"""Beside one for each drain thread: for the thread that renews leases, for probes, and at the stop."""
Part = TypeVar("Part")
Item = TypeVar("Item")


class ListOfCore(Generic[Item]):
    """A list of a group of the core as an attribute of the app: assigning to it replaces the items."""

    def __init__(self, group: str, name: str) -> None:
        self._group = group
        self._name = name

    def __get__(self, app: Any, _owner: type) -> list[Item]:  # noqa: ANN401 - the class Lowkiq, which imports this module
        items: list[Item] = getattr(getattr(app.core, self._group), self._name)
        return items

    def __set__(self, app: Any, items: Iterable[Item]) -> None:  # noqa: ANN401 - as above
        self.__get__(app, type(app))[:] = items


class Core:
    """All that code needs of an app. `look_at_tasks` is told of tasks that may be complete; `clock` is for tests."""

    def __init__(self, config: Config | None, clock: Clock | None, look_at_tasks: "LookAtTasks") -> None:
        self.connections = Connections(config, clock)
        self.queues: Final = QueueRegistry(
            lambda: (self.backend, self.config.redis_retry_for),
            codec=lambda: self.config.codec_name,
            prefix=lambda: key_prefix(self.config.namespace),
            advice=lambda queue_name: reset_advice(self.config, queue_name),
        )
        self.drains: Final = Drains(self, look_at_tasks)
        self.housekeeping: Final = Housekeeping(self)
        self._parts: dict[Callable[[Core], Any], Any] = {}
        self._registries: dict[Callable[[], Any], Any] = {}
        self._lock = threading.RLock()

    @property
    def config(self) -> Config:
        """The settings. Raises ConfigError for a bad one in the environment."""
        return self.connections.config

    def configure(self, **changes: Any) -> None:  # noqa: ANN401 - any setting
        """Change settings, as a command line does, before the first use of Redis. Raises ConfigError."""
        self.connections.configure(**changes)
        for queue in self.queues.values():
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
    def pushes(self) -> "Pushes":
        """The pushes of the app, made at the first use: most drains push nothing."""
        return self.registry(self._make_pushes)

    @property
    def has_pushed(self) -> bool:
        """Whether this process has clients that push, with jobs of which some may be buffered."""
        return self.made_part(_push_clients) is not None

    def _make_pushes(self) -> "Pushes":
        from lowkiq_lambda.push.pushes import Pushes  # noqa: PLC0415 - imported lazily: cold start

        return Pushes(
            self.queues,
            lambda: self.config,
            clients=lambda: self.part(_push_clients),
            made_clients=lambda: self.made_part(_push_clients),
            waker=lambda: self.part(_waker),
        )

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

    def made_part(self, make: "Callable[[Core], Part]") -> "Part | None":
        """As `part`, but None where nobody has asked for it yet."""
        part: Part | None = self._parts.get(make)
        return part

    def registry(self, make: Callable[[], Part]) -> Part:
        """What `make` returned at its first call: one for as long as the app lives, as declarations are."""
        if make not in self._registries:
            with self._lock:
                if make not in self._registries:
                    self._registries[make] = make()
        registry: Part = self._registries[make]
        return registry

    @contextmanager
    def rebound(
        self, config: Config, clock: Clock | None = None, *, new_backend: "Callable[..., Backend]" = Backend
    ) -> Iterator[None]:
        """For tests: the app has other settings, another server and another clock, until the block ends.

        Workers, schedule entries, middlewares and observers stay. Connections opened before wait, and are used
        again afterwards; those opened in the block are closed at its end. `new_backend` makes the connections' face.
        """
        others = Connections(config, clock, new_backend)
        before = self._swap(others, {}, {name: queue.anew() for name, queue in self.queues.items()})
        try:
            yield
        finally:
            if self.has_pushed:
                self.pushes.end()
            self.drains.drop()
            others.close()
            added = {name: queue.anew() for name, queue in self.queues.items() if name not in before[2]}
            self._swap(before[0], before[1], before[2] | added)

    def forget_part(self, make: "Callable[[Core], Part]") -> "Part | None":
        """Make it anew at the next use; the one that there was."""
        with self._lock:
            part: Part | None = self._parts.pop(make, None)
        return part

    def _swap(
        self, connections: Connections, parts: dict[Any, Any], queues: Mapping[str, Queue]
    ) -> tuple[Connections, dict[Any, Any], dict[str, Queue]]:
        with self._lock:
            before = self.connections, self._parts, dict(self.queues)
            self.connections, self._parts = connections, parts
            self.queues.update(queues)
            self.queues.remote.clear()
            for queue in queues.values():
                queue.note_shards()
        return before


class Drains:
    """The drains of one app."""

    def __init__(self, core: Core, look_at_tasks: "LookAtTasks") -> None:
        self.middlewares: list[ServerMiddleware] = []
        self.observers: list[Observer] = []
        self.before_answer: list[Callable[[float], object]] = []
        """Called with the seconds that they may take before a function on Lambda answers, as it is frozen then."""
        self.look_at_tasks: Final = look_at_tasks
        self._core = core

    @property
    def drainer(self) -> "Drainer":
        """Makes visits to shards; middlewares and observers count as of its first use."""
        return self._core.part(_drainer)

    @property
    def has_seen_late(self) -> bool:
        """Whether an id that this process has drained had waited for long."""
        drainer = self._core.made_part(_drainer)
        return drainer is not None and drainer.history.has_seen_late

    def loop(self, select: "Callable[[], Sequence[ShardRef]] | None" = None, *, at_once: int = 1) -> "Loop":
        """A drain of all shards, or of those that `select` returns, not yet begun; `at_once`: visits at the same time.

        With `burst_after` it leaves to daemons what has not waited for so long.
        """
        drainer, after = self.drainer, self._core.config.burst_after
        if after:
            from lowkiq_lambda.engine.burst import BurstLoop  # noqa: PLC0415 - only where it is asked for

            return BurstLoop(drainer, select or drainer.shards, after=after, at_once=at_once)
        from lowkiq_lambda.engine.loop import Loop  # noqa: PLC0415 - imported lazily: cold start

        return Loop(drainer, select or drainer.shards, at_once=at_once)

    def drop(self) -> None:
        """Make the next drain start as that of another process does, without what earlier drains have learned."""
        if drainer := self._core.forget_part(_drainer):
            drainer.end()


class Housekeeping:
    """The duties of one app, and which of the library's own duties it needs."""

    def __init__(self, core: Core) -> None:
        self.duties: Final[dict[str, Duty]] = {}
        """The duties that the app has been given, by name."""
        self.declares_schedules = False
        """Whether the code of this app declares schedule entries."""
        self._core = core

    @property
    def fires_schedules(self) -> bool:
        """Whether daemons and ticks of this app fire schedule entries, as `config.schedules` says."""
        setting = self._core.config.schedules
        return self.declares_schedules if setting is None else setting

    @property
    def verifies(self) -> bool:
        """Whether housekeeping verifies the queues by their journals."""
        return self._core.config.verify > 0

    @property
    def watches(self) -> bool:
        """Whether housekeeping keeps how each minute was: with a history, or once this process saw a queue late."""
        return self._core.config.history_days > 0 or self._core.drains.has_seen_late or self.follows_auto

    @property
    def follows_auto(self) -> bool:
        """Whether a queue of the app leaves its count of shards to the library, which is to look after it."""
        return self._core.config.auto != "off" and any(
            not isinstance(worker.shards_count, int) for worker in self._core.queues.workers
        )

    @property
    def alerts(self) -> bool:
        """Whether daemons tell of what needs somebody."""
        return self._core.config.alert is not None

    @property
    def follows_tasks(self) -> bool:
        """Whether there are tasks to look after: this process has made one, or has seen their items in a queue."""
        return self._core.connections.has_made_task or self._core.connections.uses(TASKS)

    @property
    def follows_moves(self) -> bool:
        """Whether a queue is on its way to another number of shards, as far as this process knows."""
        return any(queue.shards.layout.is_moving for queue in self._core.queues.values())


def _push_clients(core: Core) -> "PushClients":
    from lowkiq_lambda.push.clients import PushClients  # noqa: PLC0415 - imported lazily: cold start

    return PushClients(core.connections, core.pushes.waker, lambda: core.drains.observers)


def _waker(core: Core) -> "Waker | None":
    function = core.config.wake_function
    if function is None:
        return None
    from lowkiq_lambda.store.shard.waking import WINDOW, Waker  # noqa: PLC0415 - imported lazily: cold start

    return Waker(core.backend, _lambda_starter(function) if isinstance(function, str) else function, WINDOW)


def _lambda_starter(function: str) -> "StartDrain":
    from lowkiq_lambda.providers.aws.waking import LambdaStarter  # noqa: PLC0415 - imported lazily: needs an extra

    return LambdaStarter(function)


def _drainer(core: Core) -> "Drainer":
    from lowkiq_lambda.engine.drainer import Drainer  # noqa: PLC0415 - imported lazily: cold start

    check_middlewares(core.drains.middlewares, core.queues.workers)
    check_together(core.queues.workers)
    config = core.config
    backend = core.connections.open(config.threads_per_node + SPARE_CONNECTIONS, config.lease_timeout)
    drainer = Drainer(config, core.clock, backend, core.queues, core.drains.middlewares)
    drainer.observers = core.drains.observers
    drainer.look_at_tasks = core.drains.look_at_tasks
    return drainer
