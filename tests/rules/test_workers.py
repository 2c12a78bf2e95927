"""Workers: attributes, defaults, and several workers in one app (L-7 to L-9, L-35, L-36, L-39, LN-1)."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from lowkiq_lambda import Batch, Lowkiq, Pushed, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.workers import declare, jobs_of


def test_l35_all_that_a_worker_declares(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-35: shards_count, batch_size, max_retry_count, queue_name, retry_in, perform and push_many."""
    performed: list[list[str]] = []

    class Sync(Worker):
        shards_count = 2
        batch_size = 3
        max_retry_count = 1

        def retry_in(self, retry_count: int) -> float:
            return 7.5 + retry_count

        def perform(self, batch: Batch) -> None:
            performed.append(list(batch))
            for job_id in batch:
                batch.fail(job_id, "no")

        @classmethod
        def push_many(cls, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
            return super().push_many({"id": f"order-{job['number']}"} for job in jobs)

    Sync.queue_name = queue_name
    app.worker(Sync)
    pushed = Sync.push_many({"number": n} for n in range(20))
    app.drain()

    assert [f"order-{n}" for n in range(20)] == [one.id for one in pushed]
    assert {0, 1} == {one.shard for one in pushed}
    assert 3 == max(map(len, performed))
    waiting = look(app, Sync, "order-0")
    assert waiting is not None
    assert clock.time() + 7.5 == waiting.due_at


def test_l36_defaults_of_a_worker(app: Lowkiq) -> None:
    """L-36: five shards, batches of one, 25 retries, the queue named after the class."""

    @app.worker
    class SyncOrder(Worker):
        def perform(self, batch: Batch) -> None:
            """Nothing."""

    expected = (5, 1, 25, "SyncOrder")
    assert expected == (
        SyncOrder.shards_count,
        SyncOrder.batch_size,
        SyncOrder.max_retry_count,
        SyncOrder.queue_name,
    )


def test_l39_perform_gets_ids_with_their_payloads(app: Lowkiq, queue_name: str) -> None:
    """L-39: the batch maps each id to its ordered payloads, and is a mapping in all that a mapping does."""
    seen: list[object] = []

    def then(batch: Batch) -> None:
        seen.extend([isinstance(batch, Mapping), dict(batch), list(batch), len(batch), "b" in batch])
        seen.extend([batch["a"], batch.get("c"), batch.get("c", 0), repr(batch)])

    worker = declare(app, queue_name, then, batch_size=5)
    worker.push_many([{"id": "a", "payload": 2, "score": 2}, {"id": "a", "payload": 1, "score": 1}, {"id": "b"}])

    assert {"done": 2} == app.drain()

    content: dict[str, list[object]] = {"a": [1, 2], "b": [""]}
    assert [True, content, ["a", "b"], 2, True, [1, 2], None, 0, f"Batch({content})"] == seen


def test_a_worker_object_lives_for_one_batch(app: Lowkiq, queue_name: str) -> None:
    """Each batch has a worker object of its own, so nothing is left over from another."""
    seen: list[int] = []

    class Careless(Worker):
        def __init__(self) -> None:
            self.count = 0

        def perform(self, batch: Batch) -> None:
            self.count += len(batch)
            seen.append(self.count)

    Careless.queue_name = queue_name
    app.worker(Careless).push_many(jobs_of("abc"))
    app.drain()

    assert [1, 1, 1] == seen


def test_ln1_workers_are_an_explicit_list(app: Lowkiq, queue_name: str) -> None:
    """LN-1: the workers of an app are those declared on it, in order of declaration."""
    declared = [declare(app, f"{queue_name}-{n}", Notes()) for n in (2, 1, 3)]

    assert declared == app.workers


def test_l7_each_worker_has_a_queue_of_its_own(app: Lowkiq, queue_name: str) -> None:
    """L-7: a job goes to the worker that it was pushed to, whatever its id."""
    first, second = Notes(), Notes()
    declare(app, queue_name + "-1", first).push_many([{"id": "a", "payload": 1}])
    declare(app, queue_name + "-2", second).push_many([{"id": "a", "payload": 2}])

    app.drain()

    assert ([{"a": [1]}], [{"a": [2]}]) == (first.batches, second.batches)


def test_l8_queues_and_shards_cost_no_threads(app: Lowkiq, queue_name: str) -> None:
    """L-8: draining more queues with more shards starts no further threads."""
    workers = [declare(app, f"{queue_name}-{n}", Notes(), shards_count=20) for n in range(10)]
    workers[0].push_many(jobs_of("a"))
    app.drain()
    before = set(threading.enumerate())

    for worker in workers:
        worker.push_many([{"id": n} for n in range(40)])
    app.drain()

    assert set() == set(threading.enumerate()) - before


def test_l9_is_no_failure(app: Lowkiq, queue_name: str) -> None:
    """L-9: a worker with more shards than there are threads works, whatever a daemon has to say about it."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=50)
    worker.push_many(jobs_of("a"))

    app.drain()

    assert [["a"]] == notes.ids
    assert look(app, worker, "a") is None
