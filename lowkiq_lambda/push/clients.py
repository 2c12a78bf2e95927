"""The clients that push to the queues of an app: one for each queue, made at its first push."""

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.push.client import PushClient

if TYPE_CHECKING:
    from lowkiq_lambda.providers.connections import Connections
    from lowkiq_lambda.push.redelivery import Redelivery
    from lowkiq_lambda.push.reliable import ReliableClient
    from lowkiq_lambda.push.threads import PushThreads
    from lowkiq_lambda.settings.protocols import Observer
    from lowkiq_lambda.store.shard.waking import Waker

_LAMBDA: Final = "AWS_LAMBDA_FUNCTION_NAME"


class PushClients:
    """Those of one app; `waker` starts drains of the shards that they push to, if the settings ask for one.

    `observers`: those of the app.
    """

    def __init__(
        self, connections: "Connections", waker: "Waker | None", observers: Callable[[], Sequence["Observer"]]
    ) -> None:
        self._connections = connections
        self._waker = waker
        self._observers = observers
        self._clients: dict[str, PushClient] = {}
        self._reliable: dict[str, ReliableClient] = {}
        self._threads: PushThreads | None = None
        self.redelivery: Redelivery | None = None
        """Of the jobs that this process has buffered; None before the first push that may buffer."""
        self._lock = threading.RLock()

    def of(self, queue: Queue) -> PushClient:
        """The one that pushes to the queue."""
        name = queue.worker.queue_name
        client = self._clients.get(name)
        return client if client and client.shards is queue.shards else self._new_client(name, queue)

    def reliable(self, queue: Queue) -> "ReliableClient":
        """The client that pushes to the queue if `when_unavailable` is more than to raise."""
        name = queue.worker.queue_name
        client = self._reliable.get(name) or self._new_reliable(name, queue)
        if client.shards is not queue.shards:
            client.go_by(queue)
        return client

    @property
    def threads(self) -> "PushThreads":
        """The threads that make the pushes of an event loop."""
        with self._lock:
            if self._threads is None:
                from lowkiq_lambda.push.threads import PushThreads  # noqa: PLC0415 - imported lazily: cold start

                self._threads = PushThreads(self._connections.config.client_pool_size)
            return self._threads

    def end(self) -> None:
        """End the threads; jobs that are still buffered go to `on_lost`."""
        if self._threads:
            self._threads.end()
        if self.redelivery:
            self.redelivery.give_up()

    def _new_client(self, name: str, queue: Queue) -> PushClient:
        connections = self._connections
        with self._lock:
            declare = partial(queue.declare_anew, connections.backend, 0.0)
            client = PushClient(
                connections.config,
                connections.backend,
                queue.worker,
                queue.shards,
                declare=declare,
                waker=self._waker,
                observers=self._observers,
            )
            before = self._clients.get(name)
            if before:
                client.pusher.follow(before.pusher)
            self._clients[name] = client
            return client

    def _new_reliable(self, name: str, queue: Queue) -> "ReliableClient":
        from lowkiq_lambda.push.reliable import PATIENCE, reliable_client  # noqa: PLC0415 - only where it is asked for
        from lowkiq_lambda.push.way import Way  # noqa: PLC0415 - as above

        connections = self._connections

        def open_client(queue: Queue) -> PushClient:
            queue.ensure_declared(connections.backend, PATIENCE)
            return self.of(queue)

        with self._lock:
            if self.redelivery is None:
                from lowkiq_lambda.push.redelivery import Redelivery  # noqa: PLC0415 - as above

                # A frozen process runs no thread: buffered jobs have to be flushed before each freeze.
                has_thread = not os.environ.get(_LAMBDA)
                self.redelivery = Redelivery(connections.config, connections.clock, has_thread=has_thread)
            way = Way(queue, open_client, lambda: connections.opened_backend, connections.clock)
            client = reliable_client(connections.config, way, self.redelivery)
            return self._reliable.setdefault(name, client)
