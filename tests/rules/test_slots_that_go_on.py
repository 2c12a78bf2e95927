"""A slot that has ended a batch begins the next one by itself: how little that asks for, and what ends it."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.inbox import Inbox
from lowkiq_lambda.engine.side_by_side import ConcurrentVisit
from lowkiq_lambda.store.shard.session import LeaseSession
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.beside import Crowd, Declare, Gathering, declare_coroutines, declare_threads, wait_for
from tests.kit.coroutines import declare_async, running_loop, visit
from tests.kit.deaths import outlive
from tests.kit.handlers import Broken
from tests.kit.looks import left_behind, look
from tests.kit.waiting import eventually
from tests.kit.workers import jobs_of


@pytest.fixture(params=[declare_threads, declare_coroutines])
def declare(request: pytest.FixtureRequest) -> Declare:
    """Declares a worker whose calls run side by side."""
    declare_kind: Declare = request.param
    return declare_kind


def claimed_at_once(app: Lowkiq, worker: type[Worker]) -> None:
    """Its batches are known to be fast, so the first claim brings all that wait."""
    app.core.drains.drainer._settings.of(app.core.queues.agreed(worker)).timing.observe_run(0.0)


def only_visit(app: Lowkiq) -> ConcurrentVisit:
    """The one that is under way."""
    (visit,) = app.core.drains.drainer._running
    assert isinstance(visit, ConcurrentVisit)
    return visit


class Coordinator:
    """That of a visit, which looks at what ended only when the test lets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_look = threading.Event()
        self.calls: Counter[str] = Counter()
        """Rings that woke it, ends that it was told of, and settlings."""
        self.looks_after: int | None = None
        """So many ends, or when the test says so."""
        wait, ring, add, settle = Inbox.wait, Inbox.ring, Inbox.add, LeaseSession.settle

        def waiting(inbox: Inbox, seconds: float) -> bool:
            wait_for(self.may_look)
            return wait(inbox, seconds)

        def ringing(inbox: Inbox) -> None:
            self.calls["rings"] += not (inbox._has_rung or self.may_look.is_set())
            ring(inbox)

        def adding(inbox: Inbox, call: Callable[[], object]) -> None:
            add(inbox, call)
            self.calls["ends"] += 1
            if self.calls["ends"] == self.looks_after:
                self.may_look.set()

        def settling(*given: Any, **options: Any) -> Any:
            self.calls["settlings"] += 1
            return settle(*given, **options)

        monkeypatch.setattr(Inbox, "wait", waiting)
        monkeypatch.setattr(Inbox, "ring", ringing)
        monkeypatch.setattr(Inbox, "add", adding)
        monkeypatch.setattr(LeaseSession, "settle", settling)


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    """That of the only visit."""
    return Coordinator(monkeypatch)


