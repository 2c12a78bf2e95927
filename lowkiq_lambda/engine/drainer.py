"""Makes visits to the shards of an app: what daemons, functions and `app.drain` share."""

import logging
import math
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.error_text import loggable
from lowkiq_lambda.base.errors import BackendError, LowkiqError, QueueMismatch, ShardClosed, ShardMoving
from lowkiq_lambda.declare.worker import is_coroutine, queues_before
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.lease import LeaseRenewers
from lowkiq_lambda.engine.perform import hook_errors
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.engine.survivors import Survivors
from lowkiq_lambda.engine.visit import ShardVisit
from lowkiq_lambda.engine.visit_settings import VisitSettings, VisitSettingsFactory
from lowkiq_lambda.settings.config import Config, each_of
from lowkiq_lambda.settings.protocols import Observer, ServerMiddleware, SettledEvent
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.history import Recorder
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.session import LeaseSession
from lowkiq_lambda.store.shard.state import DeclarationLook, ProbeResult, probe, probe_each

if TYPE_CHECKING:
    from lowkiq_lambda.engine.admission import Admission
    from lowkiq_lambda.engine.slot_pool import SlotPool

logger = logging.getLogger(__name__)

WHOLE_LOOK: Final = 60.0
"""Seconds from one look at all that shards without jobs keep to the next."""
LIMITS_KNOWN_FOR: Final = 60.0
"""Seconds for which visits ask for permits whose shards said that limits were set; then one finds out anew."""
LookAtTasks: TypeAlias = Callable[[Collection[bytes], Callable[[], float]], None]
"""Given their ids, and how many seconds are left."""
Seen = TypeVar("Seen", bound=ProbeResult | LowkiqError)
"""The result of a look at a shard."""


