"""Payloads that are marked as done within an id: they are not handed over again, whatever becomes of the id."""

from collections import Counter
from contextlib import suppress

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, Then, failing, raising
from tests.kit.looks import left_behind, look, pairs
from tests.kit.marking import SOLD_OUT, marking, push_payloads, put_off
from tests.kit.recording import EventRecorder
from tests.kit.workers import declare


def drain(app: Lowkiq) -> None:
    """One drain, even if its handler exits."""
    with suppress(SystemExit):
        app.drain()


ENDS: dict[str, tuple[Then, str]] = {
    "named": (failing("a"), "retried"),
    "raised": (raising(), "retried"),
    "put off": (put_off, "later"),
    "exited": (raising(SystemExit()), "returned"),
}


@pytest.mark.parametrize("merge", ["min", "max", "never"])
@pytest.mark.parametrize("end", ENDS)
def test_e73_marked_payloads_are_not_handed_over_again(
    app: Lowkiq, clock: ManualClock, queue_name: str, end: str, merge: str
) -> None:
    """E-73: whatever becomes of the id, the others come again in their order."""
    ends, outcome = ENDS[end]
    notes = Notes(marking(0, 1, then=ends))
    worker = declare(app, queue_name, notes, merge=merge)
    push_payloads(worker, 1, 2, 3, 4)
    recorder = EventRecorder()
    app.observers.append(recorder)
    drain(app)

    assert {"a": outcome} == recorder.events[-1].outcomes
    notes.then = None
    clock.advance(100)
    app.drain()

    assert [{"a": [1, 2, 3, 4]}, {"a": [3, 4]}] == notes.batches
    assert {} == left_behind(app, worker)


def test_marks_of_an_id_that_ends_well_change_nothing(app: Lowkiq, queue_name: str) -> None:
    """It is done as ever: all of it, marks or not."""
    notes = Notes(marking(0))
    worker = declare(app, queue_name, notes)
    push_payloads(worker, 1, 2, 3)

    assert {"done": 1} == dict(app.drain())
    assert [{"a": [1, 2, 3]}] == notes.batches
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize("end", [*ENDS, "refused"])
def test_an_id_of_which_all_is_marked_is_done(app: Lowkiq, queue_name: str, end: str) -> None:
    """Even where the handler fails, or is put off, or exits after that."""
    ends = raising(SOLD_OUT) if end == "refused" else ENDS[end][0]
    worker = declare(app, queue_name, marking(0, 1, then=ends))
    push_payloads(worker, 1, 2)
    recorder = EventRecorder()
    app.observers.append(recorder)

    drain(app)

    assert {"a": "done"} == recorder.events[-1].outcomes
    assert {} == left_behind(app, worker)


