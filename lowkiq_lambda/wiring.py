"""The parts of an app, made from its settings at the first use: no process pays for one that it does not use."""

import os
import threading
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.clock import Clock, SystemClock
from lowkiq_lambda.config import EMBEDDED, Config, is_embedded
from lowkiq_lambda.declaring import check_middlewares, check_together
from lowkiq_lambda.engine.drainer import Drainer, LookAtTasks
from lowkiq_lambda.engine.queue import Queue, QueueRegistry
from lowkiq_lambda.errors import ConfigError
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.server.server_time import GivenTime, NodeTime, ServerTime
from lowkiq_lambda.store.shard.backend import Backend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lowkiq_lambda.protocols import Observer, ServerMiddleware, StartDrain
    from lowkiq_lambda.push.client import PushClient
    from lowkiq_lambda.push.redelivery import Redelivery
    from lowkiq_lambda.push.reliable import ReliableClient
    from lowkiq_lambda.push.threads import PushThreads
    from lowkiq_lambda.store.inspect.inspector import Inspector
    from lowkiq_lambda.store.shard.waking import Waker


_LAMBDA: Final = "AWS_LAMBDA_FUNCTION_NAME"
_AWS_NAMES: Final = ("LOWKIQ_REDIS_SECRET_ARN", "LOWKIQ_REDIS_IAM_USER", "LOWKIQ_REDIS_IAM_CACHE")
"""Settings of AWS that name the server, or who signs in to it."""
SPARE_CONNECTIONS: Final = 3
"""Beside one for each drain thread: for the thread that renews leases, for probes, and at the stop."""


