"""What operators do between a move's first look at the old shards and their closing."""

from collections.abc import Sequence

import pytest

from lowkiq_lambda.reshard.group import GroupMove, Remaining
from lowkiq_lambda.store.shard.moving import Told
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare


def test_a_pause_before_the_shards_are_closed_holds_in_the_new_ones(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings are read again once the old shards are closed: none of that second is lost."""
    app, notes = make_app(), Notes()
    worker = declare(app, queue_name, notes, shards_count=2)
    worker.perform_async([{"id": one} for one in "abcdef"])
    hold_still = GroupMove._hold_still

    def pause_and_hold(move: GroupMove, told: Sequence[Told], remaining: Remaining) -> bool:
        app.actions(worker).pause()
        return hold_still(move, told, remaining)

    monkeypatch.setattr(GroupMove, "_hold_still", pause_and_hold)
    app.reshard(worker, to=4)

    app.drain()
    assert [] == notes.batches
    app.actions(worker).resume()
    assert {"done": 6} == app.drain()
