"""A task is cancelled, and what runs for it alone is asked to stop."""

from collections.abc import Callable

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq
from lowkiq_lambda.store.shard.keys import REQUESTS
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import counters, left_behind
from tests.kit.workers import declare
from tests.tasks.watching import check_shards, counts, statuses


def renew(app: Lowkiq) -> None:
    """As the thread does that renews the leases of what runs."""
    for visit in [*app.core.drains.drainer._running]:
        visit.session.renew(0.0)


def test_a_long_job_stops_at_its_next_yield(app: Lowkiq, queue_name: str) -> None:
    """Its items are cancelled, those that wait behind it, too; a job that nobody's task has goes on."""

    def act(job: BatchJob, item: int) -> None:
        if (job.id, item) == ("a", 2):
            task.push_many(worker, [{"id": "a", "payload": 3}])
            task.cancel(running=True)
            renew(app)

    items = Items(5, act)
    worker = declare_items(app, queue_name, items)
    task = app.task("export")
    task.push_many(worker, [{"id": "a", "payload": 1}, {"id": "a", "payload": 2}])
    worker.push_many([{"id": "b", "payload": 1}])

    app.drain()
    assert ([0, 1, 2], [0, 1, 2, 3, 4]) == (items.of("a"), items.of("b"))
    assert {1: "cancelled", 2: "cancelled", 3: "cancelled"} == statuses(task)
    assert (1, 1) == (counters(app, worker)["done"], counters(app, worker)["cancelled"])
    check_shards(app, worker)
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, queue_name))


def test_a_run_that_others_want_goes_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Of two ids of the task one has a payload of a plain push, too: its holder is not asked, and it is tried again."""
    cancelled: list[set[str]] = []

    def handle(batch: Batch) -> None:
        if len(batch) < 2:
            return
        task.cancel(running=True)
        renew(app)
        cancelled.append(set(batch.cancelled))
        raise ValueError("broken")

    worker = declare(app, queue_name, handle, batch_size=3)
    task, other = app.task("export"), app.task("other")
    task.push_many(worker, [{"id": job_id, "payload": 1} for job_id in ("own", "mixed", "shared")])
    worker.push_many([{"id": "mixed", "payload": 2}])
    other.push_many(worker, [{"id": "shared", "payload": 1}])

    app.drain()
    assert [{"own"}] == cancelled
    check_shards(app, worker)
    clock.advance(600.0)
    app.drain()
    assert ({1: "cancelled", 2: "done", 3: "done"}, {1: "done"}) == (statuses(task), statuses(other))


def requests_left(app: Lowkiq, queue_name: str) -> int:
    """How many requests the shard of the queue keeps."""
    shard = app.core.queues[queue_name].shards[0].using((REQUESTS,))
    return int(str(app.core.backend.client.hlen(shard.key(REQUESTS))))


def fails(_batch: Batch) -> None:
    """As the end of a run."""
    raise ValueError("broken")


@pytest.mark.parametrize(("end", "status"), [(fails, "cancelled"), (lambda _: None, "done")])
def test_what_becomes_of_a_plain_run(
    app: Lowkiq, clock: ManualClock, queue_name: str, end: Callable[[Batch], object], status: str
) -> None:
    """One that ends well is done; of any other the payloads go, and it does not come back. A second call adds it."""

    def handle(batch: Batch) -> None:
        task.cancel()
        task.cancel(running=True)
        end(batch)

    worker = declare(app, queue_name, handle)
    task = app.task("export")
    task.push_many(worker, [{"id": "a"}])

    app.drain()
    assert ({status: 1}, "cancelled") == (counts(task), task.progress().state)
    clock.advance(600.0)
    assert {} == app.drain()
    assert task.progress().completed_at is not None


def test_a_run_that_the_call_had_no_time_for_is_asked_by_the_duty(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Its process dies after that: the item does not wait again."""
    mortal, looked, left = Mortal(app), list[dict[str, int]](), list[int]()

    def handle(_batch: Batch) -> None:
        left.extend([task.cancel(seconds=0, running=True), requests_left(app, queue_name)])
        looked.append(app.tasks.upkeep(lambda: 10.0))
        asked.extend(app.operate(worker).requests())
        clock.advance(1.0)
        app.tasks.upkeep(lambda: 10.0)
        asked.extend(app.operate(worker).requests())
        mortal.die()

    asked: list[object] = []
    worker = declare(app, queue_name, handle)
    task = app.task("export")
    task.push_many(worker, [{"id": "a"}])
    assert mortal.drain() is None
    assert ([0, 0], [{"looked": 1}], 2, asked[0]) == (left, looked, len(asked), asked[1])
    outlive(app, clock, worker)

    app.drain()
    assert {1: "cancelled"} == statuses(task)
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, queue_name))


def test_a_plain_cancel_leaves_no_key_of_requests(app: Lowkiq, queue_name: str) -> None:
    """Nor does one that finds nothing that runs."""
    worker = declare(app, queue_name, lambda _batch: calls.append(app.task("export").cancel()))
    calls: list[int] = []
    task = app.task("export")
    task.push_many(worker, [{"id": "a"}])
    app.drain()
    task.cancel(running=True)

    assert ([0], 0) == (calls, requests_left(app, queue_name))
    assert not app.core.backend.uses(REQUESTS)
