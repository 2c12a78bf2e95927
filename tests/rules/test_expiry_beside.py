"""Expiry beside other features: crashes, retries in company, cursors, tasks, kept runs, the verification, a pause."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError  # noqa: A004 - of the client

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Rate, Worker
from lowkiq_lambda.store.shard.keys import EXPIRY
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.coroutines import declare_async
from tests.kit.deaths import Mortal, outlive
from tests.kit.expiring import expiries, push
from tests.kit.handlers import FailingHandler, Notes, raising_with
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import counters, left_behind, look
from tests.kit.servers import Server
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.verifying import verified
from tests.kit.workers import declare, jobs_of, shard_of


def expiring(ids: str, **fields: Any) -> list[dict[str, Any]]:
    """A job of each id that expires after a minute."""
    return jobs_of(ids, expires_in=60, **fields)


@pytest.mark.parametrize("call", ["settle", "acquire"])
def test_a_death_before_the_settling_changes_nothing(
    app: Lowkiq, clock: ManualClock, queue_name: str, call: str
) -> None:
    """What is over stays so, and leaves at the next claim."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=5)
    worker.push_many([*expiring("ab"), {"id": "a", "payload": 2}])
    clock.advance(61)
    mortal = Mortal(app)
    mortal.die_before(call)
    assert mortal.drain() is None
    outlive(app, clock, worker)

    counts = app.drain()
    assert (2, 1) == (counts["expired"], counts["done"])
    assert {"a": [2]} == notes.batches[-1]
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


