"""Cancel and pause of ids that run: who hears of it, and what becomes of the run."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Cancelled, Lowkiq, Worker
from lowkiq_lambda.engine.batch import running
from lowkiq_lambda.store.shard.keys import REQUESTS
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.requests import Requested
from tests.kit.coroutines import declare_async
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import counters, left_behind, look
from tests.kit.recording import EventRecorder
from tests.kit.workers import declare, jobs_of, shard_of


def requests_left(app: Lowkiq, worker: type[Worker]) -> int:
    """How many requests the shard of the worker keeps."""
    shard = app.core.queues.agreed(worker).shards[0].using((REQUESTS,))
    return int(str(app.core.backend.client.hlen(shard.key(REQUESTS))))


def renew(app: Lowkiq) -> None:
    """As the thread does that renews the leases of what runs."""
    for visit in [*app.core.drains.drainer._running]:
        visit.session.renew(0.0)


class Interfered:
    """A handler during whose run operators do something, once; then it ends as `end` says."""

    def __init__(self, do: Callable[[], object], end: Callable[[Batch], object] = lambda _: None) -> None:
        self.do = do
        self.end = end
        self.ran: list[list[str]] = []
        self.has_done = False
        self.cancelled: list[set[str]] = []

    def __call__(self, batch: Batch) -> None:
        """As a handler."""
        self.ran.append(list(batch))
        if "a" in batch and not self.has_done:
            self.has_done = True
            self.do()
        self.cancelled.append(set(batch.cancelled))
        self.end(batch)


def fails(_batch: Batch) -> None:
    """As the end of a run."""
    raise ValueError("broken")


def exits(_batch: Batch) -> None:
    """As the end of a run."""
    raise SystemExit


@pytest.mark.parametrize("end", [fails, exits])
@pytest.mark.parametrize("kill", [False, True])
def test_any_end_but_done_becomes_cancelled(
    app: Lowkiq, queue_name: str, end: Callable[[Batch], object], *, kill: bool
) -> None:
    """Its payloads go, no failure counts, and the worker is told of no death; a push meanwhile is a fresh id."""
    desk: list[Any] = []

    def cancel() -> None:
        desk.append(app.operate(worker).cancel(["a"], kill=kill))
        worker.push("a", 2, due_at=app.core.backend.now(shard_of(app, worker, "a")) + 60)

    interfered, notes = Interfered(cancel, end), Notes()
    worker = declare(app, queue_name, interfered, retries_exhausted=lambda _self, jobs: notes.exhausted.append([*jobs]))
    worker.push("a", 1)

    recorder = EventRecorder()
    app.observers.append(recorder)
    with pytest.raises(SystemExit) if end is exits else nullcontext():
        app.drain()
    assert ["a"] == desk[0].in_flight
    assert [{"cancelled": 1}] == [dict(event.counts) for event in recorder.events]
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert ([2], -1, None) == ([payload for payload, _ in waiting.payloads], waiting.retry_count, waiting.error)
    assert [["a"]] * kill == [[job.id] for job in app.operate(worker).morgue.list()]
    assert (0, 1, []) == (requests_left(app, worker), counters(app, worker)["cancelled"], notes.exhausted)


def test_a_handler_that_stops_raises_cancelled(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Ids that were cancelled go, and the others go on later; nothing has failed."""

    def stops(batch: Batch) -> None:
        if batch.cancelled or len(interfered.ran) == 1:
            raise Cancelled

    def act() -> None:
        app.operate(worker).cancel(["a"])
        renew(app)

    interfered = Interfered(act, stops)
    worker = declare(app, queue_name, interfered, batch_size=2)
    worker.push_many(jobs_of("ab"))

    assert {"cancelled": 1, "later": 1} == app.drain()
    clock.advance(2)
    assert {"done": 1} == app.drain()
    assert [["a", "b"], ["b"]] == interfered.ran


def test_done_stays_done(app: Lowkiq, queue_name: str) -> None:
    """A run that ends well has won; nothing is left of the request."""
    interfered = Interfered(lambda: app.operate(worker).cancel(["a"]))
    worker = declare(app, queue_name, interfered, batch_size=2)
    worker.push_many(jobs_of("ab"))

    assert {"done": 2} == app.drain()
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, worker))


def test_a_plain_batch_is_told_with_the_next_renewal(app: Lowkiq, queue_name: str) -> None:
    """It names the ids, and their jobs should stop, and no others."""
    stopping: list[bool] = []

    def act() -> None:
        app.operate(worker).cancel(["a"])
        app.operate(worker).pause_jobs(["c"], 60)
        renew(app)
        for _, running_batch in filter(None, [running.get()]):
            stopping.extend(running_batch.job(job_id).stopping for job_id in "abc")

    interfered = Interfered(act, fails)
    worker = declare(app, queue_name, interfered, batch_size=3)
    worker.push_many(jobs_of("abc"))

    counts = app.drain()
    assert [{"a"}] == interfered.cancelled[:1]
    assert [True, False, False] == stopping
    assert 1 == counts["cancelled"]


def test_jobs_of_a_batch_that_have_not_begun_never_do(app: Lowkiq, queue_name: str) -> None:
    """With `perform_job` each id is looked at before it runs."""
    ran: list[str] = []

    def perform_job(_self: Worker, job: BatchJob) -> None:
        ran.append(job.id)
        if job.id == "a":
            app.operate(worker).cancel(["b"])
            app.operate(worker).pause_jobs(["c"], 60)
            renew(app)

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, batch_size=3)
    worker.push_many(jobs_of("abc"))

    assert {"done": 1, "cancelled": 1, "returned": 1} == app.drain()
    assert ["a"] == ran
    assert (None, 1) == (look(app, worker, "b"), requests_left(app, worker))


