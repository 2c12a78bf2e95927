"""Sidekiq Pro's batches: the page "Batches" of its wiki (April 2024), and Pro-Changes.md.

And the specs of sidekiq-batch 0.2: batch_spec.rb, flow_spec.rb and status_spec.rb.
"""

import pytest

from lowkiq_lambda import NoSuchTask, TaskClosed
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.workers import declare
from tests.peers.batches import Batches

DAY = 86_400.0


def test_all_succeed(batches: Batches) -> None:
    """Success follows complete once each job has ended well. Peer: wiki "Batches", section Callbacks, "success"."""
    with batches.task("rows") as task:
        batches.push(task, "1", "2")
    batches.drain()

    assert ["rows complete", "rows success"] == batches.events


def test_complete_comes_with_failures(batches: Batches) -> None:
    """Ours waits until a failing job is dead; theirs counts one run of it.

    Peer: wiki "Batches", Callbacks, "complete".
    """
    with batches.task("rows") as task:
        batches.push(task, "1", "failing")
    batches.drain()

    assert ["rows complete", "rows failure"] == batches.events


def test_death_is_told_once_at_the_first_death(batches: Batches) -> None:
    """Though others wait, and however many die later. Peer: wiki "Batches", section Callbacks, "death"."""
    task = batches.task("rows")
    batches.push(task, "failing 1")
    batches.drain()
    before = batches.events
    batches.push(task, "failing 2")
    batches.drain()

    assert ["rows failure"] == before == batches.events


def test_a_dead_job_that_is_retried_by_hand_makes_the_batch_succeed(batches: Batches) -> None:
    """Success is told then, complete not again. Peer: wiki "Batches", section Callbacks, "a batch with dead jobs"."""
    with batches.task("rows") as task:
        batches.push(task, "1", "failing")
    batches.drain()
    batches.is_repaired = True
    batches.app.operate(batches.worker).morgue.requeue(everything=True)
    batches.drain()

    assert ["rows complete", "rows failure", "rows success"] == batches.events


def test_an_empty_batch_runs_its_callbacks(batches: Batches) -> None:
    """At once when it is closed.

    Peer: wiki "Batches", section Adding Jobs, "empty batch"; flow_spec.rb, "handles an empty batch".
    """
    with batches.task("rows"):
        pass
    batches.drain()

    assert ["rows complete", "rows success"] == batches.events


def test_a_batch_is_not_complete_before_it_is_defined(batches: Batches) -> None:
    """Jobs that end before the block does.

    Peer: Pro-Changes.md, 1.8.0, "batches can complete before they have been fully defined".
    """
    with batches.task("rows") as task:
        batches.push(task, "1")
        batches.drain()
        early = batches.events
        batches.push(task, "2")
    batches.drain()

    assert ([], ["rows complete", "rows success"]) == (early, batches.events)


def test_a_block_that_raises_leaves_the_batch_open(batches: Batches) -> None:
    """Theirs writes nothing then; ours keeps what was pushed, and waits.

    Peer: wiki "Batches", Adding Jobs, "atomic".
    """
    task = batches.task("rows")

    def push_rows() -> None:
        with task:
            batches.push(task, "1")
            raise ValueError("row 2 is broken")

    with pytest.raises(ValueError, match="row 2"):
        push_rows()
    batches.drain()

    assert ("open", 1, []) == (task.progress().state, task.progress().counts["done"], batches.events)


def test_a_job_adds_jobs_to_its_own_batch(batches: Batches) -> None:
    """While it runs, though the batch is closed. Peer: Pro-Changes.md, 0.7.1, "a batch job can add additional jobs"."""
    with batches.task("rows") as task:
        batches.push(task, "1")
    batches.meanwhile["1"] = lambda: batches.push(batches.app.tasks.get(task.id), "2", "3")
    batches.drain()

    assert (3, ["rows complete", "rows success"]) == (task.progress().total, batches.events)


def test_a_batch_is_reopened_by_its_id(batches: Batches) -> None:
    """From another process, as long as it is open. Peer: batch_spec.rb, "reuses bid when called with it"."""
    task = batches.task("rows")
    again = batches.app.tasks.get(task.id)
    batches.push(again, "1")
    again.close()
    batches.drain()

    assert (task.id, 1) == (again.id, task.progress().total)


