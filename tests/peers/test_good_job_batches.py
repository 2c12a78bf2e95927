"""GoodJob 4's batches: spec/integration/batch_spec.rb and spec/app/models/good_job/batch_spec.rb."""

from lowkiq_lambda import Batch, Later
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare
from tests.peers.batches import Batches


def test_a_batch_whose_jobs_are_done_succeeded(batches: Batches) -> None:
    """And was never discarded. Peer: spec/integration/batch_spec.rb, "has success status"."""
    with batches.task("batch") as task:
        batches.push(task, "1")
    before = task.progress()
    batches.drain()
    after = task.progress()

    assert ("closed", None, None) == (before.state, before.completed_at, before.succeeded_at)
    assert ("completed", None, True) == (after.state, after.failed_at, after.succeeded_at is not None)


def test_a_batch_with_a_discarded_job_failed(batches: Batches) -> None:
    """Both times are there. Peer: spec/integration/batch_spec.rb, "has a failure status"."""
    with batches.task("batch") as task:
        batches.push(task, "rejected")
    batches.drain()
    progress = task.progress()

    assert (True, True, None) == (
        progress.completed_at is not None,
        progress.failed_at is not None,
        progress.succeeded_at,
    )


def test_discard_and_finish_are_called(batches: Batches) -> None:
    """Not success. Peer: spec/integration/batch_spec.rb, "calls discard callbacks"."""
    with batches.task("batch") as task:
        batches.push(task, "rejected")
    batches.drain()

    assert ["batch complete", "batch failure"] == batches.events


def test_a_job_that_errs_once_and_then_succeeds_is_no_failure(
    batches: Batches, queue_name: str, clock: ManualClock
) -> None:
    """Success alone is called. Peer: spec/integration/batch_spec.rb, "job that errors once then succeeds"."""
    handler = Notes(raising())
    worker = declare(batches.app, f"{queue_name}-retried", handler)
    with batches.task("batch") as task:
        task.push(worker, "1")
    batches.drain()
    before = batches.events
    handler.then = None
    clock.advance(60.0)
    batches.drain()

    (item,) = task.items().items
    assert ([], ["batch complete", "batch success"]) == (before, batches.events)
    assert ["enqueued", "working", "retried", "working", "done"] == [message.kind for message in item.messages]


def test_jobs_may_run_before_the_batch_is_enqueued(batches: Batches) -> None:
    """The callback waits for that. Peer: spec/integration/batch_spec.rb, "can be used as instance object"."""
    task = batches.task("batch")
    batches.push(task, "1")
    batches.drain()
    before = batches.events
    task.close()
    batches.drain()

    assert ([], ["batch complete", "batch success"]) == (before, batches.events)


def test_what_a_job_pushes_by_itself_is_not_of_the_batch(batches: Batches) -> None:
    """Only what is pushed through the task is. Peer: batch_spec.rb, "does not unintentionally add sub-enqueued job"."""
    with batches.task("batch") as task:
        batches.push(task, "1")
    batches.meanwhile["1"] = lambda: batches.worker.push("2")
    batches.drain()

    assert ([["1"], ["2"]], 1) == (batches.handler.ids, task.progress().total)


def test_a_callback_goes_on_with_the_next_stage(batches: Batches, queue_name: str) -> None:
    """By a task of its own, as a complete one takes no jobs. Peer: batch_spec.rb, "can enqueue multiple jobs"."""
    stages: list[int] = []

    def next_stage(batch: Batch[int]) -> None:
        for (stage,) in batch.values():
            stages.append(stage)
            if stage < 3:
                with batches.app.task("batch", (worker, stage + 1)) as task:
                    batches.push(task, *(f"{stage}-{number}" for number in range(3)))

    worker = declare(batches.app, f"{queue_name}-stages", next_stage)
    batches.app.task("batch", (worker, 1)).close()
    for _ in range(3):
        batches.drain()

    assert ([1, 2, 3], 6) == (stages, sum(map(len, batches.handler.ids)))


def test_a_discarded_batch_is_retried(batches: Batches) -> None:
    """It succeeds then; ours stays complete meanwhile.

    Peer: spec/app/models/good_job/batch_spec.rb, "retries discarded jobs".
    """
    with batches.task("batch") as task:
        batches.push(task, "1", "failing")
    batches.drain()
    batches.is_repaired = True
    batches.app.operate(batches.worker).morgue.requeue(everything=True)
    waiting = task.progress()
    batches.drain()

    assert ("completed", 1) == (waiting.state, waiting.counts["enqueued"])
    assert task.progress().succeeded_at is not None


def test_a_job_that_is_put_off_keeps_the_batch_open(batches: Batches, queue_name: str, clock: ManualClock) -> None:
    """Neither finished nor discarded.

    Peer: spec/integration/batch_spec.rb, "all callbacks are called and retryable".
    """
    handler = Notes(raising(Later(60)))
    worker = declare(batches.app, f"{queue_name}-later", handler)
    with batches.task("batch") as task:
        task.push(worker, "1")
    batches.drain()
    before = task.progress().state, batches.events
    handler.then = None
    clock.advance(61.0)
    batches.drain()

    assert ("closed", []) == before
    assert ["batch complete", "batch success"] == batches.events
