"""The world of a scenario: the app under test on its real server, processes that come and go, and time by hand."""

import copy
import gc
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.declare import worker as worker_module
from lowkiq_lambda.declare.worker import Worker, has_limits
from lowkiq_lambda.engine import deciding as deciding_module
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.settings.protocols import Jobs
from lowkiq_lambda.store.shard.keys import IN_USE, QueueRef, ShardRef
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.testing.clock import ManualClock
from lowkiq_lambda.testing.fuzz.forked import ForkedDrain
from lowkiq_lambda.testing.fuzz.observed import Observed, Subject, Surroundings
from lowkiq_lambda.testing.fuzz.plan import DrainStep, Fault, Plan, PushStep
from lowkiq_lambda.testing.fuzz.process import (
    Delivered,
    FuzzProcess,
    HandlerCalledTooOften,
    ProcessBackend,
    SimulatedDeath,
    current,
)

MOST_CALLS: Final = 200
"""Calls of the handler in one scenario."""
_YOUNG: Final = 1
"""The second of the collector's generations."""
_MOST_ROUNDS: Final = 60
"""Drains at the end of a scenario, each at the time of the next job."""
_STAYS: Final = ("meta",)
"""Keys of a shard that a scenario leaves to the next one: to declare queues anew costs half of a scenario."""


