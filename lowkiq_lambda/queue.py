"""One worker's queue: its shards, and that Redis agrees with how it is declared."""

from collections.abc import Callable
from threading import Lock

from lowkiq_lambda.errors import QueueMismatch
from lowkiq_lambda.store.backend import Backend
from lowkiq_lambda.store.declarations import Declaration, declare, redeclare
from lowkiq_lambda.store.keys import ShardRef
from lowkiq_lambda.worker import Worker


class Queue:
    """The queue of a worker; `advice` may tell, by its name, what else helps where it is declared otherwise."""

    def __init__(self, worker: type[Worker], advice: Callable[[str], str | None]) -> None:
        self.worker = worker
        self._advice = advice
        self.shards = [ShardRef(worker.queue_name, worker.shards_count, index) for index in range(worker.shards_count)]
        self._declared = False
        self._lock = Lock()

    def ensure_declared(self, backend: Backend, codec: str, patience: float) -> None:
        """Compare the declaration with the one in Redis, once. Raises QueueMismatch, BackendError."""
        if not self._declared:
            with self._lock:
                declaration = Declaration(self.worker.shards_count, codec)
                try:
                    declare(backend, self.worker.queue_name, declaration, patience)
                except QueueMismatch as error:
                    raise error.advised(self._advice(self.worker.queue_name)) from None
                self._declared = True

    def redeclare(self, backend: Backend, codec: str, patience: float) -> None:
        """Replace the declaration in Redis. Raises QueueMismatch, BackendError."""
        redeclare(backend, self.worker.queue_name, Declaration(self.worker.shards_count, codec), patience)
