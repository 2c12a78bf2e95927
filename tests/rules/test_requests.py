"""Cancel and pause of single ids that wait, whatever the state of the queue."""

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.base.errors import RequestsFull
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.shard.keys import REQUESTS
from lowkiq_lambda.tasks.views import Message
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, raising
from tests.kit.looks import counters, left_behind, look
from tests.kit.workers import declare, jobs_of, shard_of

FOREVER = 253402300799


def requests_left(app: Lowkiq, worker: type[Worker]) -> int:
    """How many requests the shard of the worker keeps."""
    shard = app.core.queues.agreed(worker).shards[0].using((REQUESTS,))
    return int(str(app.core.backend.client.hlen(shard.key(REQUESTS))))


def ops(app: Lowkiq, worker: type[Worker]) -> QueueOperations:
    """The desk of the worker's queue."""
    return app.operate(worker)


def test_a_waiting_id_is_cancelled_at_once(app: Lowkiq, queue_name: str) -> None:
    """Its payloads go, others stay, and no request is kept."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many([*jobs_of("abb"), {"id": "b", "payload": 2}])

    answer = ops(app, worker).cancel(["b", "x"])

    assert (["b"], [], ["x"]) == (answer.at_once, answer.in_flight, answer.gone)
    assert {"done": 1} == app.drain()
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, worker))
    assert 1 == counters(app, worker)["cancelled"]


def test_cancelled_ids_may_go_to_the_morgue(app: Lowkiq, queue_name: str) -> None:
    """With `kill` nothing is lost."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a", payload=1))

    assert ["a"] == ops(app, worker).cancel(["a"], kill=True).at_once
    (dead,) = ops(app, worker).morgue.list()
    assert ("a", "cancelled by an operator") == (dead.id, dead.error)


@pytest.mark.parametrize("kill", [False, True])
def test_a_cancel_of_what_waits_can_be_undone(app: Lowkiq, queue_name: str, *, kill: bool) -> None:
    """The payloads wait again, and the undo can be undone; a cancel that found nothing has nothing to undo."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": n} for n in (1, 2)])
    before = ops(app, worker).waiting.list()

    answer = ops(app, worker).cancel(["a"], kill=kill)
    assert ([], {"a"} if kill else set()) == (
        ops(app, worker).waiting.list(),
        {job.id for job in ops(app, worker).morgue.list()},
    )

    undone = ops(app, worker).undo(answer.action_id)
    assert (1, {}, []) == (undone.restored, undone.skipped, ops(app, worker).morgue.list())
    assert before == ops(app, worker).waiting.list()
    assert not ops(app, worker).cancel(["x"]).action_id
    assert 1 == ops(app, worker).undo(undone.action_id).restored
    assert {} == app.drain()


def test_a_paused_id_waits_until_the_end_and_merges_pushes(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A thousand pushes lie behind it at its time; others run; then all come in order."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("ab", payload=-1))
    now = app.core.backend.now(shard_of(app, worker, "a"))

    assert ["a"] == ops(app, worker).pause_jobs(["a"], 60, by="ann").at_once
    pushed = worker.push_many([{"id": "a", "payload": number} for number in range(1_000)])

    assert {(True, True)} == {(one.merged, one.paused) for one in pushed}
    assert {"done": 1} == app.drain()
    paused = look(app, worker, "a")
    assert paused is not None
    assert now + 60 == pytest.approx(paused.due_at, abs=1)
    (request,) = ops(app, worker).requests()
    assert ("a", "pause", "ann", False) == (request.id, request.kind, request.by, request.in_flight)
    clock.advance(61)
    # As many payloads as go together, and then the last one.
    assert {"done": 2} == app.drain()
    assert [*range(-1, 1_000)] == [payload for batch in notes.batches[1:] for payload in batch["a"]]
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, worker))


def test_a_pause_without_an_end_is_ended_by_a_resume(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The id has the time that it had; the later end of two pauses wins."""
    worker = declare(app, queue_name, Notes())
    worker.push("a", 1, due_at=app.core.backend.now(shard_of(app, worker, "x")) + 100)
    before = look(app, worker, "a")

    ops(app, worker).pause_jobs(["a"])
    ops(app, worker).pause_jobs(["a"], 10)

    paused = look(app, worker, "a")
    assert paused is not None
    assert FOREVER == paused.due_at
    assert [None] == [request.until for request in ops(app, worker).requests()]
    answer = ops(app, worker).resume_jobs(["a", "b"])
    assert (["a"], ["b"]) == (answer.at_once, answer.gone)
    assert before == look(app, worker, "a")
    clock.advance(101)
    assert {"done": 1} == app.drain()