def test_batches_that_were_claimed_and_have_not_begun_never_do(app: Lowkiq, queue_name: str) -> None:
    """They are given back at once."""

    def act() -> None:
        app.operate(worker).cancel(["b"])
        renew(app)

    interfered = Interfered(act)
    worker = declare(app, queue_name, interfered, batch_size=1)
    # A claim brings several batches once it is known how long they take.
    worker.push_many(jobs_of("w"))
    app.drain()
    worker.push_many(jobs_of("abc"))

    assert {"done": 2, "cancelled": 1} == app.drain()
    assert [["w"], ["a"], ["c"]] == interfered.ran


def test_a_generator_stops_at_its_next_yield(app: Lowkiq, queue_name: str) -> None:
    """Its `finally` runs, and it goes with its cursor."""

    def act(_job: BatchJob, item: int) -> None:
        if item == 2:
            app.operate(worker).cancel(["a"])
            renew(app)

    items = Items(10, act)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("ab"))

    counts = app.drain()
    assert [0, 1, 2] == items.of("a")
    assert (1, 2) == (counts["cancelled"], items.closed)
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, worker))


def test_a_paused_generator_keeps_its_cursor(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It goes on from there when the pause ends."""
    answers: list[list[str]] = []

    def act(_job: BatchJob, item: int) -> None:
        if item == 2:
            answers.append(app.operate(worker).pause_jobs(["a"], 60).in_flight)
            renew(app)

    items = Items(5, act)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))

    app.drain()
    assert ([["a"]], [0, 1, 2]) == (answers, items.of("a"))
    assert {} == app.drain()
    clock.advance(61)
    assert {"done": 1} == app.drain()
    assert [0, 1, 2, 3, 4] == items.of("a")
    assert [None, 3] == items.cursors


def test_a_pause_of_a_tenant_stops_a_long_job_at_its_next_yield(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """As a pause of its queue does: the cursor is kept, other tenants go on, and it goes on when the pause ends."""

    def act(job: BatchJob, item: int) -> None:
        clock.advance(10)
        if (job.id, item) == ("acme:1", 2):
            app.operate(worker).pause(600, tenant="acme")

    items = Items(5, act)
    worker = declare_items(app, queue_name, items, tenants="home")
    worker.push_many(jobs_of(["acme:1", "globex:1"]))

    app.drain(seconds=500)
    assert ([0, 1, 2], [0, 1, 2, 3, 4]) == (items.of("acme:1"), items.of("globex:1"))
    assert 1 == app.operate(worker).waiting.count()
    app.operate(worker).resume(tenant="acme")
    app.drain(seconds=500)
    assert [0, 1, 2, 3, 4] == items.of("acme:1")


def test_a_plain_run_that_fails_in_a_pause_waits_for_its_end(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The failure counts as ever."""
    interfered = Interfered(lambda: app.operate(worker).pause_jobs(["a"], 600), fails)
    worker = declare(app, queue_name, interfered)
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()
    clock.advance(100)
    assert {} == app.drain()
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert 0 == waiting.retry_count
    clock.advance(501)
    assert 1 == app.drain()["retried"]


def test_a_coroutine_is_cancelled_if_all_ids_of_its_batch_are(app: Lowkiq, queue_name: str) -> None:
    """It sees a CancelledError, and its neighbours run on."""
    ended: list[tuple[list[str], str]] = []

    async def handle(batch: Batch) -> None:
        if "a" not in batch:
            ended.append((list(batch), "done"))
            return
        await asyncio.to_thread(app.operate(worker).cancel, ["a", "b"])
        await asyncio.to_thread(renew, app)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append((list(batch), "cancelled"))
            raise

    worker = declare_async(app, queue_name, handle, batch_size=2)
    worker.push_many(jobs_of("abcd"))

    counts = app.drain()
    assert [(["a", "b"], "cancelled"), (["c", "d"], "done")] == sorted(ended)
    assert (2, 2) == (counts["cancelled"], counts["done"])
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, worker))


@pytest.mark.parametrize("wanted", ["cancel", "pause"])
def test_a_death_between_word_and_stop(app: Lowkiq, clock: ManualClock, queue_name: str, wanted: str) -> None:
    """Recovery honours the request: the payloads go without a strike, or wait for the end of the pause."""
    mortal, answers = Mortal(app), list[Requested]()

    def act() -> None:
        desk = app.operate(worker)
        answers.append(desk.cancel(["a"]) if wanted == "cancel" else desk.pause_jobs(["a"], 1_000))
        mortal.die()

    interfered = Interfered(act)
    worker = declare(app, queue_name, interfered)
    worker.push_many(jobs_of("a"))
    assert mortal.drain() is None
    assert [["a"]] == [answer.in_flight for answer in answers]
    outlive(app, clock, worker)
    worker.push_many(jobs_of("b"))

    app.drain()
    assert [["a"], ["b"]] == interfered.ran
    if wanted == "cancel":
        assert ({}, 0) == (left_behind(app, worker), requests_left(app, worker))
        return
    clock.advance(1_000)
    app.drain()
    assert [["a"], ["b"], ["a"]] == interfered.ran
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, worker))
