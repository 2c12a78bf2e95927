"""P9: honest lags of delayed jobs, retries, jobs in flight, paused jobs and "run now" (LB-16)."""

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare, jobs_of


def lag_of(app: Lowkiq, queue_name: str) -> float:
    """Seconds, by what `app.stats` says."""
    return app.operate.stats()["by_worker"][queue_name]["lag"]


def test_p9_a_delayed_job_lags_from_its_time_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9, LN-12: until a job is due its lag is 0; then it is how long it has been due, not been there."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a", delay=60))
    lags = []
    for seconds in (0, 59, 1, 5):
        clock.advance(seconds)
        lags.append(lag_of(app, queue_name))

    assert [0, 0, 0, 5] == lags


def test_p9_a_retry_lags_from_its_time_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: while a job waits for its retry it does not lag."""
    worker = declare(app, queue_name, raising())
    worker.push_many(jobs_of("a"))
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
    worker.push_many(jobs_of("a"))
    clock.advance(2)
    mortal.drain()
    clock.advance(100)

    assert ([7], 107) == (seen, lag_of(app, queue_name))


def test_p9_lag_in_total_is_the_largest(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-12: of several queues and shards the most lagging counts, lengths are summed."""
    for number, seconds in enumerate((10, 30, 20)):
        worker = declare(app, f"{queue_name}-{number}", Notes(), shards_count=3)
        worker.push_many(jobs_of("abc", due_at=clock.time() - seconds))

    stats = app.operate.stats()

    assert {"length": 9, "morgue_length": 0, "lag": 30.0} == stats["total"]
    assert [10, 30, 20] == [one["lag"] for one in stats["by_worker"].values()]


def test_p9_run_now_does_not_fake_the_lag(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9, LB-16: what is performed now lags from now on."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("abc", delay=1_000))
    app.operate(worker).waiting.run_now(everything=True)
    at_once = lag_of(app, queue_name)
    clock.advance(7)

    assert (True, 7) == (0 <= at_once < 0.001, round(lag_of(app, queue_name), 3))


def test_p9_requeued_lags_from_then_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: time in the morgue is not waiting."""
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(500)
    app.operate(worker).morgue.requeue(["a"])
    clock.advance(4)

    assert 4 == lag_of(app, queue_name)


def test_p9_what_is_paused_lags_apart(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: a paused queue is late on purpose: its lag stands apart, and hides none in the total, until it goes on."""
    paused = declare(app, f"{queue_name}-paused", Notes(), shards_count=2)
    other = declare(app, f"{queue_name}-other", Notes())
    paused.push_many(jobs_of("abcd"))
    app.operate(paused).pause(100)
    clock.advance(50)
    other.push_many(jobs_of("a"))
    clock.advance(3)
    told, found = app.operate.stats(), app.operate.metrics()
    resting, going = found[f"{queue_name}-paused"], found[f"{queue_name}-other"]

    assert (3, 3) == (told["total"]["lag"], going.oldest_due_age)
    assert (0, 0, 53, 2) == (resting.lag, resting.oldest_due_age, resting.paused_lag, resting.paused)
    assert [(0, 53), (0, 53)] == [(shard.lag, shard.paused_lag) for shard in resting.shards]
    assert (3, 0) == (going.lag, going.paused_lag)

    clock.advance(50)
    after = app.operate.metrics()[f"{queue_name}-paused"]
    assert (103, 103, 0, 0) == (after.lag, after.oldest_due_age, after.paused_lag, after.paused)


def test_p9_of_a_queue_that_is_paused_in_part_the_rest_lags(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: whatever shards are measured together, those that go on are late, and those that rest are not."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.push_many(jobs_of("abcdefgh", due_at=clock.time() - 5))
    shards = app.core.queues.agreed(worker).shards
    app.core.backend.run("pause", shards[0], [clock.time() + 60], retry_for=1)
    clock.advance(2)
    (queue,) = app.operate.metrics().values()
    with app.operate.overview("10m") as seen:
        (together,) = [one.now for one in seen.queues]

    assert [(0, 7), (7, 0)] == [(shard.lag, shard.paused_lag) for shard in queue.shards]
    assert (7, 7, 7) == (together.lag, together.oldest_due_age, together.paused_lag)


def test_lb16_run_now_fakes_no_lag(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-16, E-82: jobs that are performed now come in the order of their times, and lag stays that of waiting."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    now = clock.time()
    worker.push_many({"id": job_id, "due_at": now + at} for job_id, at in (("c", 30), ("a", 10), ("b", 20)))

    assert 3 == app.operate(worker).waiting.run_now(everything=True)
    lag = app.operate.stats()["by_worker"][queue_name]["lag"]
    app.drain()

    assert ([["a"], ["b"], ["c"]], True) == (notes.ids, 0 <= lag < 0.01)