def test_others_of_the_batch_keep_their_outcomes(app: Lowkiq, queue_name: str) -> None:
    """In company nobody is named: marked payloads of suspects are gone, an id of which all is marked is done."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=3)
    for job_id in "abc":
        push_payloads(worker, 1, 2, job_id=job_id)

    def mark(batch: Batch) -> None:
        if len(batch) > 1:
            batch.done("a", payload=0)
            batch.done("b", payload=0)
            batch.done("b", payload=1)
            raise Broken

    notes.then = mark

    app.drain()

    assert [{"a": [1, 2], "b": [1, 2], "c": [1, 2]}, {"a": [2]}, {"c": [1, 2]}] == notes.batches
    assert {} == left_behind(app, worker)


DEAD_AND_WAITING = {"skip": ([3], [4]), "block": ([], [3, 4]), "drop": ([3, 4], []), "latest": ([3], [4])}


@pytest.mark.parametrize("dead_head", DEAD_AND_WAITING)
def test_the_oldest_of_the_others_is_the_dead_head(app: Lowkiq, queue_name: str, dead_head: str) -> None:
    """What is marked neither dies nor comes before the head."""
    notes = Notes()

    def mark_and_fail(batch: Batch) -> None:
        notes.then = put_off
        marking(0, 1, then=failing("a"))(batch)

    notes.then = mark_and_fail
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head=dead_head)
    push_payloads(worker, 1, 2, 3, 4)

    app.drain()

    buried = [payload for job in app.operate(worker).morgue.list() for payload, _ in pairs(job)]
    waits = look(app, worker, "a")
    assert DEAD_AND_WAITING[dead_head] == (buried, [payload for payload, _ in waits.payloads] if waits else [])


def test_an_equal_payload_that_was_pushed_meanwhile_runs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The marked one is gone, the other is news of it, and comes at its own place."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    push_payloads(worker, 1, 2)

    def mark(batch: Batch) -> None:
        notes.then = None
        push_payloads(worker, 1, 2)
        marking(0, then=failing("a"))(batch)

    notes.then = mark
    app.drain()
    clock.advance(100)
    app.drain()

    assert [{"a": [1, 2]}, {"a": [2, 1]}] == notes.batches
    assert {} == left_behind(app, worker)


def test_a_death_before_the_settling_repeats_all_in_order(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Marks travel with the settling: where that did not come, no payload was done."""
    mortal, notes = Mortal(app), Notes()
    worker = declare(app, queue_name, notes)
    push_payloads(worker, 1, 2, 3)

    def mark(batch: Batch) -> None:
        marking(0, then=mortal.die)(batch)
        raise Broken

    notes.then = mark
    assert mortal.drain() is None
    outlive(app, clock, worker)
    notes.then = None
    app.drain()

    assert [{"a": [1, 2, 3]}, {"a": [1, 2, 3]}] == notes.batches
    assert notes.last.repeated
    assert {} == left_behind(app, worker)


def test_p7_the_oldest_that_is_not_done_counts(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: three payloads that overtake each other are tried as often as any, whatever was done before them."""
    tries: Counter[int] = Counter()
    failing_from: dict[str, int] = {}

    def apply(batch: Batch) -> None:
        for position, payload in enumerate(batch["a"]):
            tries[payload] += 1
            if payload >= failing_from["a"]:
                batch.fail("a", f"{payload} is broken")
                return
            batch.done("a", payload=position)

    worker = declare(app, queue_name, apply, max_retry_count=3)
    worker.push_many([{"id": "a", "payload": 30, "score": 30}])
    for score in (20, 10):
        # Each comes while an older one waits for its retry, and is done, while the others fail.
        failing_from["a"] = 15
        app.drain()
        clock.advance(100)
        worker.push_many([{"id": "a", "payload": score, "score": score}])
    for _ in range(20):
        app.drain()
        clock.advance(100)

    assert {10: 1, 20: 4, 30: 4} == tries
    dead = [payload for job in app.operate(worker).morgue.list() for payload, _ in pairs(job)]
    assert [20, 30] == dead
    assert {} == left_behind(app, worker)


def test_a_thousand_payloads_of_which_all_but_the_last_are_done(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """They go in one settling, and the last is what comes again."""
    notes = Notes(marking(*range(999), then=failing("a")))
    worker = declare(app, queue_name, notes)
    push_payloads(worker, *range(1_000))

    app.drain()
    notes.then = None
    clock.advance(100)
    app.drain()

    assert [1_000, 1] == [len(batch["a"]) for batch in notes.batches]
    assert [999] == notes.batches[-1]["a"]
    assert {} == left_behind(app, worker)


def test_damage_that_interrupts_the_settling_takes_no_more_than_was_marked(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """The call that fails behind the marks is made again once the shard is repaired: the others are still there."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    push_payloads(worker, 1, 2, 3, 4)
    failures = app.core.queues.agreed(worker).shards[0].key("failures")

    def mark(batch: Batch) -> None:
        notes.then = None
        app.core.backend.client.hset(failures, "a", b"\xc1")
        marking(0, 1, then=failing("a"))(batch)

    notes.then = mark
    app.drain()
    clock.advance(100)
    app.drain()

    assert [{"a": [1, 2, 3, 4]}, {"a": [3, 4]}] == notes.batches
    assert {} == left_behind(app, worker)
