"""Loops that are not the app's own: of tests, of web servers; and what becomes of jobs when one of them ends."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.event_loop import LoopCall
from lowkiq_lambda.engine.side_by_side import ConcurrentVisit
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.beside import TIMEOUT
from tests.kit.coroutines import declare_async, running_loop, visit
from tests.kit.deaths import outlive, outlive_gone
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of


def pass_through(_worker: Worker, _batch: Batch, call_next: Callable[[], object]) -> object:
    """A plain middleware: each batch has a thread that waits for its coroutine."""
    return call_next()


@pytest.fixture
def quick_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that stands still is given up soon."""
    for module in ("event_loop", "loop_slots"):
        monkeypatch.setattr(f"lowkiq_lambda.engine.{module}.STANDSTILL", 0.05)


def calls_of(app: Lowkiq) -> list[LoopCall]:
    """Those that run."""
    visits = [visit for visit in list(app.core.drains.drainer._running) if isinstance(visit, ConcurrentVisit)]
    calls = [running.call for visit in visits for running in list(visit._slots.running._batches)]
    return [call for call in calls if isinstance(call, LoopCall)]


@pytest.mark.usefixtures("quick_to_give_up")
@pytest.mark.parametrize("middlewares", [[], [pass_through]])
@pytest.mark.parametrize("how", ["stopped", "closed"])
def test_p1_a_loop_that_ends_under_its_handlers_ends_the_visit(
    make_app: MakeApp,
    clock: ManualClock,
    queue_name: str,
    how: str,
    middlewares: list[Callable[..., object]],
) -> None:
    """P1: the drain says why, and what ran is given back, but to others only when the lease has ended."""
    app = make_app()
    app.server_middlewares += middlewares
    begun: list[str] = []
    is_well = threading.Event()

    async def wait(batch: Batch) -> None:
        begun.extend(batch)
        if len(begun) == 2:
            loop.stop()
        if not is_well.is_set():
            await asyncio.sleep(TIMEOUT)

    worker = declare_async(app, queue_name, wait, concurrency=2)
    worker.push_many(jobs_of("abc"))
    with running_loop() as loop:
        app.use_loop(loop)
        if how == "closed":
            threading.Thread(target=lambda: eventually(lambda: not loop.is_running()) and loop.close()).start()
        with pytest.raises(RuntimeError, match=f"The event loop of handlers was {how} while they ran"):
            app.drain()
    app.use_loop(None)
    is_well.set()
    outlive_gone(app, clock, worker)
    assert {} == app.drain()
    outlive(app, clock, worker)

    assert {"done": 3, "recovered": 2} == app.drain()
    assert ["a", "b", "a", "b", "c"] == begun[:2] + sorted(begun[2:])


@pytest.mark.usefixtures("quick_to_give_up")
def test_p1_what_stood_still_finds_itself_cancelled(app: Lowkiq, queue_name: str) -> None:
    """P1: where somebody goes on with the loop later, handlers of the visit that gave up clean up, and no more."""
    events: list[str] = []

    async def wait(_batch: Batch) -> None:
        loop.stop()
        try:
            await asyncio.sleep(TIMEOUT)
            events.append("went on")
        finally:
            events.append("cleaned up")

    worker = declare_async(app, queue_name, wait)
    worker.push_many(jobs_of("a"))
    with running_loop() as loop:
        app.use_loop(loop)
        with pytest.raises(RuntimeError, match="was stopped while they ran"):
            app.drain()
        loop.run_until_complete(asyncio.sleep(0.01))

    assert ["cleaned up"] == events


def test_a_loop_may_stand_still_for_a_moment(app: Lowkiq, queue_name: str) -> None:
    """As that of a test does between a fixture and the test: the drain waits, and its handlers go on."""
    loop = asyncio.new_event_loop()
    events: list[str] = []

    async def wait(_batch: Batch) -> None:
        begun.set()
        await may_end.wait()
        events.append("ended")

    async def begin() -> "asyncio.Task[dict[str, int]]":
        task = asyncio.create_task(app.adrain())
        await begun.wait()
        return task

    async def go_on(task: "asyncio.Task[dict[str, int]]") -> dict[str, int]:
        may_end.set()
        return await task

    begun, may_end = asyncio.Event(), asyncio.Event()
    declare_async(app, queue_name, wait).push_many(jobs_of("a"))
    try:
        task = loop.run_until_complete(begin())
        assert {"done": 1} == loop.run_until_complete(go_on(task))
    finally:
        loop.close()
    assert ["ended"] == events


