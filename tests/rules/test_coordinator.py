"""The thread that leads what runs side by side: what becomes of all when it is interrupted, or gets no further slot."""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.engine.inbox import Inbox
from lowkiq_lambda.engine.loop_slots import LoopSlots
from lowkiq_lambda.engine.thread_slots import ThreadSlots
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.store.shard.session import LeaseSession
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.beside import TIMEOUT, Crowd, Declare, Gathering, declare_threads, wait_for
from tests.kit.coroutines import declare_async
from tests.kit.deaths import outlive, outlive_gone
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import left_behind, look
from tests.kit.recording import EventRecorder
from tests.kit.waiting import eventually
from tests.kit.workers import jobs_of


def declare_on_loop(app: Lowkiq, queue_name: str, handler: Callable[[Batch], object]) -> type[Worker]:
    """The handler is called on the loop itself: it has ended where its coroutine has."""

    async def handle(batch: Batch) -> None:
        handler(batch)

    return declare_async(app, queue_name, handle, concurrency=4)


STARTERS: Final[dict[str, tuple[Any, Declare]]] = {
    "threads": (ThreadSlots, declare_threads),
    "coroutines": (LoopSlots, declare_on_loop),
}
"""What begins batches of each kind, and declares their worker."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_p2_an_interruption_while_progress_is_saved_loses_no_job(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """P2: Ctrl-C comes in the call itself; nobody knows whether it was applied, so no other may follow."""
    app = make_app(settle_interval=0.0)
    save = LeaseSession.checkpoint

    def interrupted(session: LeaseSession, *given: Any, **options: Any) -> object:
        if when == "after":
            save(session, *given, **options)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(LeaseSession, "checkpoint", interrupted)
    items = Items(3, lambda _job, _item: clock.advance(0.1))
    worker = declare_items(app, queue_name, items, concurrency=2)
    worker.push_many(jobs_of("ab"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    outlive(app, clock, worker)

    assert 2 == app.drain()["done"]
    assert {job_id: {0, 1, 2} for job_id in "ab"} == {job_id: {*items.of(job_id)} for job_id in "ab"}
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize("moment", [(kind, when) for kind in STARTERS for when in ("before", "after")])
def test_p1_an_interruption_while_a_batch_begins_waits_for_nothing_that_has_not_begun(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch, moment: tuple[str, str]
) -> None:
    """P1, P2: Ctrl-C comes before its slot has it, or after; it runs to its end within the visit, or not at all."""
    (kind, when), crowd = moment, Crowd()
    starter, declare = STARTERS[kind]
    begin = starter.begin

    def interrupted(*given: Any) -> None:
        monkeypatch.undo()
        if when == "after":
            begin(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(starter, "begin", interrupted)
    worker = declare(app, queue_name, crowd)
    worker.push_many(jobs_of("ab"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    begun = sorted(crowd.begun)
    assert begun == sorted(crowd.ended)
    assert {*begun} <= {*("" if when == "before" else "ab")}
    outlive(app, clock, worker)

    assert 2 == app.drain()["done"]
    assert sorted([*begun, "a", "b"]) == sorted(crowd.begun)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Once it is set, Ctrl-C comes to the thread that waits for what runs."""
    wait, pressed = Inbox.wait, threading.Event()

    def interrupted(inbox: Inbox, seconds: float) -> bool:
        if pressed.is_set():
            pressed.clear()
            raise KeyboardInterrupt
        return wait(inbox, seconds)

    monkeypatch.setattr(Inbox, "wait", interrupted)
    return pressed


