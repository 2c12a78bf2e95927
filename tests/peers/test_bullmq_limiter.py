"""BullMQ, tests/rate_limiter.test.ts at 1db20ab0: what its cases check, for a limiter that handlers ask."""

import pytest

from lowkiq_lambda import BatchJob, Concurrent, Later, Lowkiq, Rate, Refusal, Rejected, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.limiting import LimitedRuns, not_called
from tests.kit.workers import declare, jobs_of


def seconds_for(runs: LimitedRuns, clock: ManualClock, ids: str) -> float:
    """How long it takes until all of these are done."""
    runs.worker.push_many(jobs_of(ids))
    began = clock.time()
    while len(runs.ran) < len(ids):
        runs.app.drain()
        clock.advance(0.05)
    return clock.time() - began


def limited(app: Lowkiq, queue_name: str, limit: Rate) -> LimitedRuns:
    """Each job takes one point."""
    limiter = app.limiter(queue_name, limit)
    return LimitedRuns(app, queue_name, lambda _: limiter.acquire())


def test_who_is_over_the_limit_waits_for_a_later_time(app: Lowkiq, queue_name: str) -> None:
    """Here a refused job has a time of its own, at which its points are free; with `rate` of the queue it has none.

    Peer: tests/rate_limiter.test.ts, "should not put a job into the delayed queue when limit is hit".
    """
    runs = limited(app, queue_name, Rate(1, per=10))
    assert {"done": 1, "later": 4} == runs.drain("abcde")
    assert {True} == {runs.due_in(job_id) > 9.0 for job_id in "bcde"}


