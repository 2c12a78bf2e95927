"""Coroutine handlers: their loop, their cancellation, and what becomes of them then."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, ConfigError, DeclarationError, Later, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.beside import TIMEOUT, wait_for
from tests.kit.coroutines import Handle, declare_async, running_loop, visit
from tests.kit.deaths import outlive, stop_renewing
from tests.kit.handlers import Broken, Notes
from tests.kit.looks import look
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of


def test_all_handlers_share_one_loop(app: Lowkiq, queue_name: str) -> None:
    """It has a thread of its own and lasts from drain to drain, so a client that a module keeps goes on working."""
    loops: list[tuple[str, int]] = []

    async def note(_batch: Batch) -> None:
        loops.append((threading.current_thread().name, id(asyncio.get_running_loop())))

    first = declare_async(app, queue_name, note, concurrency=3)
    second = declare_async(app, f"{queue_name}-2", note)
    for worker in (first, second, first):
        worker.push_many(jobs_of("abc"))
        assert {"done": 3} == app.drain()

    assert [("lowkiq-loop", loops[0][1])] * 9 == loops


def test_perform_job_may_be_one(app: Lowkiq, queue_name: str) -> None:
    """Each job is awaited, one after the other; each failure is its own, and one may be put off."""
    seen: list[str] = []

    async def perform_job(_self: Worker, job: BatchJob) -> None:
        await asyncio.sleep(0)
        seen.append(job.id)
        if job.id == "b":
            raise Broken("b is broken")
        if job.id == "c":
            raise Later(5)

    declare(app, queue_name, Notes(), perform_job=perform_job, batch_size=4).push_many(jobs_of("abcd"))

    counts = app.drain()
    assert (2, 1, 1) == (counts["done"], counts["retried"], counts["later"])
    assert [*"abcd"] == seen


def test_a_function_may_be_one(app: Lowkiq, queue_name: str) -> None:
    """`@app.worker` on an `async def` makes a worker, and the function can still be awaited."""
    seen: list[str] = []

    @app.worker(queue_name=queue_name, shards_count=1, concurrency=2)
    async def note(batch: dict[str, Any]) -> None:
        seen.extend(batch)

    note.push_many(jobs_of("a"))
    app.drain()
    coroutine = note({"b": []})
    assert asyncio.iscoroutine(coroutine)
    asyncio.run(coroutine)

    assert ["a", "b"] == seen


def test_loop_factory_makes_the_loop(make_app: MakeApp, queue_name: str) -> None:
    """The setting decides what kind of loop handlers run on."""
    made: list[asyncio.AbstractEventLoop] = []
    used: list[asyncio.AbstractEventLoop] = []

    def make() -> asyncio.AbstractEventLoop:
        made.append(asyncio.new_event_loop())
        return made[0]

    async def note(_batch: Batch) -> None:
        used.append(asyncio.get_running_loop())

    app = make_app(loop_factory=make)
    declare_async(app, queue_name, note).push_many(jobs_of("ab"))
    app.drain()

    assert (1, made * 2) == (len(made), used)


def test_use_loop_runs_handlers_on_a_loop_of_the_users(app: Lowkiq, queue_name: str) -> None:
    """What is bound to that loop can be used in handlers; with None they run on the app's own again."""
    used: list[asyncio.AbstractEventLoop] = []

    async def note(_batch: Batch) -> None:
        used.append(asyncio.get_running_loop())

    worker = declare_async(app, queue_name, note)
    with running_loop() as loop:
        app.use_loop(loop)
        worker.push_many(jobs_of("a"))
        app.drain()
        app.use_loop(None)
        worker.push_many(jobs_of("b"))
        app.drain()

    assert [True, False] == [one is loop for one in used]