class Parts:
    """What one app is made of. `clock` is for tests: with one, time is what it says, on the server too."""

    def __init__(
        self, config: Config | None, clock: Clock | None, new_backend: "Callable[..., Backend]" = Backend
    ) -> None:
        given: object = config
        if not (given is None or isinstance(given, Config)):
            raise ConfigError(
                f"Lowkiq takes a Config, not {type(given).__name__}: write Lowkiq(Config(redis_url=...))."
            )
        self.clock: Clock = clock or SystemClock()
        self.new_time: Callable[[Clock], NodeTime] = GivenTime if clock else ServerTime
        self._new_backend = new_backend
        self.opened: list[Backend] = []
        """Each has connections of its own."""
        self._config = config
        self.reads_environment: Final = config is None
        self._url: str | None = None
        self._backend: Backend | None = None
        self._push_clients: dict[str, PushClient] = {}
        self._reliable_clients: dict[str, ReliableClient] = {}
        self.redelivery: Redelivery | None = None
        """Of what pushes have kept in this process; None before the first push that may."""
        self._push_threads: PushThreads | None = None
        self._waker: tuple[Waker | None] | None = None
        """One for all, as it remembers which shards it has woken."""
        self._drainer: Drainer | None = None
        self._inspector: Inspector | None = None
        self._lock = threading.RLock()

    @property
    def config(self) -> Config:
        """The settings. Raises ConfigError where the environment has a bad one."""
        with self._lock:
            if self._config is None:
                self._config = _config_of_environment()
            return self._config

    def configure(self, **changes: Any) -> None:  # noqa: ANN401 - any setting
        """Change settings. Raises ConfigError, also where connections have been opened by the old ones."""
        with self._lock:
            if self.opened:
                raise ConfigError("The app has used Redis already, so its settings stand.")
            self._config = self.config.evolve(**changes)
            self._url = None

    @property
    def url(self) -> str:
        """The URL of the server; an embedded one runs from then on. Raises ConfigError, EmbeddedServerError."""
        with self._lock:
            if self._url is None:
                # Found once: the folder of an embedded server may depend on the current one.
                self._url = _server_url(self.config) if self.config.redis is None else self._given_place()
            return self._url

    @property
    def backend(self) -> Backend:
        """The connections that pushes and people's looks go through."""
        with self._lock:
            if self._backend is None:
                self._backend = self._open(self.config.client_pool_size, self.config.redis_timeout)
            return self._backend

    def push_client(self, queue: Queue) -> "PushClient":
        """The one that pushes to the queue."""
        name = queue.worker.queue_name
        client = self._push_clients.get(name)
        return client if client and client.shards is queue.shards else self._new_push_client(name, queue)

    def has_seen(self, feature: str) -> bool:
        """Whether a queue has been seen to use the feature, which its declaration does not tell."""
        return any(backend.uses(feature) for backend in self.opened)

    def reliable_client(self, queue: Queue) -> "ReliableClient":
        """The one that pushes to the queue where `when_unavailable` says more than to raise."""
        name = queue.worker.queue_name
        client = self._reliable_clients.get(name) or self._new_reliable_client(name, queue)
        if client.shards is not queue.shards:
            client.go_by(queue.shards)
        return client

    @property
    def push_threads(self) -> "PushThreads":
        """Those in which an event loop's pushes are made."""
        with self._lock:
            if self._push_threads is None:
                from lowkiq_lambda.push.threads import PushThreads  # noqa: PLC0415 - imported lazily: cold start

                self._push_threads = PushThreads(self.config.client_pool_size)
            return self._push_threads

    @property
    def waker(self) -> "Waker | None":
        """What starts drains of shards that jobs are pushed to, if the settings ask for one."""
        with self._lock:
            if self._waker is None:
                self._waker = (_new_waker(self.config, self.backend),)
            return self._waker[0]

    def drainer(
        self,
        queues: QueueRegistry,
        middlewares: "Sequence[ServerMiddleware]",
        observers: "list[Observer]",
        look_at_tasks: LookAtTasks,
    ) -> Drainer:
        """The one that visits the shards of the queues; what it is given counts at the first call."""
        with self._lock:
            if self._drainer is None:
                check_middlewares(middlewares, queues.workers)
                check_together(queues.workers)
                config = self.config
                backend = self._open(config.threads_per_node + SPARE_CONNECTIONS, config.lease_timeout)
                self._drainer = Drainer(config, self.clock, backend, queues, middlewares)
                self._drainer.observers = observers
                self._drainer.look_at_tasks = look_at_tasks
            return self._drainer

    def drop_drainer(self) -> None:
        """Have the next drain know nothing of those before, as that of another process does."""
        with self._lock:
            drainer, self._drainer = self._drainer, None
        if drainer:
            drainer.end()

    def close(self) -> None:
        """Let all connections and threads go; what is kept in this process for Redis is given up."""
        if self._push_threads:
            self._push_threads.end()
        if self.redelivery:
            self.redelivery.give_up()
        self.drop_drainer()
        # A client of one's own may have other users.
        for backend in self.opened if self.config.redis is None else ():
            backend.client.close()

    @property
    def inspector(self) -> "Inspector":
        """What reads queues, and changes them, for people."""
        with self._lock:
            if self._inspector is None:
                from lowkiq_lambda.store.inspect.inspector import Inspector  # noqa: PLC0415 - imported lazily: cold start

                self._inspector = Inspector(self.backend, self.config)
            return self._inspector

    def _given_place(self) -> str:
        from lowkiq_lambda.store.server.given_client import place_of  # noqa: PLC0415 - imported lazily: a plug

        return place_of(self.backend.client)

    def _new_push_client(self, name: str, queue: Queue) -> "PushClient":
        from lowkiq_lambda.push.client import PushClient  # noqa: PLC0415 - drains that push nothing start without it

        with self._lock:
            declare = partial(queue.declare_anew, self.backend, self.config.codec_name, 0.0)
            client = PushClient(
                self.config, self.backend, queue.worker, queue.shards, declare=declare, waker=self.waker
            )
            before = self._push_clients.get(name)
            if before:
                client.pusher.follow(before.pusher)
            self._push_clients[name] = client
            return client

    def _new_reliable_client(self, name: str, queue: Queue) -> "ReliableClient":
        from lowkiq_lambda.push.reliable import PATIENCE, reliable_client  # noqa: PLC0415 - only where it is asked for
        from lowkiq_lambda.push.way import Way  # noqa: PLC0415 - as above

        def open_client() -> "PushClient":
            queue.ensure_declared(self.backend, self.config.codec_name, PATIENCE)
            return self.push_client(queue)

        with self._lock:
            if self.redelivery is None:
                from lowkiq_lambda.push.redelivery import Redelivery  # noqa: PLC0415 - as above

                # A frozen process runs no thread: what waits has to be flushed before each freeze.
                self.redelivery = Redelivery(self.config, self.clock, has_thread=not os.environ.get(_LAMBDA))
            way = Way(queue.worker, open_client, lambda: self._backend, self.clock)
            client = reliable_client(self.config, way, queue.shards, self.redelivery)
            return self._reliable_clients.setdefault(name, client)

    def _open(self, connections: int, timeout: float) -> Backend:
        """So many connections at most, whose calls wait `timeout` seconds for an answer."""
        config, clock = self.config, self.clock
        client = connect(
            self.url if config.redis is None else "",
            max_connections=connections,
            timeout=timeout,
            pool_timeout=config.pool_timeout,
            credentials=config.credentials,
            clock=clock,
            given=config.redis,
        )
        # Spreads attempts in time, protects nothing.
        rng = Random()  # noqa: S311 - as said above
        backend = self._new_backend(client, clock, partial(self.new_time, clock), clock.sleep, rng)
        backend.lease_ttl = config.lease_ttl
        self.opened.append(backend)
        return backend


