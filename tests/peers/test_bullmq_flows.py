"""BullMQ 5's flows: tests/test_flow.ts.

A parent job is the callback of a task here, and its children are items, or tasks below.
"""

from tests.peers.batches import Batches


def test_children_are_processed_before_the_parent(batches: Batches) -> None:
    """Of another queue. Peer: tests/test_flow.ts, "should process children before the parent"."""
    with batches.task("parent") as task:
        batches.push(task, "0", "1", "2")
    batches.app.operate(batches.worker).pause()
    batches.drain()
    before = task.progress().state, batches.events
    batches.app.operate(batches.worker).resume()
    batches.drain()

    assert ("closed", []) == before
    assert ["parent complete", "parent success"] == batches.events


def test_a_child_that_fails_does_not_keep_the_parent_waiting(batches: Batches) -> None:
    """The last of its children. Peer: tests/test_flow.ts, "moves parent to wait without getting stuck"."""
    parent = batches.task("parent")
    children = [batches.task(f"child {number}", parent) for number in range(2)]
    batches.push(children[0], "1")
    batches.push(children[1], "rejected")
    for task in (*children, parent):
        task.close()
    batches.drain()

    assert {"completed"} == {task.progress().state for task in (parent, *children)}
    assert {"parent complete", "parent failure"} <= {*batches.events}


def test_children_stay_known_once_they_are_forgotten(batches: Batches) -> None:
    """Their states are in the parent's record. Peer: tests/test_flow.ts, "keeps children results in parent"."""
    parent = batches.task("parent")
    children = [batches.task(f"child {number}", parent) for number in range(2)]
    for number, child in enumerate(children):
        batches.push(child, str(number))
        child.close()
    batches.drain()
    records = batches.app.tasks._operations.records
    for child in children:
        records.swap(records.get(child.id), None)
    parent.close()
    batches.drain()

    assert {child.id: "succeeded" for child in children} == parent.progress().children
    assert {"parent complete", "parent success"} <= {*batches.events}


def test_a_parent_waits_while_children_are_pending(batches: Batches) -> None:
    """One that is cancelled counts no more. Peer: tests/test_flow.ts, "keeps parent in waiting-children state"."""
    parent = batches.task("parent")
    children = [batches.task(f"child {number}", parent) for number in range(2)]
    for number, child in enumerate(children):
        batches.push(child, str(number))
    parent.close()
    children[0].cancel()
    batches.drain()
    before = parent.progress().state
    children[1].close()
    batches.drain()

    assert ("closed", "completed") == (before, parent.progress().state)


def test_a_tree_has_several_levels(batches: Batches) -> None:
    """From the leaves to the root. Peer: tests/test_flow.ts, "should allow parent opts on the root job"."""
    grandparent = batches.task("grandparent")
    parent = batches.task("parent", grandparent)
    child = batches.task("child", parent)
    for task in (grandparent, parent):
        task.close()
    batches.push(child, "1")
    batches.drain()
    before = batches.events
    child.close()
    batches.drain()

    assert ([], 6) == (before, len(batches.events))
