"""Whole moves: all that a queue holds lies in other shards at the end, as it was."""

from collections import defaultdict

import pytest

from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare
from tests.reshard.filled import Fill


def performed(notes: Notes) -> dict[str, list[object]]:
    """The payloads of each id, in the order in which they were performed."""
    by_id = defaultdict[str, list[object]](list)
    for batch in notes.batches:
        for job_id, payloads in batch.items():
            by_id[job_id] += payloads
    return dict(by_id)


def test_an_idle_queue_moves_and_each_id_keeps_its_order(make_app: MakeApp, queue_name: str) -> None:
    """After 5 shards have become 12, each payload is performed once, those of an id in their order."""
    notes, old, new = Notes(), make_app(), make_app()
    worker = declare(old, queue_name, notes, shards_count=5, merge="never")
    ids = [f"id {number}" for number in range(40)]
    for turn in range(3):
        worker.perform_async([{"id": one, "payload": turn} for one in ids])

    old.reshard(worker, to=12)

    declare(new, queue_name, notes, shards_count=12, merge="never")
    assert {"done": 40} == new.drain()
    assert {one: [0, 1, 2] for one in ids} == performed(notes)


@pytest.mark.parametrize("merge", ["min", "max", "never"])
@pytest.mark.parametrize(("before", "after"), [(5, 12), (12, 3), (4, 6), (2, 4), (3, 1)])
def test_all_that_a_queue_holds_lies_in_the_other_shards(fill: Fill, before: int, after: int, merge: str) -> None:
    """E-94: what waits, has failed, is suspected, has begun or is buried is the same, and nothing stays behind."""
    filled = fill(before, merge=merge)
    was = filled.held()

    filled.app.reshard(filled.worker, to=after)

    assert was == filled.held(after)
    left = {name: what for name, what in filled.held().items() if what}
    assert {"counters": dict.fromkeys(was["counters"], 0)} == left
