"""What every part of an app goes by: its settings, its queues, and the connections."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.config import Config
from lowkiq_lambda.engine.queue import Queue, QueueRegistry
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import TASKS
from lowkiq_lambda.wiring import Parts, reset_advice
from lowkiq_lambda.worker import FunctionWorker, Worker, worker_of

if TYPE_CHECKING:
    from lowkiq_lambda.gather import Gather
    from lowkiq_lambda.schedules.schedules import Schedules
    from lowkiq_lambda.store.inspect.inspector import Inspector
    from lowkiq_lambda.tasks.tasks import Tasks


class AppCore:
    """The settings and the queues of an app; `Lowkiq` is the whole of it."""

    def __init__(self, config: Config | None, clock: Clock | None) -> None:
        self._parts = Parts(config, clock)
        self._schedules: Schedules | None = None
        self._queues = QueueRegistry()
        self._tasks: Tasks | None = None
        self._lock = threading.RLock()

    @property
    def config(self) -> Config:
        """The settings. Raises ConfigError where the environment has a bad one."""
        return self._parts.config

    @property
    def reads_environment(self) -> bool:
        """Whether its settings are those of the environment, as it was given none."""
        return self._parts.reads_environment

    def configure(self, **changes: Any) -> None:  # noqa: ANN401 - any setting
        """Change settings, as a command line does, before the first use of Redis. Raises ConfigError."""
        self._parts.configure(**changes)

    @contextmanager
    def rebound(
        self, config: Config, clock: Clock | None = None, *, new_backend: "Callable[..., Backend]" = Backend
    ) -> Iterator[Self]:
        """The app with other settings, another server and another clock, until the block ends; for tests.

        Workers, schedule entries, middlewares and observers stay. What was opened before waits, and is used again
        afterwards; what is opened in the block is closed at its end. `new_backend` makes the connections' face.
        """
        others = Parts(config, clock, new_backend)
        before = self._swap(others, None, {name: queue.anew() for name, queue in self._queues.items()})
        try:
            yield self
        finally:
            others.close()
            added = {name: queue.anew() for name, queue in self._queues.items() if name not in before[2]}
            self._swap(before[0], before[1], before[2] | added)

    def _swap(
        self, parts: Parts, tasks: "Tasks | None", queues: Mapping[str, Queue]
    ) -> "tuple[Parts, Tasks | None, dict[str, Queue]]":
        with self._lock:
            before = self._parts, self._tasks, dict(self._queues)
            self._parts, self._tasks = parts, tasks
            self._queues.update(queues)
            self._queues.remote.clear()
            for queue in queues.values():
                queue.note_shards()
            if self._schedules:
                self._schedules.go_by(parts)
        return before

    @property
    def redis_url(self) -> str:
        """The URL of the server that the app uses; an embedded one runs from then on, until the process ends.

        Of a client of one's own it says where that one connects to, without a password.

        Raises ConfigError, and EmbeddedServerError where that server does not start.
        """
        return self._parts.url

    @property
    def workers(self) -> list[type[Worker[Any]]]:
        """The workers, in order of declaration."""
        return self._queues.workers

    @property
    def follows_tasks(self) -> bool:
        """Whether there are tasks to look after: this process has made one, or has seen their items in a queue."""
        return bool(self._tasks and self._tasks.has_made_one) or self._parts.has_seen(TASKS)

    @property
    def follows_moves(self) -> bool:
        """Whether a queue is on its way to another number of shards, as far as this process knows."""
        return any(queue.shards.layout.is_moving for queue in self._queues.values())

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

    def declared_queue(self, worker: "type[Worker[Any]] | FunctionWorker[Any]") -> Queue:
        """The queue of a worker of this app, whether Redis agrees with it or not. Raises DeclarationError."""
        return self._queues.of(worker_of(worker))

    def worker_named(self, queue_name: str) -> type[Worker[Any]] | None:
        """The worker of the queue; None if the app has no queue of that name."""
        queue = self._queues.get(queue_name)
        return None if queue is None else queue.worker

    def remote_queue(self, queue_name: str, gather: "Gather | None") -> Queue:
        """The queue of a worker that another program declares, as Redis has it; read once.

        Raises NoSuchQueue, QueueMismatch, BackendError.
        """
        from lowkiq_lambda.remote import read_queue  # noqa: PLC0415 - only where it is asked for

        with self._lock:
            queue = self._queues.remote.get(queue_name)
            if queue is None:
                queue = read_queue(self, queue_name, gather, self._advice)
                self._queues.remote[queue_name] = queue
            return queue

    def queue_of(self, worker: "type[Worker[Any]] | FunctionWorker[Any]") -> Queue:
        """The queue of a worker of this app, known to agree with Redis. Raises QueueMismatch, BackendError."""
        queue = self._queues.of(worker_of(worker))
        if not queue.is_agreed:
            queue.ensure_declared(self.backend, self.config.codec_name, self.config.retry_for)
        return queue

    def current_queue_of(self, worker: "type[Worker[Any]] | FunctionWorker[Any]") -> Queue:
        """As `queue_of`, for who only reads: where the queue has been resharded, it has the shards that it has now."""
        queue = self._queues.of(worker_of(worker))
        queue.look_again(self.backend, self.config.codec_name, self.config.retry_for)
        return queue

    def current_queues(self) -> tuple[dict[str, Queue], dict[str, str]]:
        """All queues, for who only reads: those that Redis agrees with, and why it does not with the others, by name.

        One round trip, however many there are. Raises BackendError.
        """
        config = self.config
        refused = self._queues.look_again(self.backend, config.codec_name, config.retry_for)
        return {name: queue for name, queue in self._queues.items() if name not in refused}, refused

    def _advice(self, queue_name: str) -> str | None:
        return reset_advice(self.config, queue_name)
