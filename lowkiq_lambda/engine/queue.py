"""The queues of an app: their shards, and that Redis agrees with how they are declared."""

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from lowkiq_lambda.base.errors import BackendFull, DeclarationError, LowkiqError, QueueMismatch
from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import HOME, Worker, auto_of, count_of, forget_resharded, note_resharded, worker_of
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import (
    HASH,
    HASH_OF_TENANT,
    LAYOUT_WITH_TENANTS,
    AutoDeclaration,
    Declaration,
    Registered,
    declare,
    declare_anew,
    mismatch,
    read_each_registered,
    replace_registered,
    shards_of,
)
from lowkiq_lambda.store.shard.keys import DEBOUNCING, RUNS, ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards

if TYPE_CHECKING:
    from lowkiq_lambda.jobs.auto import Auto

logger = logging.getLogger(__name__)

KNOWN_FOR: Final = 1.0
"""Seconds for which people see the shards that a queue had when its declaration was read."""


class Queue:
    """The queue of a worker.

    `codec`: the name of the app's; `prefix`: of its keys; `advice`: what else helps if the queue is declared otherwise.
    """

    def __init__(
        self,
        worker: type[Worker[Any]],
        codec: Callable[[], str],
        prefix: Callable[[], str],
        advice: Callable[[str], str | None],
    ) -> None:
        self.worker = worker
        self._codec = codec
        self._prefix = prefix
        self._advice = advice
        self._is_declared = False
        self._is_doubtful = False
        self._read_at = -math.inf
        self.stored = b""
        """The declaration in Redis, as it was read last."""
        self._says_disagreement = True
        self._payload_is_noted = False
        self._lock = Lock()

    def anew(self) -> "Queue":
        """The same queue, without anything read from Redis."""
        return Queue(self.worker, self._codec, self._prefix, self._advice)

    @cached_property
    def shards(self) -> QueueShards:
        """Those that code declares, until Redis has told which the queue has."""
        # Made at the first use: which namespace the app has, its settings say, and they may be read after the code.
        return self._declared_shards()

    def forget_shards(self) -> None:
        """Make them anew: the settings have changed."""
        vars(self).pop("shards", None)

    def note_shards(self) -> None:
        """Make pushes use the shards that this queue has read."""
        forget_resharded(self.worker)
        if "shards" not in vars(self):
            return
        if self.shards.layout.before != count_of(self.worker) or self.shards.layout.is_moving:
            note_resharded(self.worker, self.shards.number_for)

    @property
    def is_agreed(self) -> bool:
        """Whether Redis agreed with the declaration, and nothing has been seen since that speaks against it."""
        return self._is_declared and not self._is_doubtful

    @property
    def payload(self) -> str:
        """The declared type of payloads, and the digits of its schema; empty if they are any JSON."""
        if self.worker.payload is None:
            return ""
        from lowkiq_lambda.declare.payloads import fingerprint  # noqa: PLC0415 - only where a type is declared

        return fingerprint(self.worker.payload)

    @property
    def auto(self) -> "Auto | None":
        """The bounds of a queue that has a count of shards of its own; None where code declares the count."""
        return auto_of(self.worker)

    @property
    def declaration(self) -> Declaration:
        """The declaration of this queue."""
        return self._declaration(self._codec())

    def _declaration(self, codec: str) -> Declaration:
        worker, count = self.worker, count_of(self.worker)
        kind = Declaration if self.auto is None else AutoDeclaration
        if worker.tenants is None:
            return kind(count, codec, worker.merge)
        hash_ = HASH_OF_TENANT if worker.tenants == HOME else HASH
        return kind(count, codec, worker.merge, hash_, LAYOUT_WITH_TENANTS)

    def ensure_declared(self, backend: Backend, retry_for: float) -> None:
        """Compare the declaration with the one in Redis: once, and again when it came into doubt.

        A full Redis without a declaration does not stop drains and readers: such a queue has no jobs, and cannot get
        any, so the next call tries again. Raises QueueMismatch, BackendError.
        """
        if not self.is_agreed:
            self._read(backend, retry_for)

    def look_again(self, backend: Backend, retry_for: float) -> None:
        """As `ensure_declared`, but a declaration that was read before counts for some seconds only.

        A push or a drain meets a closed shard if the queue has got others; a reader gets no such sign.
        """
        if not (self.is_agreed and backend.clock.monotonic() - self._read_at < KNOWN_FOR):
            self._read(backend, retry_for)

    def learn(self, there: Registered) -> None:
        """Somebody has read the declaration, and it agrees with this one."""
        self._take_over(there)

    def refusal_of(self, there: Registered | None) -> QueueMismatch | None:
        """Somebody has read the declaration: why the queue cannot be shown; else it has the shards that it has now."""
        if there is None:
            # Nobody has pushed to it yet.
            return None
        declaration = self.declaration
        if not there.agrees(declaration):
            name = self.worker.queue_name
            return mismatch(name, declaration, there, self._prefix()).advised(self._advice(name))
        self.learn(there)
        return None

    def is_known_at(self, now: float) -> bool:
        """Whether the declaration was read a moment ago, and agreed; `now`: monotonic."""
        return now - self._read_at < KNOWN_FOR

    def note_look(self, now: float, *, agrees: bool) -> None:
        """The declaration was read at `now`."""
        self._read_at = now if agrees else -math.inf
        self._is_declared &= agrees

    def _read(self, backend: Backend, retry_for: float) -> None:
        with self._lock:
            self._read_at = backend.clock.monotonic()
            reopen, self._is_doubtful = self._is_doubtful, False
            try:
                there = declare(backend, self.shards, self.declaration, retry_for, reopen=reopen)
                self._take_over(there)
                self._is_declared = True
                self._note_auto(backend, there)
                self._note_payload(backend, there)
            except BackendFull:
                self._is_declared = False
            except QueueMismatch as error:
                self.note_look(-math.inf, agrees=False)
                raise error.advised(self._advice(self.worker.queue_name)) from None
            except BaseException:
                self.note_look(-math.inf, agrees=False)
                raise

    def _note_payload(self, backend: Backend, there: Registered) -> None:
        """Log once if other code has declared another type of payloads, and note this one for the others."""
        here = self.payload
        if not here or there.payload == here or self._payload_is_noted:
            return
        self._payload_is_noted = True
        if there.payload:
            logger.warning(
                "queue %r: this code declares payloads as %s, and other code declared them as %s; docs/payloads.md "
                "says which changes are compatible",
                self.worker.queue_name,
                here,
                there.payload,
            )
        if there.changing or there.is_moving:
            return
        noted = replace(there, payload=here, stored=b"")
        # Nothing depends on it: the next process that declares the queue tries again.
        with suppress(LowkiqError):
            replace_registered(backend, self.worker.queue_name, there, noted, 0.0)

    def _note_auto(self, backend: Backend, there: Registered) -> None:
        """Note that the queue has a count of its own, so that code that declares a number is accepted beside this."""
        if self.auto is None or there.is_auto or there.changing or there.is_moving:
            return
        # Where that fails, other code is refused until the next process declares the queue.
        with suppress(LowkiqError):
            replace_registered(backend, self.worker.queue_name, there, replace(there, is_auto=True, stored=b""), 0.0)

    def note_change(self) -> None:
        """Another declaration was seen than the one that was read: it is read again, which opens no shard."""
        self.note_look(-math.inf, agrees=False)

    def doubt(self) -> None:
        """A shard was seen that is not open: the queue may have been declared anew, or flushed."""
        self._is_doubtful = True
        self._read_at = -math.inf

    def doubt_for(self, shard: ShardRef) -> None:
        """As `doubt`, if that this shard is not open says anything new.

        Of a queue that is being resharded those are not open whose jobs have moved away, or not come yet.
        """
        if shard not in self.shards.without_ids or not self.shards.layout.left:
            self.doubt()

    def declare_anew(self, backend: Backend, retry_for: float) -> QueueShards:
        """Open the shards if Redis agrees with the declaration, and return them.

        Raises QueueMismatch, also while the queue is being declared anew, and BackendError.
        """
        self.doubt()
        self._take_over(declare_anew(backend, self.shards, self.declaration, retry_for))
        return self.shards

    def redeclare(self, backend: Backend, retry_for: float) -> None:
        """Replace the declaration in Redis. Raises QueueMismatch, BackendError."""
        from lowkiq_lambda.store.shard.redeclaring import redeclare  # noqa: PLC0415 - imported lazily: cold start

        self.shards = self._declared_shards()
        redeclare(backend, self.shards, self.declaration, retry_for)

    def _take_over(self, there: Registered) -> None:
        """Use the shards that the queue has; the same list as before if they are the same."""
        self.stored = there.stored
        shards = there.shards(self.worker.queue_name, self._prefix())
        if shards.layout == self.shards.layout:
            return
        count, declared = there.made_with["shards_count"], count_of(self.worker)
        if count != declared and self.auto is None and self._says_disagreement:
            self._says_disagreement = False
            logger.info(
                "queue %r has %s shards, the worker declares %s: the queue's count holds",
                self.worker.queue_name,
                count,
                declared,
            )
        self.shards = self._featured(shards)
        note_resharded(self.worker, self.shards.number_for)

    def _declared_shards(self) -> QueueShards:
        # Which codec the app has, its settings say, and they may be read later.
        return self._featured(shards_of(self.worker.queue_name, asdict(self._declaration("")), prefix=self._prefix()))

    def _featured(self, shards: QueueShards) -> QueueShards:
        debouncing = (DEBOUNCING,) if self.worker.debounce else ()
        runs = (RUNS,) if self.worker.keep_runs is not None else ()
        return shards.with_features((*debouncing, *runs)) if debouncing or runs else shards


