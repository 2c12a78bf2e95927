"""An app under test: drains on command, on a real server, by a clock that the test moves."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from lowkiq_lambda.app import Lowkiq, for_each_app, no_longer_for_each_app
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.engine.results import Strictness
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.operate.acts.forgetting import forget_all_keys
from lowkiq_lambda.settings.protocols import Jobs
from lowkiq_lambda.testing.assertions import Assertions
from lowkiq_lambda.testing.clock import ManualClock
from lowkiq_lambda.testing.crashes import Crashes, CrashPoint
from lowkiq_lambda.testing.server import OwnServer
from lowkiq_lambda.testing.watching import Drained, Watcher, in_handler

if TYPE_CHECKING:
    from lowkiq_lambda.testing.fuzz.options import FuzzOptions
    from lowkiq_lambda.testing.fuzz.report import FuzzReport


class AppUnderTest(Assertions):
    """What the fixture `lowkiq` is. `app` and `clock` may be used, too."""

    def __init__(self, app: Lowkiq, clock: ManualClock, crashes: Crashes) -> None:
        super().__init__(app)
        self.clock = clock
        self._crashes = crashes
        self._one_drain = threading.Lock()

    def drain(self, *, raises: bool = True) -> Drained:
        """Perform what is due, and what becomes due by it, until nothing is; fire schedule entries that are due before.

        With `raises` what a handler raised first is raised again once all is done, and JobFailed for an id that failed
        otherwise. In `crash_after` nothing is, as nobody would be there to raise it. Raises RuntimeError in a handler.
        """
        if in_handler.get():
            raise RuntimeError("A handler calls lowkiq.drain(), which would wait for it: let the test drain.")
        with self._one_drain:
            return self.drain_within(raises=raises)

    @contextmanager
    def drain_alone(self) -> Iterator[bool]:
        """Whether no drain was under way; then none but `drain_within` may begin until the block ends."""
        is_alone = self._one_drain.acquire(blocking=False)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._one_drain.release()

    def drain_within(self, *, raises: bool = True) -> Drained:
        """As `drain`, in a block of `drain_alone`."""
        watcher = Watcher(self._crashes)
        with watcher.watching(self.app):
            if self.app.core.housekeeping.fires_schedules:
                self.app.schedules.tick()
            try:
                self.app.drain()
            except BackendUnavailable:
                if not self._crashes.crashing:
                    raise
        if raises and watcher.failed and not self._crashes.crashing:
            raise watcher.failure(self.app)
        return watcher.drained

    async def adrain(self, *, raises: bool = True) -> Drained:
        """As `drain`, for a test that is a coroutine: its loop goes on meanwhile, and coroutine handlers run on it."""
        self.app.use_loop(asyncio.get_running_loop())
        try:
            return await asyncio.to_thread(self.drain, raises=raises)
        finally:
            self.app.use_loop(None)

    def advance(self, *, seconds: float = 0.0, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0) -> None:
        """Let time pass. Nothing is performed by that: `drain` is called for it."""
        by = seconds + 60.0 * minutes + 3_600.0 * hours + 86_400.0 * days
        if by < 0:
            raise ValueError("time only goes forward: give a number of at least 0")
        self.clock.advance(by)

    @contextmanager
    def crash_after(self, worker: AnyWorker, point: CrashPoint = "after_handler") -> Iterator[None]:
        """Let the process die that drains this queue in the block; behind it, time has passed and others take over.

        By default its handler has run, and its result never reaches Redis: the next drain has the same jobs again.
        """
        queue = self._queue(worker)
        crashing, name = self._crashes.crashing, queue.worker.queue_name
        before = crashing.get(name)
        crashing[name] = point
        try:
            yield
        finally:
            del crashing[name]
            if before:
                # Within another such block: there the processes go on to die.
                crashing[name] = before
            self._let_it_be_dead(queue)

    def deliver_twice(self, worker: AnyWorker) -> Drained:
        """Have the handler get everything twice that is due: its process dies after it, and another one takes over."""
        with self.crash_after(worker):
            self.drain()
        return self.drain()

    def fuzz(self, worker: AnyWorker, **options: Unpack["FuzzOptions"]) -> "FuzzReport":
        """Try to refute that repeats, deaths, freezes, late versions and merging do no harm to the worker's handler.

        The real engine performs scenarios with faults, and each has to end as a plain run ends; docs/fuzzing.md has the
        options. The queue is emptied. Raises FuzzFailed with the story of a difference, and ConfigError if the
        handler cannot be judged.
        """
        __tracebackhide__ = True
        from lowkiq_lambda.testing.fuzz.run import fuzz_or_raise  # noqa: PLC0415 - few tests have a use for it

        return fuzz_or_raise(self.app, self.clock, worker, options)

    def _queue(self, worker: AnyWorker) -> Queue:
        return self.app.core.queues.agreed(worker)

    def _let_it_be_dead(self, queue: Queue) -> None:
        client = self.app.core.backend.client
        for shard in queue.shards:
            # It lives by the server's clock, which no test can move.
            client.delete(shard.key("lease"))
        self.clock.advance(self.app.config.lease_ttl + 1.0)
        self.app.core.drains.drop()


@contextmanager
def app_under_test(app: Lowkiq, server: OwnServer) -> Iterator[AppUnderTest]:
    """The app on that server, which is emptied before; afterwards it is as it was.

    Settings stay, but for those that reach out: no drain is started elsewhere by a push.
    """
    crashes, clock = Crashes(), ManualClock()
    server.clear()
    with _refusing_lists(), app.core.rebound(server.settings_for(app.config), clock, new_backend=crashes.backend):
        yield AppUnderTest(app, clock, crashes)


@contextmanager
def _refusing_lists() -> Iterator[None]:
    """A list that a `perform_job` returns is an error, and not a warning."""
    before, Strictness.refuses_lists = Strictness.refuses_lists, True
    try:
        yield
    finally:
        Strictness.refuses_lists = before


@contextmanager
def inline(kit: AppUnderTest) -> Iterator[AppUnderTest]:
    """The app under test, which drains after each push until the block ends; errors of handlers leave the push."""
    performing = _Performing(kit)
    kit.app.client_middlewares.insert(0, performing)
    try:
        yield kit
    finally:
        kit.app.client_middlewares.remove(performing)


class _Performing:
    """The outermost client middleware."""

    def __init__(self, kit: AppUnderTest) -> None:
        self._kit = kit
        self._is_due = False

    def __call__(self, _worker: type[Worker[Any]], _jobs: Jobs, call_next: Callable[..., list[Pushed]]) -> list[Pushed]:
        """Push, then drain; within a handler the running drain performs it, or the push that began it looks again."""
        pushed = call_next()
        self._is_due = True
        while self._is_due:
            with self._kit.drain_alone() as is_alone:
                if not is_alone:
                    break
                self._is_due = False
                self._kit.drain_within()
        return pushed


def forget_keys(*apps: Lowkiq) -> int:
    """Forget all keys of jobs (`key`) that were pushed to the queues of these apps, or of all apps of the process.

    So one test's pushes do not count as repeats of another's. Returns how many were remembered. Raises BackendError.
    """
    all_apps: list[Lowkiq] = []
    if not apps:
        for_each_app(all_apps.append)
        no_longer_for_each_app(all_apps.append)
    return sum(forget_all_keys(app.operate(worker).reader) for app in apps or all_apps for worker in app.workers)