def test_a_loop_that_cannot_run_handlers_is_refused(app: Lowkiq, queue_name: str) -> None:
    """Closed, or never started: nothing would ever begin."""
    worker = declare_async(app, queue_name, lambda _batch: asyncio.sleep(0))
    worker.push_many(jobs_of("a"))
    loop = asyncio.new_event_loop()
    app.use_loop(loop)
    with pytest.raises(RuntimeError, match=r"is not running: give another to app\.use_loop"):
        app.drain()
    loop.close()
    with pytest.raises(RuntimeError, match="is closed: give another to"):
        app.drain()
    app.use_loop(None)

    assert {"done": 1} == app.drain()


def test_a_blocking_drain_on_the_handlers_loop_is_refused(app: Lowkiq, queue_name: str) -> None:
    """It would wait for itself."""
    refused: list[str] = []

    async def drain(_batch: Batch) -> None:
        try:
            app.drain()
        except RuntimeError as error:
            refused.append(str(error))

    worker = declare_async(app, queue_name, drain, shards_count=2)
    worker.push_many(jobs_of("abcdefgh"))
    app.drain()

    assert {"A drain on the thread of its handlers' loop would wait for itself: await app.adrain()."} == set(refused)


def test_adrain_runs_handlers_on_the_loop_of_its_caller(app: Lowkiq, queue_name: str) -> None:
    """So they may use what is bound to it."""

    async def go() -> tuple[dict[str, int], bool]:
        loop, on_it = asyncio.get_running_loop(), list[bool]()

        async def note(_batch: Batch) -> None:
            on_it.append(asyncio.get_running_loop() is loop)

        worker = declare_async(app, queue_name, note, concurrency=3)
        await worker.apush_many(jobs_of("abc"))
        return await app.adrain(), all(on_it)

    assert ({"done": 3}, True) == asyncio.run(go())


def test_adrain_raises_as_drain_does(app: Lowkiq, queue_name: str) -> None:
    """A bad time, and what a handler exited with."""

    async def leave(_batch: Batch) -> None:
        raise SystemExit(3)

    declare_async(app, queue_name, leave).push_many(jobs_of("a"))

    with pytest.raises(ValueError, match="not nan"):
        asyncio.run(app.adrain(float("nan")))
    with pytest.raises(SystemExit):
        asyncio.run(app.adrain())


def test_adrain_that_is_cancelled_cancels_and_waits(app: Lowkiq, queue_name: str) -> None:
    """What runs cleans up before the caller goes on, and what did not end is as it was."""
    events: list[str] = []
    both = asyncio.Event()

    async def wait(_batch: Batch) -> None:
        events.append("began")
        if len(events) == 2:
            both.set()
        try:
            await asyncio.sleep(TIMEOUT)
        finally:
            await asyncio.sleep(0.01)
            events.append("cleaned up")

    worker = declare_async(app, queue_name, wait, concurrency=2)
    worker.push_many(jobs_of("abc"))

    async def go() -> None:
        task = asyncio.create_task(app.adrain())
        await both.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        events.append("went on")

    asyncio.run(go())
    assert ["began", "began", "cleaned up", "cleaned up", "went on"] == events
    assert [-1.0] * 3 == [found[2] for job_id in "abc" if (found := look(app, worker, job_id))]