def reset_advice(config: Config, queue_name: str) -> str | None:
    """How to remove a queue that has another declaration; None where its jobs may matter."""
    if not is_embedded(config.redis_url):
        return None
    from lowkiq_lambda.local.embedded.shared import reset_command  # noqa: PLC0415 - imported lazily: needs an extra

    return f"as this is the embedded server, run `{reset_command(queue_name, config, os.environ)}`"


def _config_of_environment() -> Config:
    """The settings that the environment has, and the server that those of AWS name there. Raises ConfigError."""
    if not any(map(os.environ.get, _AWS_NAMES)):
        return Config.from_env(os.environ)
    from lowkiq_lambda.aws.redis_server import redis_settings  # noqa: PLC0415 - only where it is asked for
    from lowkiq_lambda.aws.settings import Settings  # noqa: PLC0415 - as above

    return Config.from_env(os.environ, **redis_settings(Settings.from_env(os.environ)))


def _server_url(config: Config) -> str:
    """The URL of the server that the settings name; an embedded one is started.

    Raises ConfigError, and EmbeddedServerError if that server does not start.
    """
    if config.redis_url is None:
        raise ConfigError(
            f"No Redis is named. For development set LOWKIQ_REDIS_URL={EMBEDDED} (starts a real Valkey for this "
            "project); else set it to your server. A test takes the fixture lowkiq.",
            setting="redis_url",
        )
    if not is_embedded(config.redis_url):
        return config.redis_url
    from lowkiq_lambda.development import refuse_in_deployment  # noqa: PLC0415 - imported lazily: not in a deployment
    from lowkiq_lambda.local.embedded.shared import attach  # noqa: PLC0415 - imported lazily: needs an extra

    refuse_in_deployment(f"redis_url={config.redis_url!r} is for development", os.environ)
    return attach(config, os.environ).url


def _new_waker(config: Config, backend: Backend) -> "Waker | None":
    """What starts drains of shards after a push, if the settings ask for one."""
    if config.start_drain is None and config.wake_function is None:
        return None
    from lowkiq_lambda.store.shard.waking import Waker  # noqa: PLC0415 - imported lazily: cold start

    return Waker(backend, config.start_drain or _starter(str(config.wake_function)), config.wake_window)


def _starter(function: str) -> "StartDrain":
    from lowkiq_lambda.aws.waking import LambdaStarter  # noqa: PLC0415 - imported lazily: needs an extra

    return LambdaStarter(function)
