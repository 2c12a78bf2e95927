"""Merging: payloads that meet under one id (L-5, L-6, L-13, L-25 to L-30, E-66)."""

from collections import defaultdict
from functools import reduce
from operator import add
from random import Random

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import AppUnderTest, ManualClock
from tests.kit.handlers import Broken, Notes, Then, raising
from tests.kit.looks import look
from tests.kit.workers import declare


def test_l5_payloads_of_an_id_accumulate(lowkiq: AppUnderTest) -> None:
    """L-5: a handler gets all that has accumulated for an id at once."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    for n in range(5):
        worker.push_many([{"id": "a", "payload": n}])

    lowkiq.drain()

    assert [{"a": [0, 1, 2, 3, 4]}] == notes.batches


def test_l6_payloads_serve_as_deltas_and_as_snapshots(lowkiq: AppUnderTest) -> None:
    """L-6: all deltas applied in order, or only the newest snapshot, lead to the right state."""
    stock, snapshot = defaultdict[str, int](int), dict[str, int]()

    def apply(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            stock[job_id] += sum(payload["delta"] for payload in payloads)
            snapshot[job_id] = payloads[-1]["stock"]

    worker = declare(lowkiq.app, "orders", apply, batch_size=10)
    rng, level = Random(6), 0
    for version in range(20):
        delta = rng.randint(-5, 5)
        level += delta
        worker.push_many([{"id": "apple", "payload": {"delta": delta, "stock": level}, "score": version}])
        if rng.random() < 0.3:
            lowkiq.drain()
    lowkiq.drain()

    assert {"apple": level} == stock == snapshot


def test_a_handler_folds_changes_the_same_however_often_it_runs(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """As a function that merges would: equal changes all count, and so do those that come between its runs."""
    totals: list[int] = []

    def apply(batch: Batch) -> None:
        totals.append(reduce(add, batch["a"]))
        if len(totals) < 3:
            raise TimeoutError

    worker = declare(app, queue_name, apply, merge="never")
    worker.push_many([{"id": "a", "payload": number} for number in (1, 2, 2, 3)])
    for _ in range(3):
        app.drain()
        clock.advance(3_600.0)
        if len(totals) == 1:
            worker.push("a", 5)

    assert [8, 13, 13] == totals
    assert {"waiting": 0, "morgue": 0} == {
        "waiting": app.operate(worker).waiting.count(),
        "morgue": app.operate(worker).morgue.count(),
    }


def test_l13_payloads_are_a_set_ordered_by_score(lowkiq: AppUnderTest) -> None:
    """L-13, L-15: payloads come oldest first, whatever order they were pushed in, equal ones once."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)

    for score in (3.5, -1, 1e9, 0, 3.5):
        worker.push_many([{"id": "a", "payload": {"score": score}, "score": score}])
    lowkiq.drain()

    assert [-1.0, 0.0, 3.5, 1e9] == notes.last.scores
    assert [{"score": score} for score in (-1, 0, 3.5, 1e9)] == notes.last.payloads


def test_l25_a_push_meets_an_id_that_waits(lowkiq: AppUnderTest) -> None:
    """L-25, L-26: payload sets are united, and for equal payloads the smaller score wins."""
    worker = declare(lowkiq.app, "orders", Notes())
    worker.push_many([{"id": "a", "payload": "v1", "score": 5}, {"id": "a", "payload": "v2", "score": 6}])

    worker.push_many([{"id": "a", "payload": "v2", "score": 1}, {"id": "a", "payload": "v3", "score": 7}])

    waiting = look(lowkiq.app, worker, "a")
    assert waiting is not None
    assert [("v2", 1.0), ("v1", 5.0), ("v3", 7.0)] == waiting.payloads


def pushing_once(notes: Notes, push: Then, then: Then) -> Then:
    """Pushes during the first execution, and then does the rest."""

    def handler(batch: Batch) -> None:
        notes.then = None
        push(batch)
        then(batch)

    return handler