class Drainer:
    """Visits shards, one visit per call; safe to use from several threads at once."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        backend: Backend,
        queues: Mapping[str, Queue],
        middlewares: Sequence[ServerMiddleware],
    ) -> None:
        self.config = config
        self.clock = clock
        """The clock of drains."""
        self._backend = backend
        self._queues = queues
        self._middlewares = middlewares
        self.observers: Sequence[Observer] = ()
        """Those of the app."""
        self.observer: Observer | None = None
        """The observer of the entrance; called for every settling, after those of the app."""
        self.look_at_tasks: LookAtTasks | None = None
        """Told of tasks that may be complete."""
        self.history = Recorder(backend, config.history_days)
        """The figures of the charts, written on the way and at a drain's end; code that only visits calls `flush`."""
        self.nonce_prefix = ""
        """The prefix of this process's nonces, if somebody has to recognize its leases."""
        self._renewers, self._survivors = LeaseRenewers(backend.node_of), Survivors()
        self._settings = VisitSettingsFactory(
            config,
            clock,
            queues,
            middlewares,
            renewers=self._renewers,
            slot_pool=lambda: self.slot_pool,
            after_settling=self._tell_settled,
            beside=self.history.beside,
        )
        self._limits_set: dict[str, float] = {}
        """Until when (monotonic) it counts that an operator has set limits, by queue."""
        self._whole_at: dict[str, float] = {}
        """When (monotonic) the shards of a queue are read whole again, by queue."""
        self._running: set[ShardVisit] = set()
        self._looking: set[ShardVisit] = set()
        """Those that have left their shard and complete tasks."""
        self._slot_pool: SlotPool | None = None
        self._lock = threading.RLock()
        self._beginning = threading.RLock()
        self._begun = False

    @property
    def backend(self) -> Backend:
        """The connections that drains go through."""
        return self._backend

    @property
    def running(self) -> int:
        """How many visits are under way, or complete the tasks whose items they ended."""
        with self._lock:
            return len(self._running) + len(self._looking)

    def begin(self) -> None:
        """Call the hook for the start of a process that drains: once, however often this is called."""
        # A thread that comes second waits until the hook is through; the hook itself may come here again.
        with self._beginning:
            if self._begun:
                return
            self._begun = True
            if self.config.release is not None:
                from lowkiq_lambda.store.shard.releases import note_release  # noqa: PLC0415 - most apps name none

                note_release(self._backend, self.config.release)
            for hook in each_of(self.config.on_server_init):
                try:
                    hook()
                except Exception:
                    logger.exception("on_server_init raised")

    @property
    def slot_pool(self) -> "SlotPool":
        """The pool for batches that run side by side."""
        with self._lock:
            if self._slot_pool is None:
                from lowkiq_lambda.engine.slot_pool import SlotPool  # noqa: PLC0415 - imported lazily: cold start

                self._slot_pool = SlotPool(self.clock, self.config.loop_factory, self._middlewares)
            return self._slot_pool

    def end(self) -> None:
        """Let the threads go that it has begun; nothing is drained any more."""
        self._renewers.end()
        if self._slot_pool is not None:
            self._slot_pool.end()

    def is_on_handlers_loop(self) -> bool:
        """Whether the thread that calls would keep coroutine handlers from running if it waited for them."""
        return any(is_coroutine(queue.worker) for queue in self._queues.values()) and self.slot_pool.loop.is_here()

    def now(self, shard: ShardRef) -> float:
        """Unix seconds by the shard's own server. Raises BackendError if it has to be asked and can't."""
        return self._backend.now(shard)

    def shards(self) -> list[ShardRef]:
        """All shards, in order of the workers' declaration (L-57)."""
        return [shard for queue in self._queues.values() for shard in queue.shards]

    @property
    def layout(self) -> list[QueueShards]:
        """The shards of each queue, as far as is known: other ones once a queue is seen to be resharded."""
        return [queue.shards for queue in self._queues.values()]

    def learn(self, names: Iterable[str], retry_for: float) -> bool:
        """Find out which shards the queues have now; whether Redis could tell of each."""
        is_known = True
        for name in names:
            try:
                self._queues[name].look_again(self._backend, retry_for)
            except (BackendError, QueueMismatch):
                is_known = False
        return is_known

    @property
    def weights(self) -> dict[str, float]:
        """How much the lag of queues counts, by name, if it is not 1."""
        workers = [queue.worker for queue in self._queues.values()]
        return {worker.queue_name: worker.weight for worker in workers if worker.weight != 1}

    def probe(self, shards: Sequence[ShardRef], retry_for: float = 0.0) -> list[ProbeResult]:
        """The work that waits in each shard, in one round trip for each node, which also shows new declarations.

        Raises QueueMismatch, and BackendError if Redis cannot serve for `retry_for` seconds.
        """
        queues = [self._queues[name] for name in dict.fromkeys(shard.queue_name for shard in shards)]
        for queue in queues:
            self._ensure_declared(queue, retry_for)
        self.history.hand_over_if_due()
        look = DeclarationLook({queue.worker.queue_name: queue.stored for queue in queues})
        states = probe(self._backend, shards, retry_for, look, whole=self._looks_whole(queues))
        if self._survivors.tell(shards):
            states = probe(self._backend, shards, retry_for, look)
        for name in look.changed:
            self._queues[name].note_change()
        self.learn(look.changed, 0.0)
        return self._noting_closed(states)

    def _looks_whole(self, queues: Iterable[Queue]) -> bool:
        """Whether shards without jobs are read whole, too: they may keep items of tasks, whose end is looked after."""
        now, names = self.clock.monotonic(), [queue.worker.queue_name for queue in queues]
        is_due = any(now >= self._whole_at.get(name, -math.inf) for name in names)
        if is_due:
            self._whole_at.update(dict.fromkeys(names, now + WHOLE_LOOK))
        return is_due

    def visit(self, shard: ShardRef, budget: Budget) -> VisitResult:
        """Drain a shard as far as the budget allows; see `ShardVisit.visit` for what it raises."""
        queue = self._queues[shard.queue_name]
        self._ensure_declared(queue, min(self.config.redis_retry_for, budget.remaining()))
        self.begin()
        visit = self._new_visit(queue, shard, budget)
        with self._lock:
            self._running.add(visit)
        try:
            with self._survivors.watch(visit.session):
                result = visit.visit()
        except ShardClosed:
            # Closed, or opened for another merge: the declaration says which, and raises if it is not ours.
            queue.doubt()
            self._ensure_declared(queue, 0.0)
            return VisitResult("empty")
        except ShardMoving:
            # Some of its jobs have not arrived: the process that moves the last one announces the work.
            return VisitResult("empty")
        finally:
            with self._lock:
                self._running.discard(visit)
                self._looking.add(visit)
            try:
                # Only now: other holders may have the shard meanwhile.
                if visit.session.ended_tasks and self.look_at_tasks:
                    self.look_at_tasks(visit.session.ended_tasks, budget.remaining)
            finally:
                with self._lock:
                    self._looking.discard(visit)
        if result.reason == "limited" and visit.admission is None:
            # Limits were set at run time: another visit asks for a permit first.
            self._limits_set[shard.queue_name] = self.clock.monotonic() + LIMITS_KNOWN_FOR
            return self.visit(shard, budget).after(result)
        return result

    def ready_in(self, shard: ShardRef, result: VisitResult) -> float | None:
        """In how many seconds a visit left work for another; None if it does not tell. Raises BackendError."""
        return None if result.until is None else result.until - self.now(shard)

    def probe_each(self, shards: Sequence[ShardRef], retry_for: float) -> dict[ShardRef, ProbeResult | LowkiqError]:
        """As `probe`, but what is wrong with one shard stands in its place, and the others have their result."""
        # This may be the last probe of the drain.
        self.history.hand_over()
        undeclared: dict[str, LowkiqError] = {}
        for name in {shard.queue_name: None for shard in shards}:
            try:
                self._ensure_declared(self._queues[name], retry_for)
            except (BackendError, QueueMismatch) as error:
                undeclared[name] = error
                # An unreachable server is waited for once, not once for each queue.
                retry_for = 0.0 if isinstance(error, BackendError) else retry_for
        declared = [shard for shard in shards if shard.queue_name not in undeclared]
        results = dict(zip(declared, probe_each(self._backend, declared, retry_for), strict=True))
        notices = self._survivors.tell(shard for shard, result in results.items() if isinstance(result, ProbeResult))
        results |= zip(notices, probe_each(self._backend, notices, retry_for), strict=True) if notices else ()
        self._noting_closed([*results.values()])
        return {shard: results[shard] if shard in results else undeclared[shard.queue_name] for shard in shards}

    def running_jobs(self) -> list[dict[str, object]]:
        """The batches that visits perform, each as the fields of a log line: queue, shard, count, ids."""
        with self._lock:
            visits = list(self._running)
        return [fields for visit in visits if (fields := visit.running_jobs())]

    def running_batches(self) -> list[tuple[dict[str, object], float]]:
        """The same, each with the time when it began (monotonic)."""
        with self._lock:
            visits = list(self._running)
        return [(fields, visit.running_since()) for visit in visits if (fields := visit.running_jobs())]

    def ring(self, shards: Iterable[ShardRef]) -> None:
        """Jobs were pushed to these: visits to them that have room for more look at once."""
        with self._lock:
            visits = [visit for visit in self._running if visit.ref in shards]
        for visit in visits:
            visit.ring()

    def ask(self, shards: Iterable[ShardRef]) -> None:
        """Operators want something of ids that run in these: visits to them ask what it is."""
        with self._lock:
            visits = [visit for visit in self._running if visit.ref in shards]
        for visit in visits:
            with suppress(BackendError):
                self._renewers.of(visit.ref).hurry(visit.ref)

    def abandon_all(self, seconds: float) -> None:
        """Before the process exits: what runs is marked as abandoned, its shards are free after `seconds`."""
        with self._lock:
            running = list(self._running)
        for visit in running:
            visit.abandon(seconds)

    def _noting_closed(self, states: list[Seen]) -> list[Seen]:
        """The states; if a shard is not open its queue's declaration is read anew, now or at the next look."""
        closed = [state.ref for state in states if isinstance(state, ProbeResult) and not state.is_open]
        for shard in closed:
            self._queues[shard.queue_name].doubt_for(shard)
        self.learn({shard.queue_name for shard in closed}, 0.0)
        return states

    def _ensure_declared(self, queue: Queue, retry_for: float) -> None:
        queue.ensure_declared(self._backend, retry_for)

    def _new_visit(self, queue: Queue, shard: ShardRef, budget: Budget) -> ShardVisit:
        """A visit. It asks the queue for a permit first if that seems to be limited; then its nonce ends with `+`."""
        settings = self._settings.of(queue)
        has_limits = self._limits_set.get(shard.queue_name, -math.inf) > self.clock.monotonic()
        has_permit = has_limits or settings.limits is not None
        nonce = self.nonce_prefix + os.urandom(12).hex() + ("+" if has_permit else "")
        session = LeaseSession(self._backend, shard, nonce, settings.lease)
        admission = self._admission(settings, shard, budget, nonce) if has_permit else None
        now = partial(self._backend.now, shard)
        if settings.slots is None:
            return ShardVisit(settings, session, budget, now, admission)
        from lowkiq_lambda.engine.side_by_side import ConcurrentVisit  # noqa: PLC0415 - imported lazily: cold start

        return ConcurrentVisit(settings, session, budget, now, admission, settings.slots)

    def _admission(self, settings: VisitSettings, shard: ShardRef, budget: Budget, nonce: str) -> "Admission":
        from lowkiq_lambda.engine.admission import Admission  # noqa: PLC0415 - only limited queues have a use for it
        from lowkiq_lambda.store.shard.admitting import NO_LIMITS, PermitSession  # noqa: PLC0415 - as above

        ttl = settings.lease.ttl
        permit = PermitSession(self._backend, shard, nonce, settings.limits or NO_LIMITS, ttl)
        return Admission(permit, budget, ttl, settings.ids_in, queues_before(settings.worker))

    def _tell_settled(self, event: SettledEvent) -> None:
        self.history.note(event)
        for observer in (*self.observers, *([self.observer] if self.observer else ())):
            try:
                observer.settled(event)
            except hook_errors() as error:
                logger.error("the observer of settlings raised", exc_info=loggable(error))  # noqa: TRY400 - a cut traceback is logged
