"""What ends a handler without being a failure, and what only looks so (E-54, E-59)."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import look
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of

INTERRUPTIONS = [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError]


@pytest.mark.parametrize("kind", INTERRUPTIONS)
def test_e54_an_interruption_counts_no_retry(
    app: Lowkiq, clock: ManualClock, queue_name: str, kind: type[BaseException]
) -> None:
    """E-54: what interrupts passes on, and the payloads are back in place, count and time unchanged."""
    notes = Notes(raising(kind()))
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("abc", score=1))
    pushed_at = clock.time()
    clock.advance(1)

    with pytest.raises(kind):
        app.drain()

    expected = [("", 1.0)], pushed_at, -1.0, None
    assert [expected] * 3 == [look(app, worker, job_id) for job_id in "abc"]
    others = [] if kind is KeyboardInterrupt else [["c"], ["a"], ["b"]]
    assert [["a", "b"], *others] == notes.ids
    notes.clear()
    notes.then = None
    assert {"done": 3} == app.drain()
    order = "cab" if kind is KeyboardInterrupt else "abc"
    assert [[job_id] for job_id in order] == notes.ids


@pytest.mark.parametrize("batch_size", [1, 3])
def test_p6_an_id_that_ends_each_holder_holds_up_nobody(
    app: Lowkiq, clock: ManualClock, queue_name: str, batch_size: int
) -> None:
    """P6, E-54: it stays where it was for the lag, and the others of its batch and of its shard are performed."""

    def leave(batch: Batch) -> None:
        if "a" in batch:
            raise SystemExit

    notes = Notes(leave)
    worker = declare(app, queue_name, notes, batch_size=batch_size)
    pushed_at = clock.time()
    for job_id in "abcd":
        worker.push_many(jobs_of(job_id))
        clock.advance(1)
    for _ in range(4):
        clock.advance(1)
        with pytest.raises(SystemExit):
            app.drain()

    assert [True, False, False, False] == [look(app, worker, job_id) is not None for job_id in "abcd"]
    assert [["a"]] * 2 == notes.ids[-2:]
    metrics = app.operate.metrics()[queue_name]
    assert (0, clock.time() - pushed_at) == (metrics.failed, metrics.lag)


def test_p6_a_suspect_that_ends_its_holder_is_none_any_more(app: Lowkiq, queue_name: str) -> None:
    """P6: suspects run before all others, so one that leaves each time is taken out of their line."""

    def leave(batch: Batch) -> None:
        if len(batch) > 1:
            raise Broken
        if "a" in batch:
            raise SystemExit

    worker = declare(app, queue_name, leave, batch_size=2)
    worker.push_many(jobs_of("ab"))
    for _ in range(2):
        with pytest.raises(SystemExit):
            app.drain()

    assert [True, False] == [look(app, worker, job_id) is not None for job_id in "ab"]


def test_what_breaks_a_visit_off_gives_its_jobs_back_at_once(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """No handler runs any more, so the next holder need not wait for the lease, and suspects nobody."""

    class Breaks:
        def settled(self, *_settled: object) -> None:
            raise KeyboardInterrupt

    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("abcd"))
    app.core.drains.drainer.observer = Breaks()
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    app.core.drains.drainer.observer = None
    clock.advance(0.1)

    # The key of the lease goes by the server's own clock.
    shard = app.core.queues.agreed(worker).shards[0]
    eventually(lambda: not app.core.backend.client.exists(shard.key("lease")), timeout=1.0)
    assert {"done": 2, "recovered": 2} == app.drain()
    assert [["a", "b"], ["c", "d"]] == notes.ids


@pytest.mark.parametrize("kind", [MemoryError, RecursionError, BaseException, BaseExceptionGroup])
def test_e54_other_errors_are_failures(app: Lowkiq, queue_name: str, kind: type[BaseException]) -> None:
    """E-54: out of memory, too deep, or any other kind of exception is a failure and stops nothing."""
    error = BaseExceptionGroup("several", [Broken()]) if kind is BaseExceptionGroup else kind("no more")
    worker = declare(app, queue_name, raising(error))
    worker.push_many(jobs_of("ab"))

    assert {"failed": 2, "retried": 2} == app.drain()


@pytest.mark.parametrize("kind", INTERRUPTIONS)
def test_e54_marks_hold_through_an_interruption(app: Lowkiq, queue_name: str, kind: type[BaseException]) -> None:
    """E-54, E-55: what was marked before the interruption is settled as marked."""

    def mark_and_stop(batch: Batch) -> None:
        batch.done("a")
        batch.fail("b", "by name")
        raise kind

    worker = declare(app, queue_name, mark_and_stop, batch_size=3)
    worker.push_many(jobs_of("abc"))

    with pytest.raises(kind):
        app.drain()

    waiting = [look(app, worker, job_id) for job_id in "abc"]
    assert [None, 0.0, -1.0] == [one and one.retry_count for one in waiting]


@pytest.mark.parametrize(("kind", "later"), [(KeyboardInterrupt, -1.0), (SystemExit, None)])
def test_e54_an_interrupted_perform_job_keeps_what_was_done(
    app: Lowkiq, queue_name: str, kind: type[BaseException], later: float | None
) -> None:
    """E-54: with `perform_job` the ids before the interrupted one are done, it and the later ones go back.

    The later ones are performed then, unless that was Ctrl-C.
    """

    def perform_job(_self: Worker, job: BatchJob) -> None:
        if job.id == "b":
            raise kind(1)

    worker = declare(app, queue_name, print, batch_size=3, perform_job=perform_job)
    worker.push_many(jobs_of("abc"))

    with pytest.raises(kind):
        app.drain()

    waiting = [look(app, worker, job_id) for job_id in "abc"]
    assert [None, -1.0, later] == [one and one.retry_count for one in waiting]


def test_e54_a_middleware_cannot_make_interrupted_jobs_done(app: Lowkiq, queue_name: str) -> None:
    """E-54, E-58: where a middleware swallows the interruption of `perform_job`, what never ran is not done."""

    def swallowing(_worker: Worker, _batch: Batch, call_next: Callable[[], Any]) -> None:
        try:
            call_next()
        except SystemExit:
            notes.append("swallowed")

    def perform_job(_self: Worker, job: BatchJob) -> None:
        notes.append(job.id)
        if notes == ["a"]:
            raise SystemExit(1)

    notes: list[str] = []
    app.server_middlewares.append(swallowing)
    worker = declare(app, queue_name, print, batch_size=2, perform_job=perform_job)
    worker.push_many(jobs_of("ab"))

    with pytest.raises(SystemExit):
        app.drain()

    assert ["a", "swallowed"] == notes[:2]
    assert "b" in notes[2:]


def test_perform_job_comes_to_an_end_at_the_stop_signal(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-59: after the stop signal no further job of the batch starts; those that did not start go back in place."""
    stop, ran = threading.Event(), list[str]()

    def perform_job(_self: Worker, job: BatchJob) -> None:
        ran.append(job.id)
        stop.set()

    worker = declare(app, queue_name, print, batch_size=3, perform_job=perform_job)
    worker.push_many(jobs_of("abc"))
    result = app.core.drains.drainer.visit(
        app.core.queues.agreed(worker).shards[0], Budget(clock, stopping=stop.is_set)
    )

    assert (["a"], {"done": 1, "returned": 2}) == (ran, result.counts)
    assert ([("", clock.time())], clock.time(), -1.0, None) == look(app, worker, "c")