def test_l25_a_failed_job_meets_what_was_pushed_meanwhile(lowkiq: AppUnderTest) -> None:
    """L-25, L-28: payload sets are united; time and retry_count come from the failed one."""
    later = lowkiq.clock.time() + 7_000
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    worker.push_many([{"id": "a", "payload": "v1", "score": 1}, {"id": "a", "payload": "v2", "score": 2}])
    pushed = [
        {"id": "a", "payload": "v2", "score": 3, "due_at": later},
        {"id": "a", "payload": "v0", "score": 0},
    ]
    notes.then = pushing_once(notes, lambda _batch: worker.push_many(pushed), raising())

    lowkiq.drain(raises=False)

    expected = [("v0", 0.0), ("v1", 1.0), ("v2", 2.0)], lowkiq.clock.time() + 10, 0.0, "broken"
    assert expected == look(lowkiq.app, worker, "a")


def test_l27_a_push_changes_neither_time_nor_retry_count(lowkiq: AppUnderTest) -> None:
    """L-27: new meets queued: both come from the queued one, and `Pushed` shows the time that holds."""
    worker = declare(lowkiq.app, "orders", raising())
    at = lowkiq.clock.time() + 50
    worker.push_many([{"id": "fresh", "due_at": at}, {"id": "failed"}])
    lowkiq.drain(raises=False)

    pushed = worker.push_many(
        [
            {"id": "fresh", "payload": 2},
            {"id": "failed", "payload": 2, "delay": 5_000},
            {"id": "other", "delay": 3},
            {"id": "other", "delay": 1},
        ]
    )

    now = lowkiq.clock.time()
    assert [at, now + 10, now + 3, now + 3] == [one.due_at for one in pushed]
    assert [True, True, False, True] == [one.merged for one in pushed]
    waiting = look(lowkiq.app, worker, "failed")
    assert waiting is not None
    assert 0.0 == waiting.retry_count


def test_l28_a_success_takes_nothing_with_it(lowkiq: AppUnderTest) -> None:
    """L-28: where the running job succeeds, what was pushed meanwhile keeps its own time and is new."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    worker.push_many([{"id": "a", "payload": 1}])
    at = lowkiq.clock.time() + 30
    notes.then = pushing_once(
        notes,
        lambda _batch: worker.push_many([{"id": "a", "payload": 2, "due_at": at, "score": 2}]),
        lambda _batch: None,
    )

    lowkiq.drain()

    assert ([(2, 2.0)], at, -1.0, None) == look(lowkiq.app, worker, "a")


def test_e66_an_equal_payload_pushed_while_it_runs_is_a_new_event(lowkiq: AppUnderTest) -> None:
    """E-66: what succeeds does not swallow the same change that was pushed meanwhile."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    again = [{"id": "a", "payload": "v", "score": 1}]
    notes.then = pushing_once(notes, lambda _batch: worker.push_many(again), lambda _batch: None)
    worker.push_many(again)

    lowkiq.drain()

    assert [{"a": ["v"]}] * 2 == notes.batches


def test_l28_a_death_leaves_what_was_pushed_meanwhile(lowkiq: AppUnderTest) -> None:
    """L-28, D-2: where the running job is dead, the rest and what was pushed meanwhile start anew, now."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes, max_retry_count=0)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in (1, 3)])
    pushed = [{"id": "a", "payload": n, "score": n, "delay": 99} for n in (0, 2)]
    notes.then = pushing_once(notes, lambda _batch: worker.push_many(pushed), raising())

    lowkiq.drain(raises=False)

    assert [(1, 1.0)] == [tuple(one) for job in notes.dead for one in job.payloads]
    assert [{"a": [1, 3]}, {"a": [0, 2, 3]}] == notes.batches
    assert -1.0 == notes.last.retry_count


def test_l30_the_worked_example(lowkiq: AppUnderTest) -> None:
    """L-30: {v1: 1, v2: 2} in retry at T, and {v2: 3, v3: 4} added: still in retry at T, v2 as D-1 wants it."""
    notes = Notes(raising(Broken("first")))
    worker = declare(lowkiq.app, "orders", notes)
    worker.push_many([{"id": "a", "payload": f"v{n}", "score": n} for n in (1, 2)])
    lowkiq.drain(raises=False)
    at = lowkiq.clock.time() + 10

    worker.push_many([{"id": "a", "payload": f"v{n}", "score": n + 1} for n in (2, 3)])

    assert ([("v1", 1.0), ("v2", 2.0), ("v3", 4.0)], at, 0.0, "first") == look(lowkiq.app, worker, "a")