class Cancelled:
    """Runs a worker of two jobs that are cancelled at the hard end of the budget, and tells what became of them."""

    def __init__(self, app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
        self.app, self.clock, self.queue_name = app, clock, queue_name

    def counts(self, then: Callable[[Batch], Awaitable[object]]) -> dict[str, int]:
        """Of a handler that is cancelled in its sleep, and does this then."""
        begun = threading.Barrier(2)

        async def handle(batch: Batch) -> None:
            try:
                await asyncio.to_thread(begun.wait, TIMEOUT)
                self.clock.advance(11)
                await asyncio.sleep(TIMEOUT)
            except asyncio.CancelledError:
                await then(batch)

        self.worker = declare_async(self.app, self.queue_name, handle, concurrency=2)
        self.worker.push_many(jobs_of("ab"))
        budget = Budget(self.clock, 10.0)
        budget.is_hard = True
        result = visit(self.app, self.worker, budget)
        assert result.exit is None
        return dict(result.counts)


@pytest.fixture
def cancelled(app: Lowkiq, clock: ManualClock, queue_name: str) -> Cancelled:
    """Jobs that are cancelled."""
    return Cancelled(app, clock, queue_name)


async def pass_on(_batch: Batch) -> None:
    """As most handlers do."""
    raise asyncio.CancelledError


async def end_well(_batch: Batch) -> None:
    """The work was done."""


async def fail_to_clean_up(_batch: Batch) -> None:
    """What comes of being cancelled."""
    raise Broken("the connection is closed")


async def fail(batch: Batch) -> None:
    """For a reason that has nothing to do with it."""
    for job_id in batch:
        batch.fail(job_id, "bad payload")


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (pass_on, {"returned": 2}),
        (end_well, {"done": 2}),
        (fail_to_clean_up, {"returned": 2}),
        (fail, {"retried": 2, "failed": 2}),
    ],
)
def test_what_a_cancelled_handler_does_decides(cancelled: Cancelled, then: Handle, expected: dict[str, int]) -> None:
    """It is done where it returns, returned where it was broken off, and failed where it says so (E-59)."""
    assert expected == cancelled.counts(then)


