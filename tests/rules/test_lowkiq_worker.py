"""The face of a worker (L-35 to L-43); L-44, the table of days, is with the delays it comes from."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from lowkiq_lambda import Batch, JobError, Lowkiq, Pushed, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare, jobs_of
from tests.kit.looks import look


def test_l35_all_that_a_worker_declares(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-35: shards_count, batch_size, max_retry_count, queue_name, retry_in, perform and perform_async."""
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
        def perform_async(cls, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
            return super().perform_async({"id": f"order-{job['number']}"} for job in jobs)

    Sync.queue_name = queue_name
    app.worker(Sync)
    pushed = Sync.perform_async({"number": n} for n in range(20))
    app.drain()

    assert [f"order-{n}" for n in range(20)] == [one.id for one in pushed]
    assert {0, 1} == {one.shard for one in pushed}
    assert 3 == max(map(len, performed))
    waiting = look(app, Sync, "order-0")
    assert waiting is not None
    assert clock.time() + 7.5 == waiting.perform_in


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


def test_l38_a_custom_delay(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-38: retry_in of 10 * (count + 1) yields 10, 20, 30, 40, 50."""
    worker = declare(app, queue_name, raising())
    worker.perform_async(jobs_of("a"))
    waits = []

    for _ in range(5):
        app.drain()
        waiting = look(app, worker, "a")
        assert waiting is not None
        waits.append(waiting.perform_in - clock.time())
        clock.advance(waits[-1])

    assert [10, 20, 30, 40, 50] == waits


def test_l39_perform_gets_ids_with_their_payloads(app: Lowkiq, queue_name: str) -> None:
    """L-39: the batch maps each id to its ordered payloads, and is a mapping in all that a mapping does."""
    seen: list[object] = []

    def then(batch: Batch) -> None:
        seen.extend([isinstance(batch, Mapping), dict(batch), list(batch), len(batch), "b" in batch])
        seen.extend([batch["a"], batch.get("c"), batch.get("c", 0), repr(batch)])

    worker = declare(app, queue_name, then, batch_size=5)
    worker.perform_async([{"id": "a", "payload": 2, "score": 2}, {"id": "a", "payload": 1, "score": 1}, {"id": "b"}])

    assert {"done": 2} == app.drain()

    content: dict[str, list[object]] = {"a": [1, 2], "b": [""]}
    assert [True, content, ["a", "b"], 2, True, [1, 2], None, 0, f"Batch({content})"] == seen


def test_l40_an_id_is_required_and_a_bad_job_writes_nothing(app: Lowkiq, queue_name: str) -> None:
    """L-40: one job without id fails the call, and nothing of it is written."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=3)

    with pytest.raises(JobError, match="job 2: id: is required") as caught:
        worker.perform_async([{"id": 1}, {"id": 2}, {"payload": 3}, {"id": 4}])
    app.drain()

    assert (2, "id", []) == (caught.value.position, caught.value.field, notes.batches)


def test_l41_defaults_of_a_job(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-41: the payload is "", score and perform_in are now."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.perform_async([{"id": "a"}])

    assert ([("", clock.time())], clock.time(), -1.0, None) == look(app, worker, "a")


def test_l43_a_thousand_jobs_in_one_call(app: Lowkiq, queue_name: str) -> None:
    """L-43: a large call is cut into parts, and the order within each id stays."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=2, batch_size=10)
    jobs = [{"id": n % 7, "payload": n} for n in range(5_000)]

    pushed = worker.perform_async(jobs)
    app.drain()

    assert [str(n % 7) for n in range(5_000)] == [one.id for one in pushed]
    seen: dict[str, list[int]] = {}
    for batch in notes.batches:
        for job_id, payloads in batch.items():
            seen.setdefault(job_id, []).extend(payloads)
    assert {str(n): list(range(n, 5_000, 7)) for n in range(7)} == seen


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
    app.worker(Careless).perform_async(jobs_of("abc"))
    app.drain()

    assert [1, 1, 1] == seen
