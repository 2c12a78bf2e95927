"""P9: honest numbers, for delayed jobs, retries, jobs in flight and "perform now" too."""

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views import Numbers
from tests.kit.deaths import Mortal
from tests.kit.handlers import Notes, failing, raising
from tests.kit.workers import declare, jobs_of


def lag_of(app: Lowkiq, queue_name: str) -> float:
    """Seconds, by what `app.stats` says."""
    return app.stats()["by_worker"][queue_name]["lag"]


def test_p9_a_delayed_job_lags_from_its_time_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9, LN-12: until a job is due its lag is 0; then it is how long it has been due, not been there."""
    worker = declare(app, queue_name, Notes())
    worker.perform_async(jobs_of("a", delay=60))
    lags = []
    for seconds in (0, 59, 1, 5):
        clock.advance(seconds)
        lags.append(lag_of(app, queue_name))

    assert [0, 0, 0, 5] == lags


def test_p9_a_retry_lags_from_its_time_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: while a job waits for its retry it does not lag."""
    worker = declare(app, queue_name, raising())
    worker.perform_async(jobs_of("a"))
    clock.advance(3)
    lags = [lag_of(app, queue_name)]
    app.drain()
    lags.append(lag_of(app, queue_name))
    clock.advance(12)
    lags.append(lag_of(app, queue_name))

    assert [3, 0, 2] == lags


