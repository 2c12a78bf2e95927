"""P9: honest counts of waiting ids and of outcomes (LB-26)."""

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.queues import Numbers
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.workers import declare, jobs_of


def test_p9_without_jobs_all_is_zero(app: Lowkiq, queue_name: str) -> None:
    """LN-20: an app without workers, and a queue without jobs, have zeros."""
    nothing = Numbers(length=0, morgue_length=0, lag=0.0)

    assert {"total": nothing, "by_worker": {}} == dict(app.operate.stats())
    declare(app, queue_name, Notes())
    assert {"total": nothing, "by_worker": {queue_name: nothing}} == dict(app.operate.stats())


def test_p9_lengths_count_ids_that_wait(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-12: fresh and retries make the length; ids in flight are busy, and neither."""
    seen: list[tuple[int, int, int, int]] = []

    def look_and_fail(batch: Batch) -> None:
        metrics = app.operate.metrics()[queue_name]
        seen.append((metrics.length, metrics.fresh, metrics.retries, metrics.in_flight))
        failing("a", "b")(batch)

    worker = declare(app, queue_name, look_and_fail, batch_size=3)
    worker.push_many([*jobs_of("abc", payload=1), *jobs_of("abc", payload=2), {"id": "later", "delay": 5}])
    app.drain()
    worker.push_many(jobs_of("xyz"))
    after = app.operate.metrics()[queue_name]
    clock.advance(10)

    assert [(1, 1, 0, 3)] == seen
    assert (6, 4, 2, 0) == (after.length, after.fresh, after.retries, after.in_flight)


def test_p9_counters_count_ids_and_payloads(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-12: processed and failed are ids, payloads are payloads that were done; dead are the last failures."""
    worker = declare(app, queue_name, failing("b"), batch_size=3, max_retry_count=1)
    worker.push_many({"id": job_id, "payload": n} for job_id in "abc" for n in range(5))
    counts = app.drain()
    clock.advance(10)
    app.drain()
    metrics = app.operate.metrics()[queue_name]

    # The second time the oldest payload of "b" is dead, and the rest fails for the first time.
    assert {"done": 2, "failed": 1, "retried": 1} == counts
    assert (2, 10, 3, 1) == (metrics.done, metrics.payloads, metrics.failed, metrics.dead)


def test_p9_what_counts_nothing_is_counted_as_nothing(app: Lowkiq, queue_name: str) -> None:
    """P9: a failure in company, an interruption and a repeat are no failure and nothing processed."""
    notes = Notes()

    def fail_in_company(batch: Batch) -> None:
        if len(batch) > 1:
            raise LookupError
        if len(notes.batches) == 2:
            raise KeyboardInterrupt

    notes.then = fail_in_company
    worker = declare(app, queue_name, notes, batch_size=3)
    worker.push_many(jobs_of("abc"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    counted = app.operate.metrics()[queue_name]
    app.drain()
    after = app.operate.metrics()[queue_name]

    assert (0, 0, 3) == (counted.done, counted.failed, counted.fresh)
    assert (3, 0, 3) == (after.done, after.failed, after.payloads)


def test_p9_a_claim_counts_as_it_is_settled(app: Lowkiq, queue_name: str) -> None:
    """P9: busy is what is in flight, so processed and busy and length always add up to what was pushed."""
    sums: list[int] = []

    def add_up(_batch: Batch) -> None:
        metrics = app.operate.metrics()[queue_name]
        sums.append(metrics.done + metrics.in_flight + metrics.length)

    worker = declare(app, queue_name, add_up, batch_size=2, shards_count=2)
    worker.push_many({"id": n} for n in range(30))
    app.drain()

    assert {30} == set(sums)


def test_p9_the_drain_counts_by_outcome(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What `app.drain` returns adds up: each delivered id has one outcome."""
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes, batch_size=2, max_retry_count=1)
    worker.push_many(jobs_of("abcd"))
    first = app.drain()
    clock.advance(10)

    assert {"done": 3, "failed": 1, "retried": 1} == first
    assert {"failed": 1, "dead": 1} == app.drain()
    assert {} == app.drain()


def test_lb26_busy_and_counters_are_right_after_a_crash(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-26: what a dead holder had is busy until it is recovered, and then it is not; nothing is counted twice."""
    mortal, notes = Mortal(app), Notes()
    notes.then = mortal.die
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("ab"))
    mortal.drain()
    dying = app.operate.metrics()[queue_name]
    notes.then = lambda batch: raising(Broken())(batch) if "b" in batch else None
    outlive(app, clock, worker)
    app.drain()
    after = app.operate.metrics()[queue_name]

    assert (2, 0, 0) == (dying.in_flight, dying.length, dying.done)
    assert (0, 1, 1, 1) == (after.in_flight, after.length, after.done, after.failed)