def test_a_finished_batch_takes_no_jobs(batches: Batches) -> None:
    """Theirs takes them, and may tell complete again; ours refuses. Peer: wiki "Batches", section Adding Jobs."""
    with batches.task("rows") as task:
        batches.push(task, "1")
    batches.drain()

    with pytest.raises(TaskClosed):
        batches.push(task, "2")


def test_the_status_counts(batches: Batches) -> None:
    """total, pending, failures, created_at.

    Peer: flow_spec.rb, "correctly initializes"; status_spec.rb, "#pending", "#failures".
    """
    task = batches.task("describing the batch")
    batches.push(task, "1", "2", "failing")
    before = task.progress()
    batches.drain()
    after = task.progress()

    assert ("describing the batch", 3, 0, 0) == (before.name, before.total, before.ended, before.counts["dead"])
    assert (3, 3, 1) == (after.total, after.ended, after.counts["dead"])
    assert before.created_at == after.created_at > 0


def test_the_status_has_failure_info(batches: Batches) -> None:
    """Which jobs failed, and their errors. Peer: status_spec.rb, "#failure_info", "returns array with failed jids"."""
    with batches.task("rows") as task:
        batches.push(task, "1", "failing")
    batches.drain()

    (error,) = task.progress(errors=10).errors
    assert ("failing", "dead", True) == (error.id, error.status, "no connection" in error.text)


def test_a_batch_that_never_was_has_no_status(batches: Batches) -> None:
    """Theirs counts 0; ours raises. Peer: status_spec.rb, "when not initalized"."""
    with pytest.raises(NoSuchTask):
        batches.app.tasks.get("A" * 16).progress()


def test_a_callback_gets_its_options(batches: Batches) -> None:
    """And the id of its batch. Peer: batch_spec.rb, "calls it passing options"."""
    batches.task("rows").close()
    batches.drain()

    assert [["rows", "complete"], ["rows", "success"]] == [
        payload for batch in batches.told.batches for own in batch.values() for payload in own
    ]


def test_no_callback_runs_twice(batches: Batches) -> None:
    """Whoever looks again. Peer: batch_spec.rb, "returns and does not enqueue callbacks", when already called."""
    task = batches.task("rows")
    for _ in range(3):
        task.close()
        task.progress()
        batches.app.tasks.upkeep(lambda: 10.0)
    batches.drain()

    assert ["rows complete", "rows success"] == batches.events


def test_a_batch_without_callbacks_pushes_nothing(batches: Batches) -> None:
    """It is complete all the same. Peer: batch_spec.rb, "it returns", when there is no callback."""
    with batches.app.task("rows") as task:
        batches.push(task, "1")
    batches.drain()

    assert ("completed", []) == (task.progress().state, batches.events)


def test_callbacks_have_a_queue_of_their_own(batches: Batches) -> None:
    """That of their worker, which has its own weight and retries.

    Peer: Pro-Changes.md, 2.0.1, "Add batch.callback_queue".
    """
    batches.app.operate(batches.callback).pause()
    batches.task("rows").close()
    batches.drain()

    (waiting,) = batches.app.operate(batches.callback).waiting.list()
    assert ([], 2) == (batches.events, len(waiting.payloads))


def test_several_callbacks_of_an_event_are_one_worker_that_pushes(batches: Batches, queue_name: str) -> None:
    """Ours has one of each event. Peer: batch_spec.rb, "enqueues each callback passing their options"."""
    first, second = Notes(), Notes()
    workers = [declare(batches.app, f"{queue_name}-{at}", notes) for at, notes in enumerate((first, second))]
    fan_out = declare(
        batches.app, f"{queue_name}-all", lambda batch: [one.push(job_id) for job_id in batch for one in workers]
    )
    batches.app.task("rows", (fan_out, None)).close()
    batches.drain()

    assert [1, 1] == [len(first.batches), len(second.batches)]


def test_a_batch_that_is_invalidated_runs_no_more_jobs(batches: Batches) -> None:
    """Ours deletes them, and calls no callback. Peer: batch_spec.rb, "marks batch in redis as invalidated"."""
    with batches.task("rows") as task:
        batches.push(task, "1", "2")
    left = task.cancel()
    batches.drain()

    assert (0, [], []) == (left, batches.handler.batches, batches.events)
    assert ("cancelled", 2) == (task.progress().state, task.progress().counts["cancelled"])


