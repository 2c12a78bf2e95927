"""Who is to blame for a failure: attributed, suspects, systemic."""

import threading
from collections.abc import Callable

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, failing, raising, raising_with
from tests.kit.looks import left_behind, look
from tests.kit.workers import declare, jobs_of, shard_of

TEN = "abcdefghij"


def retry_counts(app: Lowkiq, worker: type[Worker], ids: str) -> list[float | None]:
    """Of each id that waits."""
    waiting = [look(app, worker, job_id) for job_id in ids]
    return [one and one.retry_count for one in waiting]


def test_a_failure_of_one_alone_is_attributed(app: Lowkiq, queue_name: str) -> None:
    """An id that ran alone and raised has failed: it counts at once, also in batches that could be larger."""
    worker = declare(app, queue_name, raising(), batch_size=10)
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()


def test_a_named_failure_is_attributed(app: Lowkiq, queue_name: str) -> None:
    """What the handler names is the id's own failure, in any company, and suspects nobody."""
    notes = Notes(failing("b", "c"))
    worker = declare(app, queue_name, notes, batch_size=10)
    worker.push_many(jobs_of("abcd"))

    assert {"done": 2, "failed": 2, "retried": 2} == app.drain()
    assert 1 == len(notes.batches)


def test_an_unattributed_failure_counts_nothing_and_each_runs_alone_next(app: Lowkiq, queue_name: str) -> None:
    """A batch that raises suspects all of its ids; each runs alone, and only the culprit has failed, once."""
    notes = Notes(raising_with("b"))
    worker = declare(app, queue_name, notes, batch_size=4)
    worker.push_many(jobs_of("abcd"))

    assert {"suspected": 4, "done": 3, "failed": 1, "retried": 1} == app.drain()

    assert [["a", "b", "c", "d"], ["a"], ["b"], ["c"], ["d"]] == notes.ids
    assert [None, 0.0, None, None] == retry_counts(app, worker, "abcd")


