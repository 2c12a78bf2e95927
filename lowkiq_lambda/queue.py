"""One worker's queue: its shards, and that Redis agrees with how it is declared."""

from threading import Lock

from lowkiq_lambda.store.connection import Client
from lowkiq_lambda.store.declarations import Declaration, declare
from lowkiq_lambda.store.keys import ShardRef
from lowkiq_lambda.worker import Worker


class Queue:
    """The queue of a worker."""

    def __init__(self, worker: type[Worker]) -> None:
        self.worker = worker
        self.shards = [ShardRef(worker.queue_name, worker.shards_count, index) for index in range(worker.shards_count)]
        self._declared = False
        self._lock = Lock()

    def ensure_declared(self, client: Client, codec: str) -> None:
        """Compare the declaration with the one in Redis, once. Raises QueueMismatch, BackendError."""
        if not self._declared:
            with self._lock:
                declare(client, self.worker.queue_name, Declaration(self.worker.shards_count, codec))
                self._declared = True
