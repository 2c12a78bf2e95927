"""A cancelled task: what waits is deleted, what others want stays, what runs ends by itself."""

from typing import TYPE_CHECKING, Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, TaskClosed, Worker
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare, jobs_of
from tests.tasks.watching import check_shards, counts, statuses

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_what_waits_is_deleted_and_what_others_want_stays(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker], merge: str
) -> None:
    """Single payloads, several under one id, payloads shared with a plain push, and with another task."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=2, merge=merge)
    task, other = app.task("export", on_complete=(callback, None)), app.task("other")
    task.push_many(worker, [{"id": "single", "payload": 1}])
    task.push_many(worker, [{"id": "several", "payload": number} for number in (1, 2)])
    task.push_many(worker, [{"id": "mixed", "payload": number} for number in (1, 2)])
    worker.push_many([{"id": "mixed", "payload": number} for number in (2, 3)])
    other.push_many(worker, [{"id": "shared", "payload": 1}])
    task.push_many(worker, [{"id": "shared", "payload": 1}])

    task.cancel()
    task.cancel()
    progress = task.progress()
    check_shards(app, worker)
    app.drain()

    assert ("cancelled", {"cancelled": 6}) == (progress.state, counts(task))
    assert (None, progress.closed_at) == (progress.next_poll, progress.completed_at)
    # Of the two payloads 2 under "mixed" only one was the task's, where they do not merge.
    payloads = {job_id: sorted(given) for batch in notes.batches for job_id, given in batch.items()}
    assert {"mixed": [2, 3], "shared": [1]} == payloads
    assert {1: "done"} == statuses(other)
    assert [] == told.batches
    with pytest.raises(TaskClosed, match="is cancelled"):
        task.push_many(worker, jobs_of("a"))


def test_what_runs_ends_by_itself_and_what_comes_back_is_caught_by_the_tick(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Cancelled by a handler: its own job ends, the one that failed waits for a retry, until the duty has looked."""

    def handler(batch: Batch) -> None:
        if "b" in batch:
            task.cancel()
            raise OSError("no connection")

    worker = declare(app, queue_name, handler, batch_size=1)
    task = app.task("export")
    task.push_many(worker, [{"id": "a"}, {"id": "b"}, {"id": "c", "due_at": clock.time() + 60.0}])
    clock.advance(1.0)
    app.drain()
    before = statuses(task), task.progress().completed_at

    looked = app.tasks.upkeep(lambda: 10.0)

    assert ({1: "done", 2: "enqueued", 3: "cancelled"}, None) == before
    assert {1: "done", 2: "cancelled", 3: "cancelled"} == statuses(task)
    assert {"looked": 1, "completed": 1} == looked
    check_shards(app, worker)
    clock.advance(600.0)
    assert {} == app.drain()


def test_a_started_job_of_the_task_goes_and_one_that_others_share_stays(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Its progress is of just the payloads that it was handed, so it goes as a whole or not at all."""
    broken = [True]

    def perform_job(_self: Worker, job: Any) -> Any:
        for number in range(job.cursor or 0, 3):
            if number == 2 and broken[0]:
                raise OSError("no connection")
            yield number + 1

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    task = app.task("export")
    task.push_many(worker, [{"id": "own", "payload": 1}, {"id": "own", "payload": 2}, {"id": "shared", "payload": 1}])
    worker.push_many([{"id": "shared", "payload": 2}])
    app.drain()
    assert 2 == app.operate.metrics()[queue_name].started

    task.cancel()
    check_shards(app, worker)
    broken[0] = False
    clock.advance(60.0)

    assert {1: "cancelled", 2: "cancelled", 3: "enqueued"} == statuses(task)
    assert {"done": 1} == app.drain()
    assert {1: "cancelled", 2: "cancelled", 3: "done"} == statuses(task)


def test_a_task_says_when_it_was_cancelled(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Also one that had been closed before, which still says when; an open one says the same twice."""
    worker = declare(app, queue_name, Notes())
    with app.task("enrol") as task:
        task.push_many(worker, [{"id": "a", "delay": 500}])
    unclosed = app.task("enrol")
    closed_at, before = clock.time(), task.progress().cancelled_at
    clock.advance(100.0)
    cancelled_at = clock.time()

    for one in (task, unclosed):
        one.cancel()
    told = [(one.closed_at, one.cancelled_at) for one in (task.progress(), unclosed.progress())]

    assert (None, [(closed_at, cancelled_at), (cancelled_at, cancelled_at)]) == (before, told)


def test_a_cancel_goes_on_where_it_broke_off(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies before the second chunk of 100: the duty withdraws the rest."""
    worker = declare(app, queue_name, Notes())
    task = app.task("export")
    task.push_many(worker, [{"id": number} for number in range(250)])
    run, made = app.core.backend.run, []

    def dying(name: str, *args: Any, **options: Any) -> Reply:
        made.append(name)
        if made.count("task_cancel") == 2:
            raise KeyboardInterrupt
        return run(name, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(app.core.backend, "run", dying)
        with pytest.raises(KeyboardInterrupt):
            task.cancel()
    before = counts(task)

    app.tasks.upkeep(lambda: 10.0)

    assert {"cancelled": 100, "enqueued": 150} == before
    assert {"cancelled": 250} == counts(task)
    check_shards(app, worker)


def test_what_has_ended_stays_as_it_is(app: Lowkiq, queue_name: str) -> None:
    """Done and dead items keep their status; a completed task cannot be cancelled any more."""

    def handler(batch: Batch) -> None:
        if "b" in batch:
            raise OSError("no connection")

    worker = declare(app, queue_name, handler, batch_size=1, max_retry_count=0)
    task, complete = app.task("export"), app.task("complete")
    task.push_many(worker, jobs_of("ab"))
    app.drain()
    complete.close()

    task.cancel()
    complete.cancel()

    assert ({"done": 1, "dead": 1}, "cancelled") == (counts(task), task.progress().state)
    assert "completed" == complete.progress().state


@pytest.mark.parametrize("of_task", ["failed", "other"])
def test_what_remains_of_an_id_that_had_failed_starts_anew(
    app: Lowkiq, clock: ManualClock, queue_name: str, of_task: str
) -> None:
    """As where somebody deletes a part of it: the payload of somebody else has all of its tries, and is due at once."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, payloads_at_once=1)
    task = app.task("export")
    pushes: dict[str, Callable[[list[dict[str, Any]]], object]] = {
        "task": lambda jobs: task.push_many(worker, jobs),
        "plain": worker.push_many,
    }
    first, second = ("task", "plain") if of_task == "failed" else ("plain", "task")
    pushes[first]([{"id": "a", "payload": 1}])
    pushes[second]([{"id": "a", "payload": 2}])
    app.drain()
    notes.then = None
    notes.clear()

    task.cancel()
    clock.advance(1.0)
    app.drain()

    check_shards(app, worker)
    assert {"cancelled": 1} == counts(task)
    assert [{"a": [2 if of_task == "failed" else 1]}] == notes.batches
    assert -1 == notes.last.retry_count
