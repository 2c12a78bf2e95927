"""Payloads that expire while their batch runs, or while they wait for a retry or for an operator."""

from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Debounce, DeclarationError, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes, failing
from tests.kit.looks import left_behind
from tests.kit.workers import declare

LONG = 3.0
"""Seconds of a run."""


class Slow(Worker):
    """Each job takes its time, and says which payloads it was given."""

    shards_count = 1
    batch_size = 10
    clock: ManualClock
    runs: list[tuple[str, list[int]]]

    def perform_job(self, job: BatchJob[int]) -> None:
        """One job."""
        self.runs.append((job.id, [*job.payloads]))
        self.clock.advance(LONG)


class SlowCoroutine(Worker):
    """The same as a coroutine."""

    shards_count = 1
    batch_size = 10
    clock: ManualClock
    runs: list[tuple[str, list[int]]]

    async def perform_job(self, job: BatchJob[int]) -> None:
        """One job."""
        self.runs.append((job.id, [*job.payloads]))
        self.clock.advance(LONG)


@pytest.mark.parametrize("kind", [Slow, SlowCoroutine])
@pytest.mark.parametrize("concurrency", [1, 2])
def test_no_job_of_a_batch_begins_after_its_expiry(
    app: Lowkiq, clock: ManualClock, queue_name: str, kind: type[Worker[Any]], concurrency: int
) -> None:
    """The jobs before it took its time; what is left of it runs without the payload that is over."""
    fields = {"clock": clock, "runs": [], "queue_name": queue_name, "concurrency": concurrency}
    worker: Any = app.worker(type("Slowly", (kind,), fields))
    at = clock.time()
    jobs = [{"id": job_id, "payload": 1, "expires_at": at + 4} for job_id in ("a", "b", "c", "d")]
    worker.push_many([*jobs, {"id": "c", "payload": 2}])
    counts = app.drain()

    assert [("a", [1]), ("b", [1]), ("c", [2])] == worker.runs
    assert (3, 2) == (counts["done"], counts["expired"])
    assert {} == left_behind(app, worker)


def test_who_unblocks_a_head_wants_it_done(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Its time was over while it was blocked; it runs, and is not dropped."""
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes, dead_head="block", max_retry_count=0, retry_for=100)
    worker.push("a", 1, expires_in=50)
    app.drain()
    clock.advance(200)
    notes.then = None
    assert 1 == app.operate(worker).unblock(["a"], "retry")
    app.drain()

    assert [{"a": [1]}, {"a": [1]}] == notes.batches
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize("late", [5, 20])
@pytest.mark.parametrize("dead_head", ["block", "drop", "skip"])
def test_what_follows_a_dead_head_does_not_hang_on_when_its_shard_is_drained(
    app: Lowkiq, clock: ManualClock, queue_name: str, late: float, dead_head: str
) -> None:
    """P3: in time the failure is the last; behind the time of its retry no other one is waited for."""
    notes = Notes(failing("a"))
    fields = {"dead_head": dead_head, "expired": "kill", "retry_for": 8, "retry_in": lambda _worker, _count: 5.0}
    worker = declare(app, queue_name, notes, payloads_at_once=1, **fields)
    worker.push_many([{"id": "a", "payload": number} for number in (1, 2)])
    app.drain()
    clock.advance(late)
    if late > 8:
        notes.then = None
    app.drain()
    notes.then = None
    app.drain()

    others = [{"a": [2]}] if dead_head == "skip" else []
    assert others == [batch for batch in notes.batches if batch != {"a": [1]}]
    assert (dead_head == "block") == (app.operate(worker).explain("a").blocked_since is not None)


def test_the_end_of_a_time_is_no_evidence_against_a_group(app: Lowkiq, queue_name: str) -> None:
    """Others of the batch have no expiry, and are told of none."""

    def broken(_batch: Batch) -> None:
        raise Broken("the shop is away")

    fields = {"expired": "kill", "retry_in": lambda _worker, _count: 60.0, "batch_size": 10}
    worker = declare(app, queue_name, broken, **fields)
    worker.push_many([{"id": f"a{number}", "expires_in": 30} for number in range(3)])
    worker.push_many([{"id": f"b{number}"} for number in range(3)])
    app.drain()

    waiting = app.operate(worker).waiting.fetch([f"b{number}" for number in range(3)])
    assert 3 == len(waiting)
    assert not any("expired" in (job.error or "") for job in waiting)


def test_a_debounce_that_outlasts_the_time_is_refused(app: Lowkiq, queue_name: str) -> None:
    """Each job would be over before it is due."""
    with pytest.raises(DeclarationError, match="expires_in must be more than the 60 seconds"):
        declare(app, queue_name, Notes(), debounce=Debounce(30, 60), expires_in=60)
