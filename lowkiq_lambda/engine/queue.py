"""The queues of an app: their shards, and that Redis agrees with how they are declared."""

import logging
import math
from collections.abc import Callable
from dataclasses import asdict
from threading import Lock
from typing import Final

from lowkiq_lambda.errors import BackendFull, DeclarationError, QueueMismatch
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import (
    HASH,
    HASH_OF_TENANT,
    LAYOUT_WITH_TENANTS,
    Declaration,
    Registered,
    declare,
    declare_anew,
    shards_of,
)
from lowkiq_lambda.store.shard.keys import GATHERING, ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.worker import HOME, Worker, note_resharded

logger = logging.getLogger(__name__)

KNOWN_FOR: Final = 1.0
"""Seconds for which people see the shards that a queue had when its declaration was read."""


class Queue:
    """The queue of a worker; `advice` may tell, by its name, what else helps where it is declared otherwise."""

    def __init__(self, worker: type[Worker], advice: Callable[[str], str | None]) -> None:
        self.worker = worker
        self._advice = advice
        self.shards = self._featured(shards_of(worker.queue_name, asdict(self.declaration(""))))
        """Those that code declares, until Redis has told which the queue has."""
        self._is_declared = False
        self._is_doubtful = False
        self._read_at = -math.inf
        self._says_disagreement = True
        self._lock = Lock()

    @property
    def is_agreed(self) -> bool:
        """Whether Redis agreed with the declaration, and nothing has been seen since that speaks against it."""
        return self._is_declared and not self._is_doubtful

    def declaration(self, codec: str) -> Declaration:
        """What it is declared with."""
        worker = self.worker
        if worker.tenants is None:
            return Declaration(worker.shards_count, codec, worker.merge)
        hash_ = HASH_OF_TENANT if worker.tenants == HOME else HASH
        return Declaration(worker.shards_count, codec, worker.merge, hash_, LAYOUT_WITH_TENANTS)

    def ensure_declared(self, backend: Backend, codec: str, retry_for: float) -> None:
        """Compare the declaration with the one in Redis: once, and again where it came into doubt.

        A full Redis that has none keeps nobody from draining and looking: nothing was pushed to such a queue, and
        nothing can be, so the next call tries again. Raises QueueMismatch, BackendError.
        """
        if not self.is_agreed:
            self._read(backend, codec, retry_for)

    def look_again(self, backend: Backend, codec: str, retry_for: float) -> None:
        """As `ensure_declared`, but what was read before counts for some seconds only.

        Who pushes or drains is told by a shard that is not open that the queue has others; who only reads is not.
        """
        if not (self.is_agreed and backend.clock.monotonic() - self._read_at < KNOWN_FOR):
            self._read(backend, codec, retry_for)

    def learn(self, there: Registered) -> None:
        """Somebody has read the declaration, and it agrees with this one."""
        self._take_over(there)

    def _read(self, backend: Backend, codec: str, retry_for: float) -> None:
        with self._lock:
            self._read_at = backend.clock.monotonic()
            reopen, self._is_doubtful = self._is_doubtful, False
            try:
                there = declare(backend, self.shards, self.declaration(codec), retry_for, reopen=reopen)
                self._take_over(there)
                self._is_declared = True
            except BackendFull:
                self._is_declared = False
            except QueueMismatch as error:
                self._is_declared = False
                raise error.advised(self._advice(self.worker.queue_name)) from None
            except BaseException:
                self._is_declared = False
                raise

    def doubt(self) -> None:
        """A shard was seen that is not open: the queue may have been declared anew, or flushed."""
        self._is_doubtful = True

    def doubt_for(self, shard: ShardRef) -> None:
        """As `doubt`, where that this shard is not open says anything new.

        Of a queue that is being resharded those are not open whose jobs have moved away, or not come yet.
        """
        if shard not in self.shards.without_ids or not self.shards.layout.left:
            self.doubt()

    def declare_anew(self, backend: Backend, codec: str, retry_for: float) -> QueueShards:
        """Open the shards where Redis agrees with the declaration, and learn which they are.

        Raises QueueMismatch, also while the queue is being declared anew, and BackendError.
        """
        self.doubt()
        self._take_over(declare_anew(backend, self.shards, self.declaration(codec), retry_for))
        return self.shards

    def redeclare(self, backend: Backend, codec: str, retry_for: float) -> None:
        """Replace the declaration in Redis. Raises QueueMismatch, BackendError."""
        from lowkiq_lambda.store.shard.redeclaring import redeclare  # noqa: PLC0415 - imported lazily: cold start

        self.shards = self._featured(shards_of(self.worker.queue_name, asdict(self.declaration(""))))
        redeclare(backend, self.shards, self.declaration(codec), retry_for)

    def _take_over(self, there: Registered) -> None:
        """Go by the shards that the queue has; the same list as before where nothing has changed."""
        shards = there.shards(self.worker.queue_name)
        if shards.layout == self.shards.layout:
            return
        if there.made_with["shards_count"] != self.worker.shards_count and self._says_disagreement:
            self._says_disagreement = False
            logger.info(
                "queue %r has %s shards, the worker declares %s: the queue's count holds",
                self.worker.queue_name,
                there.made_with["shards_count"],
                self.worker.shards_count,
            )
        self.shards = self._featured(shards)
        note_resharded(self.worker, self.shards.number_for)

    def _featured(self, shards: QueueShards) -> QueueShards:
        return shards.with_features((GATHERING,)) if self.worker.gather else shards


class QueueRegistry(dict[str, Queue]):
    """The queues of an app by name, in order of declaration."""

    @property
    def workers(self) -> list[type[Worker]]:
        """The workers that have them."""
        return [queue.worker for queue in self.values()]

    def of(self, worker: type[Worker]) -> Queue:
        """That of a worker of the app. Raises DeclarationError where it is declared in another, or in none."""
        queue = self.get(worker.queue_name)
        if queue is None:
            raise DeclarationError(f"{worker.__name__} is not a worker of this app: declare it with its @app.worker.")
        return queue