def test_a_limit_that_is_set_is_obeyed(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """From the next second on. Peer: "when setting rate limit globally", "should obey the rate limit"."""
    runs = limited(app, queue_name, Rate(100, per=0.5))
    app.limiter(queue_name).set(Rate(1, per=0.5))
    assert Rate(1, per=0.5) == app.limiter(queue_name).explain().limit
    assert seconds_for(runs, clock, "abcdefghij") >= 9 * 0.5


def test_a_limit_that_is_taken_back_counts_no_more(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: "when rate limit is removed", "should execute jobs without rate limit"."""
    runs = limited(app, queue_name, Rate(100, per=10))
    app.limiter(queue_name).set(Rate(1, per=10))
    app.limiter(queue_name).reset()
    assert seconds_for(runs, clock, "abcdefghij") < 0.15


@pytest.mark.parametrize(("most", "least"), [(1, 9.0), (2, 4.0)])
def test_the_limit_is_obeyed(app: Lowkiq, clock: ManualClock, queue_name: str, most: int, least: float) -> None:
    """Peer: "should obey the rate limit", and "should obey the rate limit with max value greater than 1"."""
    assert least <= seconds_for(limited(app, queue_name, Rate(most, per=1)), clock, "abcdefghij") <= least * 1.2 + 0.5


def test_a_limit_adds_nothing_to_the_run_of_a_job(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It waits in the queue, and not in its handler.

    Peer: "should respect processing time without adding limiter delay".
    """
    limiter, took = app.limiter(queue_name, Rate(4, per=1)), list[float]()

    def ask(_job_id: str) -> None:
        began = clock.time()
        limiter.acquire()
        took.append(clock.time() - began)

    seconds_for(LimitedRuns(app, queue_name, ask), clock, "abcdefghijkl")
    assert {0.0} == set(took)


def test_a_slow_limit_keeps_no_drain(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: "should quickly close a worker even with slow rate-limit"."""
    runs, began = limited(app, queue_name, Rate(1, per=60)), clock.time()
    assert {"done": 1, "later": 1} == runs.drain("ab")
    assert clock.time() - began < 1.0


def test_a_job_that_never_ends_does_not_block_a_window(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A window counts begins; a place ends by itself.

    Peer: "when a job never completed", "should not block the rate limit".
    """
    rate, places = (
        app.limiter(f"{queue_name}-1", Rate(1, per=1)),
        app.limiter(f"{queue_name}-2", Concurrent(1, hold=10)),
    )
    rate.acquire()
    places.acquire()
    clock.advance(11.0)
    assert rate.try_acquire()
    assert places.try_acquire()


def test_a_pause_between_two_turns(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Refused jobs stay where they are while the queue is paused. Peer: "when queue is paused between rate limit"."""
    runs = limited(app, queue_name, Rate(1, per=2))
    assert {"done": 1, "later": 3} == runs.drain("abcd")
    app.operate(runs.worker).pause(60)
    clock.advance(10.0)
    assert {} == app.drain()
    assert 3 == app.operate(runs.worker).waiting.count()
    app.operate(runs.worker).resume()
    assert {"done": 1, "later": 2} == app.drain()


def test_each_limiter_counts_for_itself(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: "when using flows", "should obey the rate limit per queue"."""
    slow = limited(app, f"{queue_name}-slow", Rate(1, per=2))
    fast = limited(app, f"{queue_name}-fast", Rate(1, per=1))
    slow.worker.push_many(jobs_of("abc"))
    assert 4.0 <= seconds_for(fast, clock, "abcde") <= 6.0
    assert 2 <= len(slow.ran) <= 3


def test_a_limit_that_the_other_side_names(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`Later` in place of a rate limit error: no attempt is counted.

    Peer: "when dynamic limit is used", "should obey the rate limit".
    """
    tries = list[str]()

    def ask(job_id: str) -> None:
        tries.append(job_id)
        if len(tries) == 1:
            raise Later(25, "429")

    runs = LimitedRuns(app, queue_name, ask)
    assert {"later": 1} == runs.drain("a")
    assert 25.0 == pytest.approx(runs.due_in("a"), abs=0.1)
    assert "429" == app.operate(runs.worker).explain("a").put_off
    clock.advance(26.0)
    assert {"done": 1} == app.drain()


def test_a_very_short_limit_puts_the_job_off_anyway(app: Lowkiq, queue_name: str) -> None:
    """For a second at least. Peer: "when rate limit is too low", "should move job to wait anyway"."""

    def ask(_job_id: str) -> None:
        raise Later(0.001)

    runs = LimitedRuns(app, queue_name, ask)
    assert {"later": 1} == runs.drain("a")
    assert 1.0 == pytest.approx(runs.due_in("a"), abs=0.1)


def test_what_is_left_is_told(app: Lowkiq, queue_name: str) -> None:
    """Peer: "when passing maxJobs when getting rate limit ttl", both cases."""
    limiter = app.limiter(queue_name, Rate(2, per=10))
    limiter.acquire()
    assert 1 == limiter.explain().left
    limiter.acquire()
    refusal = limiter.try_acquire()
    assert isinstance(refusal, Refusal)
    assert (0, True) == (limiter.explain().left, 9.0 < refusal.seconds < 11.0)


def test_a_job_may_give_up(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`Rejected` ends it. Peer: "when reaching max attempts and we want to move the job to failed"."""
    limiter, tries = app.limiter(queue_name, Rate(1, per=10)), list[str]()
    limiter.acquire()

    def perform_job(_self: Worker, job: BatchJob) -> None:
        tries.append(job.id)
        refusal = limiter.try_acquire()
        if isinstance(refusal, Refusal):
            raise Rejected("too busy") if len(tries) == 2 else refusal.later()

    worker = declare(app, queue_name, not_called, perform_job=perform_job)
    worker.push("a")
    assert {"later": 1} == app.drain()
    clock.advance(10.2)
    limiter.acquire(wait=30)
    app.operate(worker).waiting.run_now(["a"])
    assert {"rejected": 1} == app.drain()


def test_refused_jobs_keep_the_order_of_their_asking(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: "when priority is the same for some jobs", "should get jobs in fifo order"."""
    runs = limited(app, queue_name, Rate(1, per=5))
    seconds_for(runs, clock, "abcd")
    assert list("abcd") == runs.ran


def test_a_queue_that_its_own_handler_pauses(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The refused job waits for the end of the pause. Peer: "when queue is paused", "moves job to paused"."""
    limiter = app.limiter(queue_name, Rate(1, per=10))
    limiter.acquire()

    def ask(_job_id: str) -> None:
        app.operate(runs.worker).pause(60)
        limiter.acquire()

    runs = LimitedRuns(app, queue_name, ask)
    assert {"later": 1} == runs.drain("a")
    clock.advance(20.0)
    assert {} == app.drain()
    clock.advance(60.0)
    assert {"done": 1} == app.drain()


def test_a_job_whose_limit_was_raised_need_not_wait(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """An operator lets it run now. Peer: "when removing rate limit", "should process jobs normally"."""
    runs = limited(app, queue_name, Rate(1, per=1_000))
    assert {"done": 1, "later": 1} == runs.drain("ab")
    app.limiter(queue_name).set(Rate(10, per=1_000))
    clock.advance(1.0)
    app.operate(runs.worker).waiting.run_now(["b"])
    assert {"done": 1} == app.drain()