class World:
    """Runs scenarios, one at a time, of one worker of the app under test."""

    def __init__(
        self,
        app: Lowkiq,
        clock: ManualClock,
        subject: Subject,
        surroundings: Surroundings,
    ) -> None:
        self._app = app
        self._clock = clock
        self._core = app.core
        self._worker = subject.worker
        self._pool = subject.pool
        self._user_code = subject.user_code
        self._versions = subject.versions
        self._surroundings = surroundings
        self._observed = Observed()
        self._touched: dict[str, Queue] = {}
        self._emptied: tuple[tuple[str, ...], list[str]] = ((), [])
        """The queues and features whose keys these are."""
        self._frozen: tuple[FuzzProcess, threading.Thread | ForkedDrain] | None = None
        self._forks = False
        self._has_begun = False
        self._config = app.config

    @contextmanager
    def opened(self) -> Iterator[None]:
        """In the block scenarios may run: the app's pushes are watched, and its log is silent."""
        logger = logging.getLogger("lowkiq_lambda")
        level = logger.level
        logger.setLevel(logging.CRITICAL + 1)
        self._app.client_middlewares.insert(0, self._watch_push)
        concurrency = self._worker.__dict__.get("concurrency")
        # Side by side, batches would come to their points in another order each time.
        self._worker.concurrency = 1
        try:
            with warnings.catch_warnings():
                # A dead process closes nothing.
                warnings.simplefilter("ignore", ResourceWarning)
                try:
                    yield
                finally:
                    # Its open connections are in circles. Collected later, they would warn in somebody else's test.
                    gc.collect()
        finally:
            if concurrency is None:
                del self._worker.concurrency
            else:
                self._worker.concurrency = concurrency
            self._app.client_middlewares.remove(self._watch_push)
            self._empty()
            logger.setLevel(level)

    def run(self, plan: Plan, *, records: bool = False, forks: bool = False) -> Observed:
        """Run a scenario; what came of it. If it `forks`, each drain is a child, and deaths are kills."""
        self._forks = forks
        self._observed = observed = Observed()
        self._empty()
        self._surroundings.reset()
        for rng in (worker_module._rng, deciding_module._rng):  # noqa: SLF001 - the jitter of retries orders ids
            rng.seed(0)
        try:
            self._play(plan, records=records)
        except HandlerCalledTooOften:
            observed.never_ends = True
        finally:
            self._thaw()
        observed.state = copy.deepcopy(self._surroundings.state())
        observed.effects = {name: [*read()] for name, read in self._surroundings.effects.items()}
        return observed

    def _play(self, plan: Plan, *, records: bool) -> None:
        for step in plan:
            if isinstance(step, PushStep):
                self._push(step)
            elif isinstance(step, DrainStep):
                self._drain(step.fault, records=records)
            else:
                self._thaw()
        self._thaw()
        self._finish()

    def _push(self, step: PushStep) -> None:
        if not self._versions:
            # Scores are times then.
            self._clock.advance(1.0)
        score = {"score": step.score} if self._versions else {}
        self._worker.push_many([{"id": step.id, "payload": self._pool[step.payload], **score}])

    def _drain(self, fault: Fault | None, *, records: bool) -> None:
        if fault is not None and fault.kind == "freeze":
            self._thaw()
        if self._worker.debounce is not None:
            self._clock.advance(self._worker.debounce.at_most)
        process = self._new_process(fault, records=records)
        if self._forks:
            self._fork(process, [self._queue])
        elif fault is None or fault.kind != "freeze":
            self._run_drain(process, [self._queue])
        else:
            thread = threading.Thread(target=self._run_frozen, args=(process,), name="lowkiq-fuzz", daemon=True)
            thread.start()
            process.halted.wait()
            if process.has_fired:
                self._frozen = process, thread
                self._let_lease_end()
            else:
                thread.join()
        observed = self._observed
        observed.points.append(process.points)
        observed.places.append(process.place)
        self._note_end(process)
        if process.has_fired and fault is not None:
            observed.fired.append(fault)
        if observed.never_ends:
            raise HandlerCalledTooOften

    def _new_process(self, fault: Fault | None, *, records: bool = False) -> FuzzProcess:
        process = FuzzProcess(self._worker, fault, self._user_code, self._note_call, records=records)
        process.lock_is_awaited = self._surroundings.lock_is_awaited
        if self._frozen is not None:
            self._frozen[0].other = process
        return process

    def _run_frozen(self, process: FuzzProcess) -> None:
        try:
            self._run_drain(process, [self._queue])
        finally:
            process.halted.set()

    def _run_drain(self, process: FuzzProcess, queues: list[Queue]) -> None:
        """One drain of these queues by the process, as the loop of `app.drain` does it."""
        drainer = self._drainer(process)
        shards: list[ShardRef] = [shard for queue in queues for shard in queue.shards]
        config = self._app.config
        try:
            Loop(drainer, lambda: shards).run(Budget(self._clock, config.visit_seconds, stopping=process.stopping))
        except SimulatedDeath:
            process.is_dead = True
        finally:
            drainer.end()
        if process.is_dead:
            # A dead process holds nothing: connections in variables of its handler end, and so do their locks. They are
            # young, and in circles with the exception and with themselves.
            gc.collect(_YOUNG)
            self._surroundings.release()
            self._let_lease_end()

    def _fork(self, process: FuzzProcess, queues: list[Queue]) -> None:
        """As `_run_drain`, in a child of its own. Raises ConfigError if the child breaks."""

        def run() -> None:
            # Clients of redis-py notice the fork, and connect anew.
            self._surroundings.begin_in_child()
            self._run_drain(process, queues)

        drain = ForkedDrain(
            process,
            self._observed,
            clock=self._clock,
            touched=self._touched,
            queues=self._core.queues,
            run=run,
        )
        frozen = self._frozen[1] if self._frozen is not None else None
        end = drain.start(frozen if isinstance(frozen, ForkedDrain) else None)
        self._surroundings.after_child()
        if end == "halted":
            self._frozen = process, drain
        if end in ("dead", "halted"):
            self._let_lease_end()

    def _drainer(self, process: FuzzProcess) -> Drainer:
        core, clock = self._core, self._clock
        shared = core.backend
        backend = ProcessBackend(shared.client, clock, lambda: GivenTime(clock), clock.sleep, Random(0))  # noqa: S311 - spreads attempts
        backend.process, backend.prefix, backend.lease_ttl = process, shared.prefix, shared.lease_ttl
        drainer = Drainer(self._config, clock, backend, core.queues, [*core.drains.middlewares, process])
        drainer.observers = core.drains.observers
        drainer.look_at_tasks = core.drains.look_at_tasks
        if not self._has_begun:
            # Of each process that begins here, the first alone calls the hook: it sets up the process of the test.
            self._has_begun, self._config = True, core.config.evolve(on_server_init=())
        return drainer

    def _thaw(self) -> None:
        """Let the frozen process go on, to the end of its drain."""
        if self._frozen is None:
            return
        process, thread = self._frozen
        self._frozen = None
        process.go_on.set()
        thread.join()
        self._observed.was_waited_for |= process.was_waited_for
        self._observed.errors += process.errors
        self._let_lease_end()

    def _let_lease_end(self) -> None:
        client = self._core.backend.client
        client.delete(*(shard.key("lease") for shard in self._queue.shards))
        self._clock.advance(self._app.config.lease_ttl + 1.0)

    def _finish(self) -> None:
        """Drain without faults, at the time of each job that is due later, until no job is left."""
        for _ in range(_MOST_ROUNDS):
            due_at = self._next_due()
            if due_at is None:
                self._look_into_morgue()
                return
            self._clock.advance(max(due_at - self._clock.time(), 0.0) + 1.0)
            process = self._new_process(None)
            drain = self._fork if self._forks else self._run_drain
            drain(process, [*self._touched.values()])
            self._note_end(process)
            if self._observed.never_ends:
                return
        self._observed.never_ends = True

    def _next_due(self) -> float | None:
        """The time of the next job; None if no job waits, and none is in flight."""
        times = []
        client = self._core.backend.client
        shards = [shard for queue in self._touched.values() for shard in queue.shards]
        if not client.exists(*(shard.key(name) for shard in shards for name in ("due", "flight"))):
            return None
        for shard in shards:
            earliest: Any = client.zrange(shard.key("due"), 0, 0, withscores=True)
            times += [float(at) for _, at in earliest]
        return min(times, default=0.0)

    def _look_into_morgue(self) -> None:
        client = self._core.backend.client
        shards = self._queue.shards
        if not client.exists(*(shard.key("morgue") for shard in shards)):
            return
        morgue = self._app.operate(self._worker).morgue
        dead = morgue.fetch([job.id for job in morgue.list("id", limit=10)])
        self._observed.dead = sorted(job.id for job in dead)
        self._observed.killed = sorted(job.id for job in dead if any(failure.rule for failure in job.failures[:1]))

    def _empty(self) -> None:
        """Remove the jobs of the queues that were pushed to."""
        self._touched.setdefault(self._worker.queue_name, self._queue)
        backend = self._core.backend
        in_use = [name for name in IN_USE if backend.uses(name)]
        scope = (*self._touched, *in_use)
        if scope != self._emptied[0]:
            self._emptied = scope, self._all_keys(in_use)
        backend.client.delete(*self._emptied[1])

    def _all_keys(self, in_use: list[str]) -> list[str]:
        """The keys of all that a scenario may leave."""
        keys: list[str] = []
        for queue in self._touched.values():
            for shard in queue.shards:
                whole = shard.using(in_use)
                keys += {*whole.keys} - {whole.key(name) for name in _STAYS}
            if has_limits(queue.worker):
                limits = QueueRef(queue.worker.queue_name, self._core.backend.prefix)
                keys += [limits.key("permits"), limits.key("wait_list")]
        return keys

    @property
    def _queue(self) -> Queue:
        return self._core.queues.of(self._worker)

    def _note_call(self, call: Delivered) -> None:
        """Raises HandlerCalledTooOften."""
        self._observed.calls.append(call)
        if len(self._observed.calls) > MOST_CALLS:
            self._observed.never_ends = True
            raise HandlerCalledTooOften(f"{MOST_CALLS} calls of the handler in one scenario")

    def _note_end(self, process: FuzzProcess) -> None:
        self._observed.errors += process.errors
        self._observed.has_swallowed |= process.has_swallowed

    def _watch_push(
        self, worker: type[Worker[Any]], jobs: Jobs, call_next: Callable[..., list[Pushed]]
    ) -> list[Pushed]:
        """The outermost client middleware: a dead process pushes nothing. Raises SimulatedDeath."""
        process = current.get()
        if process is not None and process.is_dead:
            raise SimulatedDeath
        with suppress(LowkiqError):
            self._touched.setdefault(worker.queue_name, self._core.queues.of(worker))
        listed = [*jobs]
        pushed: list[Pushed] = call_next(worker, listed)
        if process is not None:
            self._observed.pushes += [
                f"{worker.queue_name} {one.id!r}: {dict(job).get('payload', '')!r}"
                for job, one in zip(listed, pushed, strict=True)
            ]
        return pushed
