"""Sidekiq Enterprise, its wiki's page "Ent Rate Limiting" (as of 2023): what it says of each limiter, tried here."""

import pytest

from lowkiq_lambda import BatchJob, Bucket, Concurrent, Leaky, LimitExceeded, Lowkiq, Rate, Worker
from lowkiq_lambda.store.shard.keys import LimiterRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.limiting import LimitedRuns, into_period, not_called
from tests.kit.servers import Server
from tests.kit.workers import declare


def test_only_n_operations_happen_at_any_moment(make_app: MakeApp, queue_name: str) -> None:
    """All processes with the same Redis share it. Peer: wiki "Ent Rate Limiting", "Concurrent"."""
    limiters = [make_app().limiter(queue_name, Concurrent(2)) for _ in range(3)]
    with limiters[0].acquire(), limiters[1].acquire():
        assert not limiters[2].try_acquire()
    assert limiters[2].try_acquire()


def test_a_limiter_of_one_is_a_mutex(app: Lowkiq, queue_name: str) -> None:
    """A second one is refused until the block has ended. Peer: wiki, "Concurrent", distributed mutex."""
    mutex = app.limiter(queue_name, Concurrent(1))
    for _ in range(2):
        with mutex.acquire():
            assert not mutex.try_acquire()


def test_a_caller_pauses_for_a_lock(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """For `wait` seconds at most. Peer: wiki, "Concurrent", wait_timeout."""
    limiter, began = app.limiter(queue_name, Concurrent(1, hold=4)), clock.time()
    limiter.acquire()
    with pytest.raises(LimitExceeded):
        limiter.acquire(wait=2)
    assert 2.0 == pytest.approx(clock.time() - began)
    assert 0 == limiter.acquire(wait=5).left


def test_a_crashed_process_holds_no_lock_forever(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """After `hold` seconds it can be taken again. Peer: wiki, "Concurrent", lock_timeout."""
    limiter = app.limiter(queue_name, Concurrent(1, hold=30))
    limiter.acquire()
    clock.advance(29.0)
    assert not limiter.try_acquire()
    clock.advance(2.5)
    assert limiter.try_acquire()


def test_each_interval_is_a_bucket(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Five at the end of a minute, and five more at the begin of the next. Peer: wiki, "Bucket"."""
    limiter = app.limiter(queue_name, Bucket(5, per=60))
    into_period(clock, 60.0, 58.0)
    limiter.acquire(points=5)
    assert not limiter.try_acquire()
    clock.advance(2.1)
    assert limiter.try_acquire(points=5)


def test_a_full_bucket_is_refused_until_the_next(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Six hundred in the first minutes of an hour, and none in the rest. Peer: wiki, "Bucket", 600 calls an hour."""
    limiter = app.limiter(queue_name, Bucket(600, per=3600))
    into_period(clock, 3600.0, 360.0)
    limiter.acquire(points=600)

    with pytest.raises(LimitExceeded) as refused:
        limiter.acquire()

    assert 3240.0 == pytest.approx(refused.value.retry_after, abs=0.1)


def test_a_window_slides(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """No five seconds have more than five, wherever they begin. Peer: wiki, "Window"."""
    limiter = app.limiter(queue_name, Rate(5, per=5))
    taken = 0
    for _ in range(40):
        taken += bool(limiter.try_acquire())
        clock.advance(0.5)
    assert 16 <= taken <= 20


def test_a_caller_pauses_for_a_window(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Not only locks can be waited for. Peer: wiki, "Window", wait_timeout."""
    limiter, began = app.limiter(queue_name, Rate(1, per=5)), clock.time()
    limiter.acquire()
    assert 0 == limiter.acquire(wait=10).left
    assert 5.0 <= clock.time() - began <= 5.6


def test_a_leaky_bucket_fills_and_drips(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Sixty at once, then one a second. Peer: wiki, "Leaky"."""
    limiter = app.limiter(queue_name, Leaky(capacity=60, per=60))
    limiter.acquire(points=60)
    assert not limiter.try_acquire()
    clock.advance(1.0)
    taken = 0
    for _ in range(20):
        clock.advance(0.5)
        taken += bool(limiter.try_acquire())
    assert 9 <= taken <= 10


def test_points_are_estimated_and_put_right(app: Lowkiq, queue_name: str) -> None:
    """What a query cost is told afterwards. Peer: wiki, "Points", points_used."""
    limiter = app.limiter(queue_name, Rate(1_000, per=60))
    limiter.acquire(points=200).give_back(150)
    limiter.acquire(points=100).spend(50)
    assert 1_000 - 50 - 150 == limiter.explain().left


def test_an_estimate_above_the_limit_is_an_error(app: Lowkiq, queue_name: str) -> None:
    """It could never be granted. Peer: wiki, "Points", estimate."""
    with pytest.raises(ValueError, match="never be granted"):
        app.limiter(queue_name, Rate(1_000, per=60)).acquire(points=1_001)


def test_some_callers_have_no_limit(app: Lowkiq, queue_name: str) -> None:
    """An admin makes no call; there is no limiter that allows everything. Peer: wiki, "Unlimited"."""
    limiter = app.limiter(queue_name, Rate(1, per=60))

    def ask(job_id: str) -> None:
        if job_id != "x":
            limiter.acquire()

    assert {"done": 2, "later": 1} == LimitedRuns(app, queue_name, ask).drain("abx")


def test_a_job_over_the_limit_is_rescheduled_and_has_not_failed(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """As often as it takes: here is no limit of twenty times. Peer: wiki, "Job Execution", reschedule."""
    limiter = app.limiter(queue_name, Rate(1, per=10))
    runs = LimitedRuns(app, queue_name, lambda _: limiter.acquire())
    limiter.acquire()
    runs.worker.push("a")
    for _ in range(25):
        assert {"later": 1} == app.drain()
        assert -1 == app.operate(runs.worker).waiting.fetch(["a"])[0].retry_count
        app.operate(runs.worker).waiting.run_now(["a"])
    clock.advance(11.0)
    assert {"done": 1} == app.drain()


def test_a_job_is_rescheduled_to_its_turn(app: Lowkiq, queue_name: str) -> None:
    """And not by a delay that grows with each refusal. Peer: wiki, "Job Execution", backoff."""
    limiter = app.limiter(queue_name, Rate(1, per=10))
    runs = LimitedRuns(app, queue_name, lambda _: limiter.acquire())
    runs.drain("abcd")
    assert [10.0, 20.0, 30.0] == [pytest.approx(runs.due_in(job_id), abs=3.0) for job_id in "bcd"]


def test_a_refusal_can_be_ignored(app: Lowkiq, queue_name: str) -> None:
    """The job leaves the block out, and is done. Peer: wiki, "Policy", :ignore."""
    limiter, called = app.limiter(queue_name, Rate(1, per=10)), list[str]()

    def ask(job_id: str) -> None:
        if limiter.try_acquire():
            called.append(job_id)

    assert {"done": 3} == LimitedRuns(app, queue_name, ask).drain("abc")
    assert ["a"] == called


def test_limiters_work_in_any_process(app: Lowkiq, queue_name: str) -> None:
    """A web request gets an error with the seconds. Peer: wiki, introduction and "Policy", :raise."""
    limiter = app.limiter(queue_name, Rate(1, per=10))
    limiter.acquire()
    with pytest.raises(LimitExceeded) as refused:
        limiter.acquire()
    assert 9.0 < refused.value.retry_after < 11.0


def test_each_customer_has_a_limit_of_its_own(app: Lowkiq, queue_name: str) -> None:
    """By a key, and not by a limiter that is made anew. Peer: wiki, "Concurrent", dynamic names."""
    limiter = app.limiter(queue_name, Rate(1, per=10))
    assert [True, True, False] == [bool(limiter.try_acquire(key)) for key in ("user-1", "user-2", "user-1")]


def test_a_limiter_that_nobody_uses_leaves_nothing(make_app: MakeApp, own_server: Server, queue_name: str) -> None:
    """Its keys end by themselves: after twice the period, and not after three months. Peer: wiki, "TTL"."""
    make_app(redis_url=own_server.url).limiter(queue_name, Rate(1, per=10)).acquire("user-1")
    (key,) = own_server.admin.keys()
    assert LimiterRef(queue_name, "user-1").keys[0].encode() == key
    assert 15_000 < own_server.admin.pttl(key) <= 20_000


def test_two_limiters_around_one_call(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The inner one refuses: the job is put off, and its place is given back. Peer: wiki, "within_limit"."""
    places, rate = app.limiter(f"{queue_name}-1", Concurrent(1)), app.limiter(f"{queue_name}-2", Rate(1, per=10))

    def perform_job(_self: Worker, _job: BatchJob) -> None:
        with places.acquire():
            rate.acquire()

    worker = declare(app, queue_name, not_called, perform_job=perform_job)
    worker.push_many([{"id": "a"}, {"id": "b"}])
    assert {"done": 1, "later": 1} == app.drain()
    assert 1 == places.explain().left
    clock.advance(11.0)
    assert {"done": 1} == app.drain()


def test_an_operator_sees_all_limiters(app: Lowkiq, queue_name: str) -> None:
    """Their use, how many wait, and how often they refused. Peer: wiki, "Web UI" and metrics."""
    limiter = app.limiter(queue_name, Rate(1, per=10))
    LimitedRuns(app, queue_name, lambda _: limiter.acquire()).drain("abc")
    (view,) = [each.explain() for each in app.operate.limiters()]
    assert (queue_name, Rate(1, per=10), 0, 2, 2) == (view.name, view.limit, view.left, view.waiting, view.put_off)
