"""Whole moves: all that a queue holds lies in other shards at the end, as it was."""

from collections import defaultdict

import pytest

from lowkiq_lambda import Lowkiq, MorgueLimits
from lowkiq_lambda.base.errors import ShardClosed
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.session import LeaseSession, LeaseSettings
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.holders import LIMITS, RETRY_FOR
from tests.kit.servers import Server
from tests.kit.workers import declare
from tests.reshard.filled import Fill
from tests.reshard.held import held


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
        worker.push_many([{"id": one, "payload": turn} for one in ids])

    old.operate(worker).reshard(to=12)

    declare(new, queue_name, notes, shards_count=12, merge="never")
    assert {"done": 40} == new.drain()
    assert {one: [0, 1, 2] for one in ids} == performed(notes)


@pytest.mark.parametrize("merge", ["min", "max", "never"])
@pytest.mark.parametrize(("before", "after"), [(5, 12), (12, 3), (4, 6), (2, 4), (3, 1)])
def test_all_that_a_queue_holds_lies_in_the_other_shards(fill: Fill, before: int, after: int, merge: str) -> None:
    """E-94: what waits, has failed, is suspected, has begun or is dead is the same, and nothing stays behind."""
    filled = fill(before, merge=merge)
    was = filled.held()

    filled.app.operate(filled.worker).reshard(to=after)

    assert was == filled.held(after)
    left = {name: what for name, what in filled.held().items() if what}
    assert {"counters": dict.fromkeys(was["counters"], 0)} == left


@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_an_id_may_have_more_than_a_call_carries(fill: Fill, monkeypatch: pytest.MonkeyPatch, merge: str) -> None:
    """The payloads of an id that come in several chunks have their order, and each its retry_count."""
    filled = fill(3, merge=merge)
    was = filled.held()
    monkeypatch.setattr("lowkiq_lambda.store.shard.moving.CHUNK_RECORDS", 1)

    filled.app.operate(filled.worker).reshard(to=2)

    assert was == filled.held(2)


def test_what_a_dead_holder_left_is_recovered_before_its_shard_is_closed(
    app: Lowkiq, queue_name: str, clock: ManualClock, server: Server
) -> None:
    """P2, P5: as the next holder of the shard would have done; while the holder may live, the move waits for it."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=1)
    worker.push_many([{"id": "a", "payload": 1}])
    shard = ShardRef(queue_name, 1, 0)
    terms = LeaseSettings(30.0, "min", MorgueLimits(100, 10_000_000, 1_000.0), b"crashed")
    session = LeaseSession(app.core.backend, shard, "nobody", terms)
    session.acquire("somebody", LIMITS, RETRY_FOR)
    began = clock.time()
    # It goes by the server's own clock, which does not move with the test's.
    server.admin.delete(shard.key("lease"))

    app.operate(worker).reshard(to=2)

    state = held(server.admin, [ShardRef(queue_name, 2, index) for index in range(2)])
    assert clock.time() >= began + 30.0
    assert ({}, ["a"], 1) == (state["flight"], [*state["waiting"]], state["counters"]["recovered"])
    with pytest.raises(ShardClosed):
        session.renew(RETRY_FOR)