def test_a_parent_that_is_invalidated_invalidates_those_below(batches: Batches) -> None:
    """All levels. Peer: batch_spec.rb, "invalidates all job if parent batch is marked as invalidated"."""
    parent = batches.task("parent")
    child = batches.task("child", parent)
    grandchild = batches.task("grandchild", child)
    for task in (parent, child, grandchild):
        batches.push(task, task.id)
        task.close()
    parent.cancel()
    batches.drain()

    assert ([], []) == (batches.handler.batches, batches.events)
    assert {"cancelled"} == {task.progress().state for task in (parent, child, grandchild)}


def test_only_the_batch_that_is_invalidated_is(batches: Batches) -> None:
    """Those above run, and are complete. Peer: batch_spec.rb, "invalidates only requested batch"."""
    parent = batches.task("parent")
    child = batches.task("child", parent)
    for task in (parent, child):
        batches.push(task, task.id)
        task.close()
    child.cancel()
    batches.drain()

    assert [[parent.id]] == batches.handler.ids
    # It did not succeed, as a part of it was cancelled.
    assert ["parent complete"] == batches.events


def test_nested_batches_know_each_other(batches: Batches) -> None:
    """Children, parents. Peer: flow_spec.rb, "handles a basic nested batch"."""
    parent = batches.task("parent")
    children = [batches.task(f"child {number}", parent) for number in range(2)]
    for child in children:
        batches.push(child, child.id)

    assert 2 == len(parent.progress().children)
    assert [({}, 1, parent.id)] * 2 == [
        (one.children, one.counts["enqueued"], one.parent) for one in (child.progress() for child in children)
    ]


def test_a_parent_waits_for_the_success_of_those_below(batches: Batches) -> None:
    """Its success is told last. Peer: wiki "Batches", "Nested Batches", and "Really Complex Workflows with Batches"."""
    parent = batches.task("parent")
    child = batches.task("child", parent)
    batches.push(parent, "1")
    batches.push(child, "failing")
    child.close()
    parent.close()
    batches.drain()
    before = batches.events
    batches.is_repaired = True
    batches.app.operate(batches.worker).morgue.requeue(everything=True)
    batches.drain()

    assert ["child complete", "child failure", "parent complete", "parent failure"] == before
    assert {"child success", "parent success"} == {*batches.events} - {*before}


def test_a_death_goes_up_to_the_parents(batches: Batches) -> None:
    """Each is told once. Peer: sidekiq issue 4774, "death callback for parent batches"."""
    parent = batches.task("parent")
    for number in range(2):
        child = batches.task(f"child {number}", parent)
        batches.push(child, f"failing {number}")
    batches.drain()

    assert ["child 0 failure", "child 1 failure", "parent failure"] == batches.events


def test_a_batch_expires(batches: Batches, clock: ManualClock) -> None:
    """Thirty days after its last push if it never completes. Peer: wiki "Batches", section Expiration."""
    task = batches.task("rows")
    batches.push(task, "1")
    clock.advance(31 * DAY)
    batches.app.tasks.upkeep(lambda: 10.0)

    with pytest.raises(NoSuchTask):
        task.progress()


def test_a_complete_batch_lingers_as_long_as_it_says(batches: Batches, clock: ManualClock) -> None:
    """A week unless it says otherwise; theirs a day.

    Peer: Pro-Changes.md, 1.4.0, "b.expires_in 5.days"; wiki, "linger".
    """
    kept = [batches.task("week"), batches.task("five days", expires_in=5 * DAY)]
    for task in kept:
        task.close()
    clock.advance(6 * DAY)
    batches.app.tasks.upkeep(lambda: 10.0)

    assert "completed" == kept[0].progress().state
    with pytest.raises(NoSuchTask):
        kept[1].progress()


def test_a_batch_is_polled(batches: Batches) -> None:
    """With a version and when to ask again, up to its end.

    Peer: Pro-Changes.md, 1.0.0, "Rack endpoint for easy polling".
    """
    with batches.task("rows") as task:
        batches.push(task, "1")
    before = task.progress()
    batches.drain()
    after = task.progress()

    assert (True, None) == ((before.next_poll or 0.0) >= 1.0, after.next_poll)
    assert before.version != after.version == task.progress().version