def test_suspects_keep_time_count_and_payloads(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Suspects go back in place: what was theirs before is theirs when they run alone."""
    notes = Notes(failing("a", "b"))
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many([{"id": job_id, "payload": n, "score": n} for n in (2, 1) for job_id in "ab"])
    app.drain()
    clock.advance(10)
    notes.clear()
    notes.then = lambda batch: raising()(batch) if len(batch) > 1 else None
    app.drain()

    seen = {(job.due_at, job.retry_count, job.error, str(job.payloads)) for jobs in notes.jobs for job in jobs}
    expected = {(clock.time(), 0.0, f"{job_id} is broken", "[1, 2]") for job_id in "ab"}
    assert expected == seen
    assert {} == left_behind(app, worker)


def test_suspicion_is_durable_and_suspects_go_first(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Another process runs the suspects alone too, before what is due earlier than they are."""
    first, second, stop = make_app(), make_app(), threading.Event()

    def stop_and_raise(_batch: Batch) -> None:
        stop.set()
        raise Broken

    worker = declare(first, queue_name, stop_and_raise, batch_size=3)
    worker.push_many(jobs_of("abc"))
    result = first.core.drains.drainer.visit(
        first.core.queues.agreed(worker).shards[0], Budget(clock, stopping=stop.is_set)
    )
    worker.push_many(jobs_of("de", due_at=clock.time() - 60))
    notes = Notes()
    declare(second, queue_name, notes, batch_size=3)
    second.drain()

    assert {"suspected": 3} == result.counts
    assert [["a"], ["b"], ["c"], ["d", "e"]] == notes.ids


def test_three_alike_are_systemic_and_the_rest_is_charged_without_running(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """If the first three of a group fail alike, all of it gets one retry, and the rest does not run for it."""
    notes = Notes(raising(Broken("the database is down")))
    worker = declare(app, queue_name, notes, batch_size=10)
    worker.push_many(jobs_of(TEN))

    assert {"suspected": 10, "failed": 10, "retried": 10} == app.drain()

    assert [list(TEN), ["a"], ["b"], ["c"]] == notes.ids
    expected = [("", clock.time())], clock.time() + 10, 0.0, "the database is down"
    assert [expected] * 10 == [look(app, worker, job_id) for job_id in TEN]


def test_after_a_systemic_failure_batches_are_as_large_as_ever(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Those of a systemic failure are not to blame: their retries share batches, so recovery is fast."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, batch_size=10)
    worker.push_many(jobs_of(TEN))
    app.drain()
    clock.advance(10)
    notes.clear()
    notes.then = None

    assert {"done": 10} == app.drain()
    assert ([list(TEN)], {}) == (notes.ids, left_behind(app, worker))


def test_an_outage_kills_nobody_sooner_than_alone(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: a lasting systemic failure takes each id through its retries, one at a time, to the morgue together."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, batch_size=10, max_retry_count=2)
    worker.push_many(jobs_of(TEN))
    steps = []
    for _ in range(4):
        steps.append((app.drain().get("failed", 0), retry_counts(app, worker, TEN)))
        clock.advance(1_000)

    assert [(10, [0.0] * 10), (10, [1.0] * 10), (10, [None] * 10), (0, [None] * 10)] == steps
    assert sorted(TEN) == sorted(job.id for job in notes.dead)
    assert {} == left_behind(app, worker)


def by_id(batch: Batch) -> None:
    """Fails each in its own way."""
    raise Broken(next(iter(batch)))


def but_the_second(batch: Batch) -> None:
    """Fails all alike, except one that runs alone."""
    if list(batch) != ["b"]:
        raise Broken


@pytest.mark.parametrize(("then", "failed"), [(by_id, 6), (but_the_second, 5)])
def test_failures_that_differ_are_attributed_each(
    app: Lowkiq, queue_name: str, then: Callable[[Batch], None], failed: int
) -> None:
    """Where the first three fail differently, or one of them does not, each runs and pays for itself alone."""
    notes = Notes(then)
    worker = declare(app, queue_name, notes, batch_size=6)
    worker.push_many(jobs_of("abcdef"))

    counts = app.drain()

    assert (failed, 7) == (counts["failed"], len(notes.batches))
    assert failed == sum(count == 0.0 for count in retry_counts(app, worker, "abcdef"))


def test_two_in_a_batch_are_too_few_to_be_systemic(app: Lowkiq, queue_name: str) -> None:
    """A group of two runs out before three could fail alike: each failure is its id's own."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("ab"))

    assert {"suspected": 2, "failed": 2, "retried": 2} == app.drain()
    assert [["a", "b"], ["a"], ["b"]] == notes.ids


def test_two_failing_batches_are_two_groups(app: Lowkiq, queue_name: str) -> None:
    """Each batch that raises is judged by its own first three."""
    notes = Notes(lambda batch: raising()(batch) if len(batch) > 1 or set(batch) & set("abcd") else None)
    worker = declare(app, queue_name, notes, batch_size=4)
    worker.push_many(jobs_of("abcdefgh"))

    counts = app.drain()

    assert (4, 4, 8) == (counts["failed"], counts["done"], counts["suspected"])
    assert [0.0] * 4 + [None] * 4 == retry_counts(app, worker, "abcdefgh")
    assert 0 == left_behind(app, worker).get("groups", 0)


def test_without_isolation_the_batch_fails_together(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`isolate = False`: nobody runs a second time, each gets a retry, and the retries share batches."""
    notes = Notes(raising_with("b"))
    worker = declare(app, queue_name, notes, batch_size=3, isolate=False)
    worker.push_many(jobs_of("abc"))

    assert {"failed": 3, "retried": 3} == app.drain()
    assert ([["a", "b", "c"]], [0.0] * 3) == (notes.ids, retry_counts(app, worker, "abc"))
    clock.advance(10)
    notes.then = None
    app.drain()

    assert [["a", "b", "c"]] * 2 == notes.ids


def test_without_isolation_marks_count_all_the_same(app: Lowkiq, queue_name: str) -> None:
    """`isolate = False`: what was marked done before the error is done, what was named failed has its own error."""

    def mark_and_raise(batch: Batch) -> None:
        batch.done("a")
        batch.fail("b", "by name")
        raise Broken("for the rest")

    worker = declare(app, queue_name, mark_and_raise, batch_size=3, isolate=False)
    worker.push_many(jobs_of("abc"))

    assert {"done": 1, "failed": 2, "retried": 2} == app.drain()
    errors = [one and one.error for one in (look(app, worker, job_id) for job_id in "abc")]
    assert [None, "by name", "for the rest"] == errors


def test_p6_failures_stay_where_they_belong(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: a failing id, an undecodable payload and a hook that raises, all in one batch, cost the others nothing."""

    def retries_exhausted(_self: object, _jobs: object) -> None:
        raise Broken("hook")

    notes = Notes(failing("bad"))
    worker = declare(app, queue_name, notes, batch_size=5, max_retry_count=0, retries_exhausted=retries_exhausted)
    worker.push_many(jobs_of(["a", "bad", "b", "corrupt", "c"]))
    key = shard_of(app, worker, "corrupt").key("jobs")
    record = app.core.backend.client.hget(key, "corrupt")
    assert isinstance(record, bytes)
    app.core.backend.client.hset(key, "corrupt", record[:-2] + b"}")

    assert {"done": 3, "failed": 2, "dead": 2} == app.drain()
    clock.advance(1_000)
    assert ({}, [["a", "b", "bad", "c"]]) == (app.drain(), notes.ids)
