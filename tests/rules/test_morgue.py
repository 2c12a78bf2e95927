"""The morgue: the way in and the way back (L-23, L-29, L-31 to L-34, LN-5, LN-11, D-2, D-3, E-76, LB-11)."""

from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.looks import left_behind, look
from tests.kit.workers import declare, jobs_of


def test_l23_only_the_smallest_score_goes_to_the_morgue(app: Lowkiq, queue_name: str) -> None:
    """L-23: of several payloads the one with the smallest score is dead, with its score and error."""
    notes = Notes()
    notes.then = lambda _batch: raising(Broken("no luck"))(_batch) if len(notes.batches) == 1 else None
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many([{"id": "a", "payload": f"v{score}", "score": score} for score in (3, 1, 2)])

    app.drain()

    (dead,) = notes.dead
    assert ("a", [("v1", 1.0)], "no luck") == (dead.id, [tuple(one) for one in dead.payloads], dead.error)
    assert [["v1", "v2", "v3"], ["v2", "v3"]] == [batch["a"] for batch in notes.batches]


def test_d2_after_a_death_the_rest_starts_anew(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """D-2: when the oldest payload goes to the morgue the others wait with retry_count -1, due now."""

    def fail_slowly(_batch: Batch) -> None:
        clock.advance(2)
        raise Broken("broken")

    notes = Notes(fail_slowly)
    worker = declare(app, queue_name, notes, max_retry_count=1)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(3)])
    app.drain(seconds=1)
    clock.advance(10)

    app.drain(seconds=1)

    assert [(0, 0.0)] == [tuple(pair) for job in notes.dead for pair in job.payloads]
    assert ([(1, 1.0), (2, 2.0)], clock.time(), -1.0, "broken") == look(app, worker, "a")