def test_p8_a_hundred_slots_ask_once_for_all_their_jobs(
    app: Lowkiq, queue_name: str, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P8: the loop is woken once, the coordinator once, and what ended is written at once, by two calls of Redis."""
    ended: list[str] = []
    wakings: list[object] = []

    async def handle(batch: Batch) -> None:
        await asyncio.sleep(0)
        ended.extend(batch)
        if len(ended) == 400:
            coordinator.may_look.set()

    worker = declare_async(app, queue_name, handle, concurrency=100)
    worker.push_many([{"id": str(number)} for number in range(400)])
    claimed_at_once(app, worker)
    loop = app.core.drains.drainer.slot_pool.loop.get()
    wake = loop.call_soon_threadsafe

    def waking(call: Callable[..., object], *given: Any, **options: Any) -> Any:
        wakings.append(call)
        return wake(call, *given, **options)

    monkeypatch.setattr(loop, "call_soon_threadsafe", waking)

    assert {"done": 400} == app.drain()
    assert (1, 1) == (len(wakings), coordinator.calls["rings"])
    assert coordinator.calls["settlings"] <= 3


def test_threads_go_on_without_the_coordinator(app: Lowkiq, queue_name: str, coordinator: Coordinator) -> None:
    """As slots of the loop do: a thread takes the next batch where it has ended one."""

    def handle(_batch: Batch) -> None:
        if len(crowd.begun) == 40:
            coordinator.may_look.set()

    crowd = Crowd(handle)
    worker = declare_threads(app, queue_name, crowd)
    worker.push_many([{"id": str(number)} for number in range(40)])
    claimed_at_once(app, worker)

    assert {"done": 40} == app.drain()
    assert (1, []) == (coordinator.calls["rings"], crowd.overlaps)
    assert crowd.most <= 4


@pytest.mark.parametrize("cause", ["stopping", "out of time", "lease lost"])
def test_p2_what_waits_for_a_slot_is_returned_as_it_was(
    app: Lowkiq, clock: ManualClock, queue_name: str, declare: Declare, cause: str
) -> None:
    """P2, P5: a stop, the end of the time or of the lease lets no slot go on, and none of what waits counts as run."""
    stop = threading.Event()

    def lose() -> None:
        only_visit(app)._shard.lease.lose()

    causes: dict[str, Callable[[], object]] = {
        "stopping": stop.set,
        "out of time": lambda: clock.advance(11),
        "lease lost": lose,
    }

    def end(batch: Batch) -> None:
        gather(batch)
        waiting.append(len(only_visit(app)._slots))
        if "a" in batch:
            causes[cause]()
        gather(batch)

    gather, waiting = Gathering(2), list[int]()
    crowd = Crowd(end)
    worker = declare(app, queue_name, crowd, concurrency=2)
    worker.push_many(jobs_of("abcdefgh"))
    claimed_at_once(app, worker)
    result = visit(app, worker, Budget(clock, 10.0, stopping=stop.is_set))

    assert (cause, [*"ab"], [6, 6]) == (result.reason, sorted(crowd.begun), waiting)
    # Without a lease coroutines are cancelled, so that what runs may be returned, too.
    done = {0, 1, 2} if cause == "lease lost" else {2}
    assert (8, 8 - result.counts["done"]) == (result.counts.total(), result.counts["returned"])
    assert result.counts["done"] in done
    assert [-1.0] * 6 == [job and job.retry_count for job in (look(app, worker, one) for one in "cdefgh")]
    crowd.then = None
    outlive(app, clock, worker)
    app.drain()
    assert (8 - result.counts["done"], {*"cdefgh"}) == (len(crowd.begun[2:]), {*crowd.begun[2:]} - {*"ab"})
    assert {} == left_behind(app, worker)


def test_e54_an_interruption_lets_no_slot_go_on(
    app: Lowkiq, queue_name: str, declare: Declare, coordinator: Coordinator
) -> None:
    """E-54: a slot beside it ends before the coordinator has heard of it, and begins nothing either."""

    def interrupt(batch: Batch) -> None:
        gather(batch)
        if "a" in batch:
            raise KeyboardInterrupt
        eventually(lambda: only_visit(app)._slots._holds)

    gather, coordinator.looks_after = Gathering(2), 2
    crowd = Crowd(interrupt)
    worker = declare(app, queue_name, crowd, concurrency=2)
    worker.push_many(jobs_of("abcd"))
    claimed_at_once(app, worker)
    with pytest.raises(KeyboardInterrupt):
        app.drain()

    assert [*"ab"] == sorted(crowd.begun)
    assert [*"acd"] == [job_id for job_id in "abcd" if look(app, worker, job_id)]


def test_e54_a_handler_that_cancels_itself_ends_its_batch_alone(app: Lowkiq, queue_name: str) -> None:
    """E-54: what waits for its slot is performed, in it or in another one."""
    begun: list[str] = []

    async def handle(batch: Batch) -> None:
        begun.extend(batch)
        if "a" in batch and (task := asyncio.current_task()):
            task.cancel()
        await asyncio.sleep(0)

    worker = declare_async(app, queue_name, handle, concurrency=2)
    worker.push_many(jobs_of("abcdefgh"))
    claimed_at_once(app, worker)
    with pytest.raises(asyncio.CancelledError):
        app.drain()

    assert [True, *[False] * 7] == [look(app, worker, job_id) is not None for job_id in "abcdefgh"]
    assert [*"abcdefgh"] == sorted(begun)


def test_p1_a_loop_that_stops_leaves_what_waits(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: the drain says so, nothing that waited has begun, and all is performed once after it."""
    monkeypatch.setattr("lowkiq_lambda.engine.event_loop.STANDSTILL", 0.05)
    begun: list[str] = []
    is_well = threading.Event()

    async def handle(batch: Batch) -> None:
        begun.extend(batch)
        if not is_well.is_set():
            loop.stop()
            await asyncio.sleep(20)

    worker = declare_async(app, queue_name, handle)
    worker.push_many(jobs_of("abc"))
    claimed_at_once(app, worker)
    with running_loop() as loop:
        app.use_loop(loop)
        with pytest.raises(RuntimeError, match="was stopped while they ran"):
            app.drain()
    app.use_loop(None)
    is_well.set()
    assert ["a"] == begun
    outlive(app, clock, worker)

    assert 3 == app.drain()["done"]
    assert [*"abc"] == sorted(begun[1:])


def test_a_fault_in_a_slot_that_goes_on_ends_the_visit(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The drain raises it, and does not wait for ever."""
    ended: list[str] = []

    def stopping() -> bool:
        if ended and threading.current_thread().name == "lowkiq-loop":
            raise Broken("who stops?")
        return False

    async def handle(batch: Batch) -> None:
        ended.extend(batch)

    worker = declare_async(app, queue_name, handle)
    worker.push_many(jobs_of("abc"))
    claimed_at_once(app, worker)

    def go() -> VisitResult:
        return visit(app, worker, Budget(clock, stopping=stopping))

    with pytest.raises(Broken, match=r"who stops\?"):
        go()
    assert ["a"] == ended


def test_a_factory_that_runs_tasks_at_once_piles_up_none(make_app: MakeApp, queue_name: str) -> None:
    """As the eager one of Python 3.12 does: each begins in a call of the loop's own."""
    depths: list[int] = []

    def make() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_task_factory(lambda loop, call, **options: asyncio.Task(call, loop=loop, **options))
        return loop

    async def handle(batch: Batch) -> None:
        depths.append(len(batch))

    app = make_app(loop_factory=make)
    worker = declare_async(app, queue_name, handle, concurrency=2)
    worker.push_many([{"id": str(number)} for number in range(100)])
    claimed_at_once(app, worker)

    assert {"done": 100} == app.drain()
    assert [1] * 100 == depths
