"""How the jobs of a queue get to Redis, for pushes that may have to wait for it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.push.client import PushClient
from lowkiq_lambda.store.server.faults import translated
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef

MOST_AHEAD: Final = 1.0
"""Seconds by which clients of a shard may think it is later than others do: include/shard.lua refuses more."""


class Way:
    """To one queue, which a cell that runs again replaces. `open_client` gives its client when Redis has agreed.

    `backend`: that of the client, None before the client was opened first.
    """

    def __init__(
        self,
        queue: Queue,
        open_client: Callable[[Queue], PushClient],
        backend: Callable[[], Backend | None],
        clock: Clock,
    ) -> None:
        self.queue = queue
        self._open_client = open_client
        self._backend = backend
        self.clock = clock
        self._client: PushClient | None = None

    @property
    def worker(self) -> type[Worker[Any]]:
        """That of the queue."""
        return self.queue.worker

    def open(self) -> PushClient:
        """The client. Raises BackendError, and QueueMismatch if Redis does not agree with the declaration."""
        self._client = self._open_client(self.queue)
        return self._client

    def call_on_conflict(self, jobs: Sequence[Mapping[str, Any]], results: Sequence[Pushed | None]) -> None:
        """As that of the client; a client that was never opened has dropped nothing."""
        if self._client:
            self._client.call_on_conflict(jobs, results)

    def now(self, shard: ShardRef) -> float:
        """Unix seconds by the clock of the shard's server, which may have to be asked. Raises as `open`."""
        backend = self._backend()
        if backend is None:
            self.open()
            return self.now(shard)
        return backend.now(shard)

    def estimate(self, shard: ShardRef) -> float:
        """The same as far as it is known without asking: as the server said last, else by this machine's clock."""
        backend = self._backend()
        if backend is not None:
            try:
                with translated():
                    return backend.nodes.estimate(shard)
            except BackendError:
                pass  # the nodes of a cluster are not known now
        return self.clock.time()

    def node_of(self, shard: ShardRef) -> str:
        """The name of the server that the shard lies on; empty if that is not known."""
        backend = self._backend()
        if backend is None:
            return ""
        try:
            return backend.node_of(shard)
        except BackendError:
            return ""

    def latest_score(self) -> float:
        """The earliest score of whichever shard this process pushed to last."""
        if self._client is None:
            return 0.0
        return self._client.pusher.last_written_to_any + MOST_AHEAD

    def earliest_score(self, shard: ShardRef) -> float:
        """The score of a job without one, so that it is after all jobs that this process pushed to the shard."""
        if self._client is None:
            return 0.0
        return self._client.pusher.last_written_at(shard) + MOST_AHEAD
