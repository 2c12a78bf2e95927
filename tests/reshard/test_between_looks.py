"""What operators and pushers do between a move's first look at the old shards and their closing."""

from collections.abc import Sequence

import pytest

from lowkiq_lambda.reshard.group import GroupMove, Remaining
from lowkiq_lambda.store.shard.moving import Told
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of


def test_a_pause_before_the_shards_are_closed_holds_in_the_new_ones(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings are read again once the old shards are closed: none of that second is lost."""
    app, notes = make_app(), Notes()
    worker = declare(app, queue_name, notes, shards_count=2)
    worker.push_many([{"id": one} for one in "abcdef"])
    hold_still = GroupMove._hold_still

    def pause_and_hold(move: GroupMove, told: Sequence[Told], remaining: Remaining) -> bool:
        app.operate(worker).pause()
        return hold_still(move, told, remaining)

    monkeypatch.setattr(GroupMove, "_hold_still", pause_and_hold)
    app.operate(worker).reshard(to=4)

    app.drain()
    assert [] == notes.batches
    app.operate(worker).resume()
    assert {"done": 6} == app.drain()


def test_p3_a_push_before_the_shards_are_closed_comes_before_later_ones(
    make_app: MakeApp, queue_name: str, server: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P3: the score that it took, as a pusher's clock is ahead, is the least that a push to a new shard takes."""
    app, notes = make_app(), Notes()
    worker = declare(app, queue_name, notes, shards_count=2, merge="never")
    shards, ids = app.core.queues.agreed(worker).shards, "abcdef"
    hold_still = GroupMove._hold_still

    def push_and_hold(move: GroupMove, told: Sequence[Told], remaining: Remaining) -> bool:
        monkeypatch.undo()
        for shard in shards:
            server.admin.hset(shard.key("meta"), "last_score", clock.time() + 500.0)
        worker.push_many(jobs_of(ids, payload="before"))
        return hold_still(move, told, remaining)

    monkeypatch.setattr(GroupMove, "_hold_still", push_and_hold)
    app.operate(worker).reshard(to=4)
    later = make_app()
    declare(later, queue_name, notes, shards_count=4, merge="never").push_many(jobs_of(ids, payload="after"))

    later.drain()
    assert [["before", "after"]] * len(ids) == [payloads for batch in notes.batches for payloads in batch.values()]