def test_ln5_retries_exhausted_is_told_once_and_only_of_deaths(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """LN-5: the hook is called after the death with id, payload, score and error, and never with nobody."""
    notes = Notes(failing("a", "c"))
    worker = declare(app, queue_name, notes, batch_size=3, max_retry_count=0)
    worker.push_many(jobs_of("abc", payload={"v": 1}, score=5))

    app.drain()

    (jobs,) = notes.exhausted
    assert [("a", [({"v": 1}, 5.0)], "a is broken"), ("c", [({"v": 1}, 5.0)], "c is broken")] == [
        (job.id, [tuple(one) for one in job.payloads], job.error) for job in jobs
    ]
    assert {clock.time()} == {job.updated_at for job in jobs}


def test_ln11_error_goes_to_the_morgue_and_stays_with_the_rest(app: Lowkiq, queue_name: str) -> None:
    """LN-11: the dead payload has the error, and so has what remains of its id."""
    notes = Notes(raising(Broken("why")))
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many([{"id": "a", "payload": n} for n in range(2)])

    app.drain()

    assert ([None, "why"], ["why", "why"]) == (
        [job.error for (job,) in notes.jobs],
        [job.error for job in notes.dead],
    )


def lying(app: Lowkiq, worker: type[Worker]) -> dict[str, list[tuple[object, float]]]:
    """Payloads with scores in the morgue, by id."""
    jobs = app.operate(worker).morgue.list("id", "-", "+")
    return {job.id: [(payload, score) for payload, score in job.payloads] for job in jobs}


def test_l31_nothing_in_the_morgue_is_executed(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-31: what died stays where it is, however often the queue is drained."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many(jobs_of("a", payload=1, score=1))
    app.drain()
    clock.advance(86_400)

    assert ({}, 1) == (app.drain(), len(notes.batches))
    assert {"a": [(1, 1.0)]} == lying(app, worker)


def test_l32_payloads_of_an_id_meet_in_the_morgue(app: Lowkiq, queue_name: str) -> None:
    """L-32: a morgue job is an id with payloads, in order of their scores, however they came there."""
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for score in (3, 1, 2):
        worker.push_many([{"id": "a", "payload": score, "score": score}])
        app.drain()

    assert {"a": [(1, 1.0), (2, 2.0), (3, 3.0)]} == lying(app, worker)


def test_l33_morgue_jobs_sort_by_change_or_by_id(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-33: the time of change is that of the last death."""
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for job_id in "bca":
        worker.push_many(jobs_of(job_id))
        app.drain()
        clock.advance(1)
    worker.push_many(jobs_of("b", payload="again"))
    app.drain()

    queue = app.operate(worker)
    assert list("cab") == [job.id for job in queue.morgue.list("updated_at", "-inf", "+inf")]
    assert list("abc") == [job.id for job in queue.morgue.list("id", "-", "+")]
    assert clock.time() == queue.morgue.fetch(["b"])[0].updated_at


def test_l34_d3_a_morgue_job_is_requeued_as_new(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-34, D-3: it is back with its score and error, retry_count -1, due now, and leaves the morgue."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many(jobs_of("a", payload="v", score=7))
    app.drain()
    clock.advance(100)

    assert 1 == app.operate(worker).morgue.requeue(["a", "nobody"])

    assert ([("v", 7.0)], clock.time(), -1.0, "broken") == look(app, worker, "a")
    assert {} == lying(app, worker)
    notes.then = None
    assert {"done": 1} == app.drain()
    assert {} == left_behind(app, worker)


def test_l29_a_morgue_job_meets_one_in_retry(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-29: payloads are united by score, due now, with retry_count -1; a requeued one takes its place in order."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, max_retry_count=1)
    worker.push_many(jobs_of("a", payload="old", score=1))
    app.drain()
    clock.advance(10)
    app.drain()
    worker.push_many([{"id": "a", "payload": "new", "score": 2}, {"id": "a", "payload": "older", "score": 0}])
    app.drain()
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert 0.0 == waiting.retry_count

    app.operate(worker).morgue.requeue(["a"])

    assert ([("older", 0.0), ("old", 1.0), ("new", 2.0)], clock.time(), -1.0, "broken") == look(app, worker, "a")


def test_l29_an_equal_payload_keeps_the_smaller_score(app: Lowkiq, queue_name: str) -> None:
    """L-26, L-29: a payload that comes out of the morgue merges with an equal one as any other."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many(jobs_of("a", payload="v", score=1))
    app.drain()
    worker.push_many(jobs_of("a", payload="v", score=5, delay=50))

    app.operate(worker).morgue.requeue(everything=True)

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert [("v", 1.0)] == waiting.payloads


def test_e76_requeued_while_in_flight_it_waits_its_turn(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-76: what is requeued while its id runs waits under it, and is performed after it."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many(jobs_of("a", payload="dead", score=1))
    app.drain()
    clock.advance(1)
    notes.clear()

    def requeue(_batch: object) -> None:
        notes.then = None
        app.operate(worker).morgue.requeue(["a"])

    notes.then = requeue
    worker.push_many(jobs_of("a", payload="running", score=2))
    app.drain()

    assert [{"a": ["running"]}, {"a": ["dead"]}] == notes.batches


def test_p2_a_death_is_one_step(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-6, E-17: a process that dies before the death is written leaves the job in the queue alone."""
    mortal, notes = Mortal(app), Notes(raising())
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many(jobs_of("a", payload=1, score=1))
    mortal.die_before("settle")
    assert mortal.drain() is None
    assert ({}, []) == (lying(app, worker), notes.dead)

    outlive(app, clock, worker)
    app.drain()

    assert ({"a": [(1, 1.0)]}, None, 1) == (lying(app, worker), look(app, worker, "a"), len(notes.dead))


@pytest.mark.parametrize(
    ("act", "dead"),
    [
        (lambda queue: queue.waiting.delete(filter={"least_count": "0"}), 0),
        (lambda queue: queue.waiting.kill(everything=True), 1),
    ],
    ids=["delete", "kill"],
)
def test_lb11_an_action_spares_what_was_pushed_after_its_look(
    app: Lowkiq, queue_name: str, act: Callable[[QueueOperations], int], dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LB-11, E-80: a payload pushed between the action's look and its write stays queued."""
    worker = declare(app, queue_name, raising())
    worker.push_many(jobs_of("a", payload="old", score=1))
    app.drain()
    queue = app.operate(worker)
    look_first = queue.runner.snapshots

    def look_and_let_push(*shards: Any) -> object:
        looks = look_first(*shards)
        worker.push_many(jobs_of("a", payload="new", score=2))
        return looks

    monkeypatch.setattr(queue.runner, "snapshots", look_and_let_push)
    assert 1 == act(queue)

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert [("new", 2.0)] == waiting.payloads
    assert dead == app.operate.metrics()[queue_name].morgue_length