def test_what_is_bound_to_the_callers_loop_works_in_handlers(app: Lowkiq, queue_name: str) -> None:
    """As a fixture of pytest-asyncio or anyio is: made on the loop before, used by handlers, and after them."""

    async def pool() -> "asyncio.Queue[str]":
        queue: asyncio.Queue[str] = asyncio.Queue(1)
        await queue.put("connection")
        return queue

    async def use(batch: Batch) -> None:
        connection = await connections.get()
        await asyncio.sleep(0)
        used.extend(batch)
        await connections.put(connection)

    used: list[str] = []
    worker = declare_async(app, queue_name, use, concurrency=3)
    with asyncio.Runner() as runner:
        connections = runner.run(pool())
        for _ in range(2):
            runner.run(worker.apush_many(jobs_of("abc")))
            assert {"done": 3} == runner.run(app.adrain())
        assert "connection" == runner.run(connections.get())

    assert sorted("abcabc") == sorted(used)


def test_adrain_waits_however_often_it_is_cancelled(app: Lowkiq, queue_name: str) -> None:
    """A cancel scope of anyio cancels again and again; the caller goes on when the handler has cleaned up."""
    events: list[str] = []

    async def wait(_batch: Batch) -> None:
        begun.set()
        try:
            await asyncio.sleep(TIMEOUT)
        finally:
            cleaning.set()
            await cleaned.wait()
            events.append("cleaned up")

    async def go() -> None:
        task = asyncio.create_task(app.adrain())
        await begun.wait()
        task.cancel()
        await cleaning.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        cleaned.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        events.append("went on")

    begun, cleaning, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()
    worker = declare_async(app, queue_name, wait)
    worker.push_many(jobs_of("a"))
    asyncio.run(go())

    assert ["cleaned up", "went on"] == events
    assert look(app, worker, "a") is not None


@pytest.mark.usefixtures("quick_to_give_up")
def test_a_drain_whose_caller_is_gone_says_so(app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody is left to be told what came of it but the log."""
    declare_async(app, queue_name, lambda _batch: asyncio.sleep(TIMEOUT)).push_many(jobs_of("a"))
    loop = asyncio.new_event_loop()

    async def begin() -> "asyncio.Task[dict[str, int]]":
        task = asyncio.create_task(app.adrain())
        await asyncio.to_thread(eventually, app.core.drains.drainer.running_jobs)
        return task

    task = loop.run_until_complete(begin())
    loop.close()

    assert eventually(lambda: "a drain ended when the event loop of its caller was closed" in caplog.text)
    assert not task.done()


@pytest.mark.parametrize("middlewares", [[], [pass_through]])
def test_p5_a_batch_that_was_cut_begins_no_other_job(
    app: Lowkiq, clock: ManualClock, queue_name: str, middlewares: list[Callable[..., object]]
) -> None:
    """P5: one that heeds no cancellation ends its job, and the next one of its batch is returned."""
    app.server_middlewares += middlewares
    begun: list[str] = []
    told: list[bool] = []

    async def perform_job(_self: Worker, job: BatchJob) -> None:
        begun.append(job.id)
        clock.advance(11)
        try:
            await asyncio.sleep(TIMEOUT)
        except asyncio.CancelledError:
            told.append(job.stopping)

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, batch_size=2)
    worker.push_many(jobs_of("ab"))
    budget = Budget(clock, 10.0)
    budget.is_hard = True
    result = visit(app, worker, budget)

    assert ({"done": 1, "returned": 1}, ["a"], [True]) == (result.counts, begun, told)


def test_what_is_cancelled_before_it_began_counts_for_nothing(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Another handler blocked the loop until the time was over: five such times in a row are not its failure."""
    begun: list[str] = []

    async def block(batch: Batch) -> None:
        begun.extend(batch)
        eventually(lambda: len(calls_of(app)) == 2)
        clock.advance(seconds[-1] + 1)
        eventually(lambda: all(call.is_cancelled for call in calls_of(app)))

    worker = declare_async(app, queue_name, block, concurrency=2)
    counts, seconds, start = [], [10.0], clock.time()
    worker.push_many(jobs_of(["victim"]))
    for number in range(6):
        worker.push_many([{"id": f"{number}", "due_at": start - 10 + number}])
        # More than the last one took: else it would not begin.
        seconds.append(seconds[-1] * 4)
        budget = Budget(clock, seconds[-1])
        budget.is_hard = True
        counts.append(dict(visit(app, worker, budget).counts))

    assert [{"done": 1, "returned": 1}] * 6 == counts
    assert [*"012345"] == begun
