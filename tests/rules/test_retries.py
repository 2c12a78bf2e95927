"""Retries: when and how often a failed id is tried again (L-18 to L-24, L-37, L-38, LN-11, D-4)."""

import pytest

from lowkiq_lambda import Worker
from lowkiq_lambda.testing import AppUnderTest
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import look
from tests.kit.workers import declare, jobs_of


def test_l18_retry_count_starts_at_minus_one_and_counts_planned_retries(lowkiq: AppUnderTest) -> None:
    """L-18: a new job has -1, one that failed once has 0, and so on."""
    notes = Notes(raising())
    worker = declare(lowkiq.app, "orders", notes)
    worker.push_many(jobs_of("a"))

    for _ in range(3):
        lowkiq.drain(raises=False)
        lowkiq.advance(seconds=100)

    assert [-1.0, 0.0, 1.0] == [job.retry_count for (job,) in notes.jobs]


def test_l20_a_failed_job_waits_for_its_retry(lowkiq: AppUnderTest) -> None:
    """L-20: retry_count goes up, due_at is now + retry_in(retry_count), and the job is back in the queue."""
    worker = declare(lowkiq.app, "orders", raising(Broken("no luck")))
    worker.push_many([{"id": "a", "payload": "v", "score": 1}])

    assert ["a"] == lowkiq.drain(raises=False).retried
    assert ([("v", 1.0)], lowkiq.clock.time() + 10, 0.0, "no luck") == look(lowkiq.app, worker, "a")
    lowkiq.advance(seconds=10)
    assert ["a"] == lowkiq.drain(raises=False).retried

    assert ([("v", 1.0)], lowkiq.clock.time() + 20, 1.0, "no luck") == look(lowkiq.app, worker, "a")


def test_l20_the_delay_counts_from_the_failure(lowkiq: AppUnderTest) -> None:
    """L-20: now is when the job failed, not when it was claimed."""

    def slowly(_batch: object) -> None:
        lowkiq.advance(seconds=5)
        raise Broken

    worker = declare(lowkiq.app, "orders", slowly)
    worker.push_many(jobs_of("a"))
    started = lowkiq.clock.time()

    lowkiq.app.drain(seconds=5)

    waiting = look(lowkiq.app, worker, "a")
    assert waiting is not None
    assert started + 5 + 10 == waiting.due_at


def test_l21_the_last_failure_asks_for_no_time(lowkiq: AppUnderTest) -> None:
    """L-21, L-23: at the limit the job does not wait once more, it goes to the morgue at once."""
    asked: list[int] = []

    def retry_in(_self: object, retry_count: int) -> float:
        asked.append(retry_count)
        return 0

    notes = Notes(raising())
    worker = declare(lowkiq.app, "orders", notes, max_retry_count=2, retry_in=retry_in)
    worker.push_many(jobs_of("a"))

    result = lowkiq.drain(raises=False)

    assert (["a", "a"], ["a"]) == (result.retried, result.dead)
    assert ([0, 1], 3, ["a"]) == (asked, len(notes.batches), [job.id for job in notes.dead])
    assert look(lowkiq.app, worker, "a") is None


def test_l22_the_table_of_failures(lowkiq: AppUnderTest) -> None:
    """L-22: new: -1, given time; new failed: 0, now + retry_in(0); retry failed: 1, now + retry_in(1)."""
    notes = Notes(raising())
    worker = declare(lowkiq.app, "orders", notes)
    given = lowkiq.clock.time() + 100
    table = []
    worker.push_many([{"id": "a", "due_at": given}])

    for wait in (100, 10, 0):
        waiting = look(lowkiq.app, worker, "a")
        assert waiting is not None
        table.append((waiting.retry_count, waiting.due_at))
        lowkiq.advance(seconds=wait)
        lowkiq.drain(raises=False)

    assert [(-1, given), (0, given + 10), (1, given + 10 + 20)] == table


def test_l24_one_retry_is_the_last(lowkiq: AppUnderTest) -> None:
    """L-24: with max_retry_count = 1 the first retry is the last execution."""
    notes = Notes(raising())
    worker = declare(lowkiq.app, "orders", notes, max_retry_count=1)
    worker.push_many(jobs_of("a"))

    for _ in range(4):
        lowkiq.drain(raises=False)
        lowkiq.advance(seconds=1_000)

    assert [-1.0, 0.0] == [job.retry_count for (job,) in notes.jobs]


@pytest.mark.parametrize("times", [1, 5, 20])
def test_l37_default_delays_stay_within_their_noise(lowkiq: AppUnderTest, times: int) -> None:
    """L-37, S-14: by default failure n waits n**4 + 15 seconds and up to 29 times n + 1 more."""
    notes = Notes(raising())
    worker = declare(lowkiq.app, "orders", notes, retry_in=Worker.retry_in)
    worker.push_many(jobs_of("a"))

    for count in range(times):
        lowkiq.drain(raises=False)
        waiting = look(lowkiq.app, worker, "a")
        assert waiting is not None
        delay = waiting.due_at - lowkiq.clock.time()
        assert count**4 + 15 <= round(delay, 3) <= count**4 + 15 + 29 * (count + 1)
        lowkiq.advance(seconds=delay + 0.001)


def test_l38_a_custom_delay(lowkiq: AppUnderTest) -> None:
    """L-38: retry_in of 10 * (count + 1) yields 10, 20, 30, 40, 50."""
    worker = declare(lowkiq.app, "orders", raising())
    worker.push_many(jobs_of("a"))
    waits = []

    for _ in range(5):
        lowkiq.drain(raises=False)
        waiting = look(lowkiq.app, worker, "a")
        assert waiting is not None
        waits.append(waiting.due_at - lowkiq.clock.time())
        lowkiq.advance(seconds=waits[-1])

    assert [10, 20, 30, 40, 50] == waits


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_d4_n_retries_are_n_plus_one_executions(lowkiq: AppUnderTest, retries: int) -> None:
    """D-4: `max_retry_count = n` means n retries, n + 1 executions; 0 means none."""
    notes = Notes(raising())
    worker = declare(lowkiq.app, "orders", notes, max_retry_count=retries)
    worker.push_many(jobs_of("a"))

    for _ in range(10):
        lowkiq.drain(raises=False)
        lowkiq.advance(seconds=1_000)

    assert (retries + 1, 1) == (len(notes.batches), len(notes.dead))


def test_ln11_error_stays_until_success(lowkiq: AppUnderTest) -> None:
    """LN-11: an id keeps its last error through retries, and loses it with success."""
    notes = Notes(raising(Broken("one")))
    worker = declare(lowkiq.app, "orders", notes)
    worker.push_many(jobs_of("a"))
    lowkiq.drain(raises=False)
    notes.then = raising(Broken("two"))
    lowkiq.advance(seconds=10)
    lowkiq.drain(raises=False)
    notes.then = None
    lowkiq.advance(seconds=20)
    assert ["a"] == lowkiq.drain().done
    worker.push_many(jobs_of("a"))
    lowkiq.drain()

    assert [None, "one", "two", None] == [job.error for (job,) in notes.jobs]
