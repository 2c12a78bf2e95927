"""Pushes that replace what waits: one payload stays, at the time and the count of its id."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq, Pushed, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, failing
from tests.kit.looks import counters, left_behind, look
from tests.kit.workers import declare


def replace(worker: type[Worker], payload: object, **options: Any) -> Pushed:
    """A push that takes the place of what waits under the id 7."""
    return worker.push(7, payload, on_conflict="replace", **options)


def several(worker: type[Worker], count: int, size: int = 1) -> None:
    """So many payloads of the id, each of so many characters, due in a minute."""
    worker.push_many([{"id": 7, "payload": str(n).rjust(size, "x"), "delay": 60} for n in range(count)])


@pytest.mark.parametrize("merge", ["min", "max", "never"])
@pytest.mark.parametrize("lying", [(1, 1), (3, 1), (3, 900), (50, 1), (1_000, 1)])
def test_one_payload_stays(
    app: Lowkiq, clock: ManualClock, queue_name: str, merge: str, lying: tuple[int, int]
) -> None:
    """However many waited, and wherever they lay: nothing of them is left, and each is counted."""
    notes = Notes()
    worker = declare(app, queue_name, notes, merge=merge)
    count, size = lying
    several(worker, count, size)
    before = look(app, worker, "7")

    pushed = replace(worker, "new", headers={"a": "b"})
    after = look(app, worker, "7")
    clock.advance(61)
    app.drain()

    assert before
    assert after
    assert (True, "", before.due_at) == (pushed.merged, pushed.dropped, pushed.due_at)
    assert ([("new", after.payloads[0][1])], before.due_at) == (after.payloads, after.due_at)
    assert ([{"7": ["new"]}], {}) == (notes.batches, left_behind(app, worker))
    assert count == counters(app, worker)["superseded"]


def test_an_equal_payload_is_replaced_too(app: Lowkiq, queue_name: str) -> None:
    """It has its own place and its own headers then."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push(7, "same", headers={"n": "old"})
    worker.push(7, "other")

    replace(worker, "same", headers={"n": "new"})
    app.drain()

    assert ([{"7": ["same"]}], [{"n": "new"}]) == (notes.batches, notes.jobs[0][0].headers)
    assert {} == left_behind(app, worker)


def test_more_than_a_thousand_are_not_replaced(app: Lowkiq, queue_name: str) -> None:
    """The push is dropped, and says why."""
    worker = declare(app, queue_name, Notes())
    several(worker, 1_001)

    pushed = replace(worker, "new")
    (job,) = app.operate(worker).waiting.fetch([7])

    assert "too many" == pushed.dropped
    assert ("0", 1_001) == (job.payloads[0].payload, len(job.payloads) + job.more_payloads)


@pytest.mark.parametrize("ids", [1, 3])
def test_a_call_replaces_a_thousand_at_a_time(app: Lowkiq, queue_name: str, ids: int) -> None:
    """A call that would replace more goes in several; each result is at its place."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=10)
    worker.push_many([{"id": id_, "payload": n} for id_ in range(ids) for n in range(600)])

    pushed = worker.push_many([{"id": id_, "payload": "new", "on_conflict": "replace"} for id_ in range(ids)])
    app.drain()

    assert [str(id_) for id_ in range(ids)] == [one.id for one in pushed if one.merged]
    assert [{str(id_): ["new"] for id_ in range(ids)}] == notes.batches
    assert 600 * ids == counters(app, worker)["superseded"]


def test_jobs_of_one_id_in_one_call_follow_each_other(app: Lowkiq, queue_name: str) -> None:
    """Each replaces what was before it, and nothing behind it, also where payloads are equal."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": 7, "payload": payload} for payload in ("x", "y")])

    pushed = worker.push_many(
        [
            {"id": 7, "payload": "a"},
            {"id": 7, "payload": "b", "on_conflict": "replace"},
            {"id": 7, "payload": "x"},
            {"id": 8, "payload": "c", "on_conflict": "replace"},
            {"id": 8, "payload": "d", "on_conflict": "replace"},
        ]
    )
    app.drain()

    assert [True, True, True, False, True] == [one.merged for one in pushed]
    assert [{"7": ["b", "x"]}, {"8": ["d"]}] == notes.batches


def test_the_count_of_the_id_stays(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What replaces a payload that failed has as many tries left as that had."""
    notes = Notes(failing("7"))
    worker = declare(app, queue_name, notes, max_retry_count=3)
    worker.push(7, "old")
    app.drain()
    clock.advance(10)
    app.drain()
    before = look(app, worker, "7")

    replace(worker, "new")
    after = look(app, worker, "7")
    clock.advance(1_000)
    app.drain()
    clock.advance(1_000)
    app.drain()

    assert before
    assert after
    assert [("new", after.payloads[0][1])] == after.payloads
    assert (1.0, before[1:]) == (after.retry_count, after[1:])
    assert [("7", [("new", after.payloads[0][1])])] == [(dead.id, list(dead.payloads)) for dead in notes.dead]
    assert 4 == len(notes.batches)


def test_a_push_while_the_id_runs_waits_and_replaces_what_waited(app: Lowkiq, queue_name: str) -> None:
    """The running payload is not touched: it ends as it ends."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    pushed: list[Pushed] = []

    def meanwhile(_batch: object) -> None:
        notes.then = None
        pushed.extend([worker.push(7, "second"), replace(worker, "third", unless="busy"), replace(worker, "fourth")])

    notes.then = meanwhile
    worker.push(7, "first")
    app.drain()

    assert [False, True, True] == [one.merged for one in pushed]
    assert ["", "", ""] == [one.dropped for one in pushed]
    assert [["first"], ["fourth"]] == [batch["7"] for batch in notes.batches]


def test_what_runs_may_fail_and_meets_what_replaced(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Its payload waits for its retry beside the new one, with its own count."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    def meanwhile(_batch: object) -> None:
        notes.then = None
        worker.push(7, "second")
        replace(worker, "third")
        raise RuntimeError("no")

    notes.then = meanwhile
    worker.push(7, "first")
    app.drain()
    clock.advance(60)
    app.drain()

    assert [["first"], ["first", "third"]] == [batch["7"] for batch in notes.batches]
    assert {} == left_behind(app, worker)


def test_a_blocked_head_is_replaced_and_stays_blocked(app: Lowkiq, queue_name: str) -> None:
    """Until an operator unblocks it: then the new payload runs."""
    notes = Notes(failing("7"))
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head="block")
    worker.push(7, "old")
    app.drain()
    notes.then = None

    pushed = replace(worker, "new")
    app.drain()
    unblocked = app.operate(worker).unblock(["7"])
    app.drain()

    assert (True, 1) == (pushed.merged, unblocked)
    assert [["old"], ["new"]] == [batch["7"] for batch in notes.batches]