def test_a_paused_id_with_nothing_under_it_lets_pushes_wait(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It is `gone`, and a fresh push is due at the end of the pause, or when it is resumed."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("x"))
    app.drain()

    now = app.core.backend.now(shard_of(app, worker, "a"))
    assert ["a", "b"] == ops(app, worker).pause_jobs(["a", "b"], 60).gone
    pushed = worker.push_many(jobs_of("abc", due_at=now + 5))
    assert [("a", True), ("b", True), ("c", False)] == [(one.id, one.paused) for one in pushed]
    assert [now + 60, now + 60, now + 5] == pytest.approx([one.due_at for one in pushed], abs=1)
    assert {} == app.drain()
    ops(app, worker).resume_jobs(["b"])
    clock.advance(6)
    assert {"done": 2} == app.drain()
    clock.advance(55)
    assert {"done": 1} == app.drain()
    assert not worker.push("a", 1).paused


def test_a_repeated_push_tells_that_its_id_is_paused(app: Lowkiq, queue_name: str) -> None:
    """As it is by then: the key was pushed before the pause, and the answer to a repeated call stays."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    first = worker.push("a", 1, key="once", delay=10)
    ops(app, worker).pause_jobs(["a"])
    again, *others = worker.push_many([{"id": job_id, "key": "once"} for job_id in ("a", "b", "c", "d")])

    assert [(False, False), (True, True)] == [(one.repeated, one.paused) for one in (first, again)]
    assert (FOREVER, {(False, False)}) == (again.due_at, {(one.repeated, one.paused) for one in others})


def test_items_of_a_task_tell_that_their_ids_are_paused(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """They stay enqueued, with their messages before that, until the pause has ended."""
    worker = declare(app, queue_name, raising(), shards_count=2)
    task = app.task("export")
    task.push_many(worker, jobs_of("abcdef"))
    app.drain()
    before = {item.id: item.messages for item in task.items("enqueued").items}
    desk = ops(app, worker)
    desk.pause_jobs(["a", "b"], 60)
    desk.pause_jobs(["c"])
    desk.resume_jobs(["b"])

    def paused() -> dict[str, tuple[Message, ...]]:
        return {item.id: item.messages for item in task.items("enqueued").items if item.is_paused}

    assert {"a": before["a"], "c": before["c"]} == paused()
    clock.advance(61)
    assert ["c"] == [*paused()]
    assert 6 == task.progress().counts["enqueued"]


def test_a_retry_is_paused_with_its_count(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Order and counts are untouched."""
    worker = declare(app, queue_name, Notes(raising()))
    worker.push_many(jobs_of("a"))
    app.drain()
    before = look(app, worker, "a")
    assert before is not None

    ops(app, worker).pause_jobs(["a"], 1_000)
    clock.advance(500)
    assert {} == app.drain()
    ops(app, worker).resume_jobs(["a"])
    after = look(app, worker, "a")
    assert after is not None
    assert (before.payloads, before.retry_count, before.error) == (after.payloads, after.retry_count, after.error)


def test_a_paused_suspect_neither_runs_nor_holds_up_others(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Suspects go first, but not before the end of their pause; then each runs alone."""
    batches: list[list[str]] = []

    def handle(batch: Batch) -> None:
        batches.append(list(batch))
        if len(batch) == 3 and len(batches) == 1:
            raise ValueError
        if "a" in batch:
            app.operate(worker).pause_jobs(["b", "c"], 60)
            worker.push_many(jobs_of("xyz"))

    worker = declare(app, queue_name, handle, batch_size=3)
    worker.push_many(jobs_of("abc"))

    app.drain()
    assert [["a", "b", "c"], ["a"], ["x", "y", "z"]] == batches
    clock.advance(61)
    app.drain()
    assert [["b"], ["c"]] == sorted(batches[3:])
    assert ({}, 0) == (left_behind(app, worker), requests_left(app, worker))


def test_what_is_paused_is_left_by_other_actions(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Run now, unblock and requeue skip it."""
    worker = declare(app, queue_name, Notes(raising()), dead_head="block", max_retry_count=0)
    worker.push_many(jobs_of("a"))
    app.drain()
    desk = ops(app, worker)
    desk.pause_jobs(["a"], 60)

    assert (0, 0) == (desk.unblock(["a"]), desk.waiting.run_now(["a"]))
    clock.advance(61)
    assert 1 == desk.unblock(["a"])


def test_what_is_dead_and_paused_stays_dead(app: Lowkiq, queue_name: str) -> None:
    """A requeue of all skips it."""
    worker = declare(app, queue_name, Notes(raising()), max_retry_count=0)
    worker.push_many(jobs_of("ab"))
    app.drain()
    desk = ops(app, worker)

    assert ["a"] == desk.pause_jobs(["a"]).gone
    changed = desk.morgue.requeue(everything=True)
    assert (1, 1) == (changed, changed.paused)
    assert ["a"] == [job.id for job in desk.morgue.list()]


def test_a_shard_has_ten_thousand_requests_at_most(app: Lowkiq, queue_name: str) -> None:
    """One more raises, and those that are there may be changed."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a"))
    desk = ops(app, worker)
    desk.pause_jobs([f"id-{number}" for number in range(10_000)])

    with pytest.raises(RequestsFull, match="1 ids, the first of them 'more'"):
        desk.pause_jobs(["more"])
    assert ["id-1"] == desk.pause_jobs(["id-1"], 10).gone
    assert 10_000 == len(desk.requests())
    assert {"done": 1} == app.drain()