def test_a_job_that_is_cut_again_and_again_fails(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It goes behind others, and is no reason for each drain, for ever, to be cut."""

    async def handle(_batch: Batch) -> None:
        clock.advance(11)
        await asyncio.sleep(TIMEOUT)

    worker = declare_async(app, queue_name, handle)
    worker.push_many(jobs_of("a"))
    counts = []
    for _ in range(5):
        budget = Budget(clock, 10.0)
        budget.is_hard = True
        counts.append(dict(visit(app, worker, budget).counts))

    assert [{"returned": 1}] * 4 + [{"retried": 1, "failed": 1}] == counts


def test_p1_a_lost_lease_cancels(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: what runs without a lease is cancelled, its outcome is dropped, and no exit is told."""
    late, other = make_app(), make_app()
    stop_renewing(late, monkeypatch)
    ended: list[str] = []
    notes = Notes()

    async def oversleep(batch: Batch) -> None:
        # Without a pause: it cannot be cancelled before the other has the shard.
        outlive(late, clock, worker)
        other.drain()
        try:
            await asyncio.sleep(TIMEOUT)
        finally:
            ended.extend(batch)

    worker = declare_async(late, queue_name, oversleep)
    declare(other, queue_name, notes)
    worker.push_many(jobs_of("a"))
    result = visit(late, worker, Budget(clock))

    assert ("lease lost", {}, None, ["a"]) == (result.reason, result.counts, result.exit, ended)
    assert [["a"]] == notes.ids


def test_the_stop_signal_cancels_before_the_process_ends(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """At first what runs may end; with little left of `shutdown_timeout` it is cancelled, and is as it was."""
    stop = threading.Event()
    at: list[float] = []

    async def wait(batch: Batch) -> None:
        stop.set()
        began_at = clock.monotonic()
        try:
            while True:
                clock.advance(0.5)
                await asyncio.sleep(0.12)
        finally:
            at.append(clock.monotonic() - began_at if batch.stopping else 0.0)

    app.core.configure(shutdown_timeout=3.0)
    worker = declare_async(app, queue_name, wait)
    worker.push_many(jobs_of("a"))
    result = visit(app, worker, Budget(clock, stopping=stop.is_set))

    assert ("stopping", {"returned": 1}) == (result.reason, result.counts)
    assert 2.0 <= at[0] <= 4.0
    assert [-1.0] == [found[2] for found in [look(app, worker, "a")] if found]


def test_e54_a_cancellation_that_nobody_asked_for_returns_the_job(app: Lowkiq, queue_name: str) -> None:
    """E-54: a cancel scope that leaks ends neither the visit nor other batches."""

    async def leak(batch: Batch) -> None:
        if "a" in batch:
            raise asyncio.CancelledError

    worker = declare_async(app, queue_name, leak, concurrency=2)
    worker.push_many(jobs_of("abcd"))
    with pytest.raises(asyncio.CancelledError):
        app.drain()

    assert [True, False, False, False] == [look(app, worker, job_id) is not None for job_id in "abcd"]


def test_an_exit_in_a_task_of_a_handler_ends_its_batch_alone(app: Lowkiq, queue_name: str) -> None:
    """It comes out of the loop, which runs on: the others end well, and so does the next drain."""

    async def exits() -> None:
        raise SystemExit

    async def handle(batch: Batch) -> None:
        if "a" in batch:
            await asyncio.create_task(exits())
        await asyncio.sleep(0.01)

    worker = declare_async(app, queue_name, handle, concurrency=4)
    worker.push_many(jobs_of("abcd"))
    with pytest.raises(SystemExit):
        app.drain()

    assert [True, False, False, False] == [look(app, worker, job_id) is not None for job_id in "abcd"]
    worker.push_many(jobs_of("e"))
    with pytest.raises(SystemExit):
        app.drain()
    assert look(app, worker, "e") is None


def test_a_timeout_of_the_handlers_own_is_a_failure(app: Lowkiq, queue_name: str) -> None:
    """It is a TimeoutError as any other."""

    async def handle(_batch: Batch) -> None:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(TIMEOUT)

    declare_async(app, queue_name, handle).push_many(jobs_of("a"))

    assert {"retried": 1, "failed": 1} == app.drain()


@pytest.mark.parametrize(
    ("errors", "expected"),
    [([SystemExit(), asyncio.CancelledError()], "returned"), ([SystemExit(), Broken("b")], "retried")],
)
def test_a_group_of_interruptions_is_one(
    app: Lowkiq, queue_name: str, errors: list[BaseException], expected: str
) -> None:
    """With a failure among them it is a failure."""

    async def handle(_batch: Batch) -> None:
        raise BaseExceptionGroup("several", errors)

    worker = declare_async(app, queue_name, handle)
    worker.push_many(jobs_of("a"))

    assert expected in visit(app, worker, Budget(app.core.drains.drainer.clock)).counts


def test_a_handler_that_does_not_heed_its_cancellation_is_logged(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The visit waits for it, and the log tells at which line it is."""
    monkeypatch.setattr("lowkiq_lambda.engine.event_loop.PATIENCE", 0.0)

    async def swallow(_batch: Batch) -> None:
        clock.advance(11)
        try:
            await asyncio.sleep(TIMEOUT)
        except asyncio.CancelledError:
            await asyncio.to_thread(lambda: eventually(lambda: "goes on though it was cancelled" in caplog.text))

    worker = declare_async(app, queue_name, swallow)
    worker.push_many(jobs_of("a"))
    budget = Budget(clock, 10.0)
    budget.is_hard = True
    with caplog.at_level(logging.WARNING):
        result = visit(app, worker, budget)

    assert {"done": 1} == result.counts
    assert "in swallow" in caplog.text


def test_other_threads_keep_the_lease_of_a_blocked_loop(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler that blocks the loop for longer than the lease lasts does harm to nobody's order."""
    app = make_app(lease_ttl=0.3)
    blocked = threading.Event()

    async def block(_batch: Batch) -> None:
        renewals.append(0)
        wait_for(blocked)

    renewals: list[int] = []
    worker = declare_async(app, queue_name, block)
    worker.push_many(jobs_of("a"))
    renewer = app.core.drains.drainer._renewers.of(app.core.queues.agreed(worker).shards[0])
    renew = renewer._renew

    def count(*given: Any) -> None:
        renew(*given)
        renewals.append(1)
        if sum(renewals) >= 3:
            blocked.set()

    monkeypatch.setattr(renewer, "_renew", count)
    threading.Thread(target=_tick, args=(clock, blocked), daemon=True).start()

    assert {"done": 1} == app.drain()
    assert 3 <= sum(renewals)


def _tick(clock: ManualClock, ends: threading.Event) -> None:
    while not ends.wait(0.01):
        clock.advance(0.01)


class Trace:
    """Middlewares that note when they are passed."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def plain(self, _worker: Worker, _batch: Batch, call_next: Callable[[], object]) -> object:
        """A plain one, which sees the error."""
        self.events.append(f"plain in {threading.current_thread().name[:11]}")
        try:
            return call_next()
        except Broken:
            self.events.append("plain saw it")
            raise

    async def awaited(self, _worker: Worker, _batch: Batch, call_next: Callable[[], Awaitable[object]]) -> object:
        """A coroutine function, on the loop."""
        self.events.append(f"awaited in {threading.current_thread().name[:11]}")
        return await call_next()


@pytest.mark.parametrize("error", [None, Broken("no")])
def test_middlewares_of_both_kinds_are_around_a_coroutine(
    app: Lowkiq, queue_name: str, error: Exception | None
) -> None:
    """Plain ones wait in a thread, coroutine functions run on the loop; both see how the handler ends."""
    trace = Trace()
    app.server_middlewares += [trace.plain, trace.awaited]

    async def handle(_batch: Batch) -> None:
        trace.events.append(f"handler in {threading.current_thread().name[:11]}")
        if error:
            raise error

    declare_async(app, queue_name, handle).push_many(jobs_of("a"))
    counts = app.drain()

    names = ["plain in lowkiq-slot", "awaited in lowkiq-loop", "handler in lowkiq-loop"]
    assert [*names, *(["plain saw it"] if error else [])] == trace.events
    assert ({"retried": 1, "failed": 1} if error else {"done": 1}) == counts


def test_an_exit_passes_plain_middlewares(app: Lowkiq, queue_name: str) -> None:
    """E-54: from the loop through the thread: the job is returned, and the exit is told."""
    app.server_middlewares.append(Trace().plain)

    async def leave(_batch: Batch) -> None:
        raise SystemExit(2)

    worker = declare_async(app, queue_name, leave)
    worker.push_many(jobs_of("a"))
    result = visit(app, worker, Budget(app.core.drains.drainer.clock))

    assert ["returned"] == [*result.counts]
    assert isinstance(result.exit, SystemExit)


def test_a_cancellation_passes_plain_middlewares(cancelled: Cancelled) -> None:
    """The coroutine is cancelled, and the thread that waits for it goes on."""
    cancelled.app.server_middlewares.append(Trace().plain)

    assert {"returned": 2} == cancelled.counts(pass_on)


def test_middlewares_that_cannot_be_around_a_handler_are_refused(app: Lowkiq, queue_name: str) -> None:
    """A plain handler is called by plain ones, and a plain one cannot await."""
    trace = Trace()
    app.server_middlewares += [trace.awaited, trace.plain]
    declare_async(app, queue_name, lambda _batch: asyncio.sleep(0))
    with pytest.raises(ConfigError, match=r"plain is a plain function within awaited, .*: put plain ones first"):
        app.drain()
    declare(app, f"{queue_name}-2", Notes())
    with pytest.raises(ConfigError, match="awaited is a coroutine function, and Noting has a plain handler"):
        app.drain()


def test_a_client_middleware_that_is_a_coroutine_function_is_refused(app: Lowkiq, queue_name: str) -> None:
    """A push calls it, and does not await."""

    async def awaited(_worker: Worker, _jobs: object, call_next: Callable[[], object]) -> object:
        return call_next()

    app.client_middlewares.append(awaited)
    worker = declare(app, queue_name, Notes())

    with pytest.raises(DeclarationError, match="A client middleware is a coroutine function: around a push"):
        worker.push_many(jobs_of("a"))