@pytest.mark.parametrize(("source", "cancelled"), [("keyboard", 3), ("handler", 2)])
def test_e54_an_interruption_cancels_coroutines(
    app: Lowkiq, queue_name: str, keyboard: threading.Event, source: str, cancelled: int
) -> None:
    """E-54: Ctrl-C ends a drain over coroutines that wait: they clean up, and all jobs are as they were."""
    events: list[str] = []

    async def wait(batch: Batch) -> None:
        begun.append(list(batch))
        if len(begun) == 3:
            if source == "handler":
                raise KeyboardInterrupt
            keyboard.set()
        try:
            await asyncio.sleep(TIMEOUT)
            events.append("went on")
        finally:
            events.append("cleaned up")

    begun: list[list[str]] = []
    worker = declare_async(app, queue_name, wait, concurrency=3)
    worker.push_many(jobs_of("abcd"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()

    assert ["cleaned up"] * cancelled == events
    assert sorted("abc") == sorted(job_id for ids in begun for job_id in ids)
    assert [-1.0] * 4 == [job and job.retry_count for job in (look(app, worker, one) for one in "abcd")]


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_a_second_interruption_waits_for_nothing(
    make_app: MakeApp, clock: ManualClock, queue_name: str, keyboard: threading.Event, kind: str
) -> None:
    """P1: the drain ends under a handler that goes on; its job runs again when the lease has ended, and not before."""
    app, other, raised = make_app(), make_app(), threading.Event()

    def go_on(batch: Batch) -> None:
        if kind == "threads":
            keyboard.set()
            eventually(lambda: batch.stopping)
        keyboard.set()
        wait_for(raised)

    async def go_on_though_cancelled(batch: Batch) -> None:
        keyboard.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(TIMEOUT)
        await asyncio.to_thread(crowd, batch)

    crowd, late = Crowd(go_on), Crowd()
    if kind == "threads":
        worker = declare_threads(app, queue_name, crowd)
    else:
        worker = declare_async(app, queue_name, go_on_though_cancelled, concurrency=4)
    declare_threads(other, queue_name, late)
    worker.push_many(jobs_of("a"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    assert (["a"], []) == (crowd.begun, crowd.ended)
    outlive_gone(app, clock, worker)
    assert {} == other.drain()
    raised.set()
    assert eventually(lambda: crowd.ended)
    outlive(app, clock, worker)

    assert 1 == other.drain()["done"]
    assert ["a"] == late.begun


def test_x30_a_second_interruption_keeps_the_place_of_what_goes_on(
    make_app: MakeApp, clock: ManualClock, queue_name: str, keyboard: threading.Event
) -> None:
    """X-30: nobody else gets its permit of the limited queue while its handler may run."""
    app, other, raised = make_app(), make_app(), threading.Event()

    def go_on(batch: Batch) -> None:
        keyboard.set()
        eventually(lambda: batch.stopping)
        keyboard.set()
        wait_for(raised)

    crowd, late = Crowd(go_on), Crowd()
    worker = declare_threads(app, queue_name, crowd, shards_count=2, max_running=1)
    declare_threads(other, queue_name, late, shards_count=2, max_running=1)
    here, there = (next(one for one in "abcdefgh" if shard_for(one, 2) == shard) for shard in range(2))
    worker.push_many(jobs_of(here))
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    worker.push_many(jobs_of(there))
    outlive_gone(app, clock, worker)
    assert ({}, []) == (other.drain(), late.begun)
    raised.set()
    assert eventually(lambda: crowd.ended)
    outlive(app, clock, worker)

    assert 2 == other.drain()["done"]
    assert sorted([here, there]) == sorted(late.begun)


def test_a_second_interruption_answers_whoever_saves(
    make_app: MakeApp, queue_name: str, keyboard: threading.Event
) -> None:
    """A job with a cursor that goes on after its drain is gone ends at its next save, and does not wait for ever."""
    app, raised = make_app(settle_interval=0.0), threading.Event()

    def go_on(job: BatchJob, _item: int) -> None:
        keyboard.set()
        eventually(lambda: job.stopping)
        keyboard.set()
        wait_for(raised)

    items = Items(3, go_on)
    declare_items(app, queue_name, items, concurrency=2).push_many(jobs_of("a"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    raised.set()

    assert eventually(lambda: items.closed)
    assert [0] == items.of("a")


def test_an_interruption_claims_nothing_more_while_others_end(make_app: MakeApp, queue_name: str) -> None:
    """What waits in the shard stays there: it is not claimed, and returned, again and again meanwhile."""
    app = make_app(settle_interval=0.0)
    recorder = EventRecorder()

    def interrupt(batch: Batch) -> None:
        debounce(batch)
        if "a" in batch:
            raise KeyboardInterrupt
        eventually(lambda: batch.stopping and recorder.events)

    debounce = Gathering(2)
    app.observers.append(recorder)
    worker = declare_threads(app, queue_name, interrupt, concurrency=2)
    worker.push_many(jobs_of("abcdefgh"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()

    assert {"returned": 1, "done": 1} == dict(sum((Counter(event.counts) for event in recorder.events), Counter[str]()))


def test_p1_no_more_threads_means_fewer_at_once(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """P1: the system gives no third thread: two run at once, all is performed once, and the log says so."""
    app, start = make_app(), threading.Thread.start
    slots: list[str] = []

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("lowkiq-slot"):
            if len(slots) == 2:
                refused.set()
                raise RuntimeError("can't start new thread")
            slots.append(thread.name)
        start(thread)

    def stay(batch: Batch) -> None:
        gather(batch)
        wait_for(refused)

    gather, refused = Gathering(2), threading.Event()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    crowd = Crowd(stay)
    declare_threads(app, queue_name, crowd).push_many(jobs_of("abcdefgh"))
    with caplog.at_level(logging.WARNING):
        counts = app.drain()

    assert ({"done": 8}, 2, []) == (counts, crowd.most, crowd.overlaps)
    assert sorted("abcdefgh") == sorted(crowd.begun)
    assert "can't start new thread" in caplog.text


def test_p1_without_any_thread_nothing_begins(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: the drain says why, the jobs are as they were, and none of them begins later."""
    app, crowd = make_app(), Crowd()

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    worker = declare_threads(app, queue_name, crowd)
    worker.push_many(jobs_of("ab"))
    app.core.drains.drainer._renewers.of(app.core.queues.agreed(worker).shards[0])._ensure_thread()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        app.drain()
    monkeypatch.undo()
    assert [] == crowd.begun
    outlive(app, clock, worker)

    assert 2 == app.drain()["done"]
    assert sorted("ab") == sorted(crowd.begun)


def test_all_that_runs_is_named(app: Lowkiq, queue_name: str) -> None:
    """A process that is stopped by force says which jobs it leaves: of each batch that runs, and of nothing else."""
    told: list[dict[str, Any]] = []

    def tell(batch: Batch) -> None:
        debounce(batch)
        if "a" in batch:
            told.extend(app.core.drains.drainer.running_jobs())
            named.set()
        wait_for(named)

    named, debounce = threading.Event(), Gathering(3)
    worker = declare_threads(app, queue_name, tell, concurrency=3)
    worker.push_many(jobs_of("abc"))
    app.drain()

    assert [(queue_name, 3, ["a", "b", "c"])] == [(one["queue"], one["count"], sorted(one["ids"])) for one in told]
    assert [] == app.core.drains.drainer.running_jobs()