def test_a_suspect_that_is_over_never_runs_again(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """In company and alone the clock runs on."""
    notes = Notes(raising_with("b"))
    worker = declare(app, queue_name, notes, batch_size=3)
    worker.push_many(expiring("abc"))
    app.drain(0.0)
    while look(app, worker, "b"):
        clock.advance(10)
        app.drain()
    notes.clear()
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


@pytest.mark.parametrize("concurrency", [2, 5])
def test_batches_side_by_side(app: Lowkiq, clock: ManualClock, queue_name: str, concurrency: int) -> None:
    """What is over needs no slot; a window of nothing else ends without any."""
    seen: list[str] = []
    worker = declare(app, queue_name, seen.extend, concurrency=concurrency)
    worker.push_many([*expiring("abcde"), *jobs_of("fgh"), *expiring("ijk")])
    clock.advance(61)

    assert {"expired": 8, "done": 3} == app.drain()
    worker.push_many(expiring("abcde"))
    clock.advance(61)
    assert {"expired": 5} == app.drain()
    assert ([*"fgh"], {}, {}) == (sorted(seen), left_behind(app, worker), expiries(app, worker))


def test_coroutines(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """As plain functions."""
    seen: list[str] = []

    async def handle(batch: Batch) -> None:
        await asyncio.sleep(0)
        seen.extend(batch)

    worker = declare_async(app, queue_name, handle, concurrency=3)
    worker.push_many([*expiring("ab"), *jobs_of("c")])
    clock.advance(61)

    assert {"expired": 2, "done": 1} == app.drain()
    assert (["c"], {}) == (seen, left_behind(app, worker))


def test_the_rate_is_not_spent_for_what_is_over(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It leaves before its batch asks whether it may begin."""
    notes = Notes()
    worker = declare(app, queue_name, notes, rate=Rate(2, per=60.0))
    worker.push_many([*expiring("abc"), *jobs_of("de")])
    clock.advance(61)

    counts = app.drain()
    assert (3, 2) == (counts["expired"], counts["done"])
    assert [["d"], ["e"]] == notes.ids


@pytest.mark.parametrize("with_another", [False, True])
def test_a_started_job_is_looked_at_when_a_run_begins(
    make_app: MakeApp, clock: ManualClock, queue_name: str, *, with_another: bool
) -> None:
    """Not at each yield; one whose other payloads are not over begins anew with these, as its cursor is of them all."""
    app = make_app(lease_ttl=600.0)
    items = Items(6, lambda _job, _item: clock.advance(30.0))
    worker = declare_items(app, queue_name, items, max_run_items=4, turn=1_000.0)
    worker.push_many([*expiring("a", payload=1), *([{"id": "a", "payload": 2}] if with_another else [])])
    app.drain(3_600.0)

    runs = [(None, [1, 2]), (None, [2]), (4, [2])] if with_another else [(None, [1])]
    assert runs == [(run.cursor, run.payloads) for run in items.runs]
    assert [*range(4), *(range(6) if with_another else ())] == items.of("a")
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


def test_items_of_tasks_have_failed(app: Lowkiq, clock: ManualClock, server: Server, queue_name: str) -> None:
    """With a message; an item whose payload lies in the morgue is dead, as it may be put back."""
    worker = declare(app, queue_name, Notes())
    task = TaskOfTests(worker, server.admin)
    task.push_many(("a", 1, "one"), ("b", 1, "two"), expires_in=60)
    task.push_many(("b", 2, "three"))
    clock.advance(61)
    app.drain()
    assert {
        "one": Item("f", "a", 0, ("expired",)),
        "two": Item("f", "b", 0, ("expired",)),
        "three": Item("d", "b", 1),
    } == task.items
    worker.expired = "kill"
    task.push_many(("a", 1, "four"), expires_in=60)
    clock.advance(61)
    app.drain()
    assert Item("x", "a", 0, ("expired",)) == task.items["four"]


def test_a_task_that_is_cancelled_takes_the_expiries_along(app: Lowkiq, queue_name: str) -> None:
    """Of a payload in a record, and of those in the box."""
    worker = declare(app, queue_name, Notes())
    with app.task("enrol") as task:
        task.push_many(worker, [{"id": "a", "payload": n, "expires_in": 60} for n in range(20)])
        task.push(worker, "b", 1, expires_in=60)
    task.cancel()

    assert {} == expiries(app, worker)


@pytest.mark.parametrize("expired", ["discard", "kill"])
@pytest.mark.parametrize("keeps", [None, 1_000])
def test_the_verification_and_the_kept_runs_know_it(  # noqa: PLR0913, PLR0917 - fixtures and cases
    make_app: MakeApp,
    clock: ManualClock,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
    expired: str,
    keeps: int | None,
) -> None:
    """Each payload comes to one end; an id that was over before it ran has a run with that outcome."""
    queues, app = verified(monkeypatch), make_app()
    handler = FailingHandler()
    fields = {"expired": expired, "keep_runs": keeps, "retry_for": 90, "batch_size": 2}
    worker = declare(app, queue_name, handler, **fields)
    handler.failing = {"a", "b"}
    for step in range(8):
        worker.push_many([*expiring("ac", payload=step), *jobs_of("abd", payload=-step)])
        app.drain()
        clock.advance(35)
        if step % 3 == 2:
            worker.push_many(expiring("e"))
            clock.advance(61)
    app.drain()

    assert counters(app, worker)["expired"] > 5
    assert [[]] == [report.violations for report in queues.reports()]
    if keeps:
        assert {"done", "retried", "expired", *({"dead"} if expired == "kill" else set())} == {
            run.outcome for run in app.operate(worker).runs(limit=1_000)
        }


def test_a_pause_does_not_stop_the_clock(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Nor does a blocked head: those behind it are over when it is unblocked."""
    notes = Notes(lambda batch: batch.fail("a", "broken") if 1 in batch.get("a", ()) else None)
    worker = declare(app, queue_name, notes, dead_head="block", max_retry_count=0)
    push(worker, 1)
    push(worker, 2, expires_in=60)
    app.drain()
    clock.advance(61)
    app.operate(worker).unblock(["a"], "skip")

    assert {"expired": 1} == app.drain()
    assert ([{"a": [1, 2]}], {}, {}) == (notes.batches, left_behind(app, worker), expiries(app, worker))


@pytest.mark.parametrize("expires_in", [60, None])
def test_an_equal_payload_that_comes_while_it_runs_joins_as_ever(
    app: Lowkiq, clock: ManualClock, queue_name: str, expires_in: float | None
) -> None:
    """The later of both holds, and none if the new one has none."""
    handler = FailingHandler()
    worker = declare(app, queue_name, handler)
    handler.failing = {"a"}
    push(worker, 1, expires_in=100)
    start = clock.time()
    handler.meanwhile = lambda: worker.push("a", 1, expires_in=expires_in and 900)
    app.drain(0.5)

    assert [start + 900] * bool(expires_in) == [*expiries(app, worker).values()]


@pytest.mark.parametrize("back", [30.0, 0.05])
def test_a_clock_that_goes_back_lets_nothing_run_twice(
    app: Lowkiq, clock: ManualClock, queue_name: str, back: float
) -> None:
    """At a failover: what was found over is gone, whatever time it is then; what was not may run a little longer."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many(expiring("a"))
    clock.advance(61)
    assert {"expired": 1} == app.drain()
    clock.set_wall(clock.time() - back)
    assert {} == app.drain()
    assert [] == notes.batches


@pytest.mark.parametrize(
    ("field", "value"),
    [(b"short", b"12345678"), (b"\0\0\0\0\0\1", b"no time"), (b"\0\0\0\0\0\2", b"\x7f\xf0" + bytes(6))],
)
def test_a_damaged_expiry_is_set_aside(app: Lowkiq, queue_name: str, field: bytes, value: bytes) -> None:
    """Its payload is never over then, and the others keep theirs."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    push(worker, 1, 2, 3, expires_in=60)
    key = shard_of(app, worker, "a").using((EXPIRY,)).key("expiries")
    app.core.backend.client.hset(key, field, value)
    app.operate(worker).repair()

    assert {"done": 1} == app.drain()
    assert ([{"a": [1, 2, 3]}], {}) == (notes.batches, expiries(app, worker))
    assert 1 == app.operate.metrics()[queue_name].damaged


def test_a_key_of_another_type_stops_no_push(app: Lowkiq, queue_name: str) -> None:
    """It is set aside, and the push is applied once."""
    worker = declare(app, queue_name, Notes())
    push(worker, 1, expires_in=60)
    key = shard_of(app, worker, "a").using((EXPIRY,)).key("expiries")
    app.core.backend.client.delete(key)
    app.core.backend.client.set(key, "odd")
    push(worker, 2, expires_in=60)

    assert {"done": 1} == app.drain()
    assert {} == expiries(app, worker)


def test_a_lost_answer_changes_nothing(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A settling that comes again ends no payload twice."""
    worker = declare(app, queue_name, Notes())
    push(worker, 1, expires_in=60)
    push(worker, 2)
    clock.advance(61)
    backend = app.core.drains.drainer._backend
    once, lost = backend._once, list[str]()

    def losing(code: Any, *args: Any, **options: Any) -> Any:
        reply = once(code, *args, **options)
        if code.name == "settle" and not lost:
            lost.append(code.name)
            raise ConnectionError("the answer was lost")
        return reply

    backend._once = losing  # type: ignore[method-assign]  # that is the point
    assert {"expired": 1, "done": 1} == app.drain()
    assert (["settle"], 1) == (lost, counters(app, worker)["expired"])
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


def test_perform_job_without_a_cursor(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Ids of one batch are over one by one."""
    seen: list[str] = []

    def perform_job(_self: Worker, job: BatchJob) -> None:
        seen.append(job.id)

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, batch_size=4)
    worker.push_many([*expiring("ab"), *jobs_of("cd")])
    clock.advance(61)
    assert {"expired": 2, "done": 2} == app.drain()
    assert ["c", "d"] == seen