def test_e59_a_failure_at_the_stop_is_a_failure(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-59: a handler that really raised has failed, stop or not."""
    stop = threading.Event()

    def stop_and_raise(_batch: Batch) -> None:
        stop.set()
        raise Broken("really")

    worker = declare(app, queue_name, stop_and_raise)
    worker.push_many(jobs_of("ab"))
    result = app.core.drains.drainer.visit(
        app.core.queues.agreed(worker).shards[0], Budget(clock, stopping=stop.is_set)
    )

    assert {"failed": 1, "retried": 1} == result.counts
    waiting = [look(app, worker, job_id) for job_id in "ab"]
    assert [(0.0, "really"), (-1.0, None)] == [one and (one.retry_count, one.error) for one in waiting]


def test_what_was_claimed_and_did_not_run_goes_back(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Time over in the middle of a claim: the rest is interrupted, in place, without a retry."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of([f"{n:02}" for n in range(20)], score=1))
    app.drain(seconds=1)
    worker.push_many(jobs_of([f"{n:02}" for n in range(20)], score=1))
    notes.clear()
    notes.then = lambda _batch: clock.advance(0.4)
    at = clock.time()

    counts = app.drain(seconds=1)

    assert {"done": 4, "returned": 16} == counts
    assert ([("", 1.0)], at, -1.0, None) == look(app, worker, "19")
    assert {"done": 16} == app.drain()