class QueueRegistry(dict[str, Queue]):
    """The queues of an app by name, in order of declaration, whether Redis agrees with them or not.

    `redis`: the connections, and for how long a call is retried; `codec`, `prefix`, `advice`: those of each queue.
    """

    def __init__(
        self,
        redis: Callable[[], tuple[Backend, float]],
        *,
        codec: Callable[[], str],
        prefix: Callable[[], str],
        advice: Callable[[str], str | None],
    ) -> None:
        super().__init__()
        self.remote: Final[dict[str, Queue]] = {}
        """Those that another program declares, by name: they are pushed to, and nothing else."""
        self.advice: Final = advice
        self._redis = redis
        self._codec = codec
        self._prefix = prefix
        self._lock = Lock()

    def add(self, worker: type[Worker[Any]]) -> None:
        """Give the worker its queue."""
        self[worker.queue_name] = Queue(worker, self._codec, self._prefix, self.advice)

    @property
    def workers(self) -> list[type[Worker[Any]]]:
        """The workers that have them."""
        return [queue.worker for queue in self.values()]

    def worker_named(self, queue_name: str) -> type[Worker[Any]] | None:
        """The worker of the queue; None if the app has no queue of that name."""
        queue = self.get(queue_name)
        return None if queue is None else queue.worker

    def of(self, worker: AnyWorker) -> Queue:
        """The queue of a worker of the app. Raises DeclarationError if another app declares it, or none."""
        declared = worker_of(worker)
        queue = self.get(declared.queue_name) or self.remote.get(declared.queue_name)
        if queue is None:
            raise DeclarationError(f"{declared.__name__} is not a worker of this app: declare it with its @app.worker.")
        return queue

    def agreed(self, worker: AnyWorker) -> Queue:
        """The queue of a worker of this app, known to agree with Redis. Raises QueueMismatch, BackendError."""
        queue = self.of(worker)
        if not queue.is_agreed:
            queue.ensure_declared(*self._redis())
        return queue

    def current(self, worker: AnyWorker) -> Queue:
        """As `agreed`, for readers: a queue that has been resharded has the shards that it has now."""
        queue = self.of(worker)
        queue.look_again(*self._redis())
        return queue

    def all_current(self) -> tuple[dict[str, Queue], dict[str, str]]:
        """All queues, for readers: those that Redis agrees with, and why it does not with the others, by name.

        One round trip, however many there are; it makes no queue that is not there. Raises BackendError.
        """
        backend, retry_for = self._redis()
        now = backend.clock.monotonic()
        queues = [queue for queue in self.values() if not queue.is_known_at(now)]
        names = [queue.worker.queue_name for queue in queues]
        refused = {}
        for queue, there in zip(queues, read_each_registered(backend, names, retry_for), strict=True):
            error = queue.refusal_of(there)
            queue.note_look(now, agrees=error is None)
            if error is not None:
                refused[queue.worker.queue_name] = str(error)
        return {name: queue for name, queue in self.items() if name not in refused}, refused

    def remembered(self, name: str, make: Callable[[], Queue]) -> Queue:
        """A remote queue; `make` reads it from Redis, once."""
        with self._lock:
            if name not in self.remote:
                self.remote[name] = make()
            return self.remote[name]