def test_p9_a_job_in_flight_still_lags(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: what is being performed, or was when its process died, has waited since it was due."""
    mortal, seen = Mortal(app), list[float]()

    def perform(_batch: Batch) -> None:
        clock.advance(5)
        seen.append(lag_of(app, queue_name))
        mortal.die()

    worker = declare(app, queue_name, perform)
    worker.perform_async(jobs_of("a"))
    clock.advance(2)
    mortal.drain()
    clock.advance(100)

    assert ([7], 107) == (seen, lag_of(app, queue_name))


def test_p9_lag_in_total_is_the_largest(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-12: of several queues and shards the most lagging counts, lengths are summed."""
    for number, seconds in enumerate((10, 30, 20)):
        worker = declare(app, f"{queue_name}-{number}", Notes(), shards_count=3)
        worker.perform_async(jobs_of("abc", perform_in=clock.time() - seconds))

    stats = app.stats()

    assert {"length": 9, "morgue_length": 0, "lag": 30.0} == stats["total"]
    assert [10, 30, 20] == [one["lag"] for one in stats["by_worker"].values()]


def test_p9_without_jobs_all_is_zero(app: Lowkiq, queue_name: str) -> None:
    """LN-20: an app without workers, and a queue without jobs, have zeros."""
    nothing = Numbers(length=0, morgue_length=0, lag=0.0)

    assert {"total": nothing, "by_worker": {}} == dict(app.stats())
    declare(app, queue_name, Notes())
    assert {"total": nothing, "by_worker": {queue_name: nothing}} == dict(app.stats())


def test_p9_lengths_count_ids_that_wait(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-12: fresh and retries make the length; ids in flight are busy, and neither."""
    seen: list[tuple[int, int, int, int]] = []

    def look_and_fail(batch: Batch) -> None:
        metrics = app.metrics()[queue_name]
        seen.append((metrics.length, metrics.fresh, metrics.retries, metrics.in_flight))
        failing("a", "b")(batch)

    worker = declare(app, queue_name, look_and_fail, batch_size=3)
    worker.perform_async([*jobs_of("abc", payload=1), *jobs_of("abc", payload=2), {"id": "later", "delay": 5}])
    app.drain()
    worker.perform_async(jobs_of("xyz"))
    after = app.metrics()[queue_name]
    clock.advance(10)

    assert [(1, 1, 0, 3)] == seen
    assert (6, 4, 2, 0) == (after.length, after.fresh, after.retries, after.in_flight)


def test_p9_counters_count_ids_and_payloads(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-12: processed and failed are ids, payloads are payloads that were done; dead are the last failures."""
    worker = declare(app, queue_name, failing("b"), batch_size=3, max_retry_count=1)
    worker.perform_async({"id": job_id, "payload": n} for job_id in "abc" for n in range(5))
    counts = app.drain()
    clock.advance(10)
    app.drain()
    metrics = app.metrics()[queue_name]

    # The second time the oldest payload of "b" is buried, and the rest fails for the first time.
    assert {"done": 2, "failed": 1, "retried": 1} == counts
    assert (2, 10, 3, 1) == (metrics.done, metrics.payloads, metrics.failed, metrics.buried)


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
    worker.perform_async(jobs_of("abc"))
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    counted = app.metrics()[queue_name]
    app.drain()
    after = app.metrics()[queue_name]

    assert (0, 0, 3) == (counted.done, counted.failed, counted.fresh)
    assert (3, 0, 3) == (after.done, after.failed, after.payloads)


def test_p9_a_window_counts_as_it_is_settled(app: Lowkiq, queue_name: str) -> None:
    """P9: busy is what is in flight, so processed and busy and length always add up to what was pushed."""
    sums: list[int] = []

    def add_up(_batch: Batch) -> None:
        metrics = app.metrics()[queue_name]
        sums.append(metrics.done + metrics.in_flight + metrics.length)

    worker = declare(app, queue_name, add_up, batch_size=2, shards_count=2)
    worker.perform_async({"id": n} for n in range(30))
    app.drain()

    assert {30} == set(sums)


def test_p9_the_drain_counts_by_outcome(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What `app.drain` returns adds up: each delivered id has one outcome."""
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes, batch_size=2, max_retry_count=1)
    worker.perform_async(jobs_of("abcd"))
    first = app.drain()
    clock.advance(10)

    assert {"done": 3, "failed": 1, "retried": 1} == first
    assert {"failed": 1, "buried": 1} == app.drain()
    assert {} == app.drain()


def test_p9_perform_now_does_not_fake_the_lag(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9, LB-16: what is performed now lags from now on."""
    worker = declare(app, queue_name, Notes())
    worker.perform_async(jobs_of("abc", delay=1_000))
    app.actions(worker).perform_all_jobs_now()
    at_once = lag_of(app, queue_name)
    clock.advance(7)

    assert (True, 7) == (0 <= at_once < 0.001, round(lag_of(app, queue_name), 3))


def test_p9_queued_up_from_the_morgue_lags_from_then_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: time in the morgue is not waiting."""
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    worker.perform_async(jobs_of("a"))
    app.drain()
    clock.advance(500)
    app.actions(worker).morgue_queue_up(["a"])
    clock.advance(4)

    assert 4 == lag_of(app, queue_name)


def test_p9_what_is_paused_lags_apart(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: a paused queue is late on purpose: its lag stands apart, and hides none in the total, until it goes on."""
    paused = declare(app, f"{queue_name}-paused", Notes(), shards_count=2)
    other = declare(app, f"{queue_name}-other", Notes())
    paused.perform_async(jobs_of("abcd"))
    app.actions(paused).pause(100)
    clock.advance(50)
    other.perform_async(jobs_of("a"))
    clock.advance(3)
    told, found = app.stats(), app.metrics()
    resting, going = found[f"{queue_name}-paused"], found[f"{queue_name}-other"]

    assert (3, 3) == (told["total"]["lag"], going.oldest_due_age)
    assert (0, 0, 53, 2) == (resting.lag, resting.oldest_due_age, resting.paused_lag, resting.paused)
    assert [(0, 53), (0, 53)] == [(shard.lag, shard.paused_lag) for shard in resting.shards]
    assert (3, 0) == (going.lag, going.paused_lag)

    clock.advance(50)
    after = app.metrics()[f"{queue_name}-paused"]
    assert (103, 103, 0, 0) == (after.lag, after.oldest_due_age, after.paused_lag, after.paused)


def test_p9_of_a_queue_that_is_paused_in_part_the_rest_lags(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: whatever shards are measured together, those that go on are late, and those that rest are not."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.perform_async(jobs_of("abcdefgh", perform_in=clock.time() - 5))
    shards = app.queue_of(worker).shards
    app.backend.run("pause", shards[0], [clock.time() + 60], patience=1)
    clock.advance(2)
    (queue,) = app.metrics().values()
    with app.overview("10m") as seen:
        (together,) = [one.now for one in seen.queues]

    assert [(0, 7), (7, 0)] == [(shard.lag, shard.paused_lag) for shard in queue.shards]
    assert (7, 7, 7) == (together.lag, together.oldest_due_age, together.paused_lag)
